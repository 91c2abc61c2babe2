#include "base/files/file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/str.h"
#include "support/temporary_directory.h"

namespace ucas {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (uint8_t byte : md5_of_text(bytes)) text += str("0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]);
  return text;
}

TEST(hash, md5_gives_the_digests_of_rfc_1321) {
  EXPECT_EQ(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
  // Lengths around the padding boundary, against the digests of the coreutils.
  EXPECT_EQ(hex(std::string(55, 'a')), "ef1772b6dff9a122358552954ad0df65");
  EXPECT_EQ(hex(std::string(56, 'a')), "3b0c8ac703f828b04c6c197006d17218");
  EXPECT_EQ(hex(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
}

TEST(hash, sha256_gives_the_digests_of_fips_180_4) {
  EXPECT_EQ(sha256_of_text(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(hash, a_file_of_several_blocks_has_the_digest_of_its_bytes) {
  testing::TemporaryDirectory directory;
  const std::string path = path_join(directory.path(), "weights");
  std::string bytes((size_t{8} << 20) * 2 + 12345, 'w');
  for (size_t i = 0; i < bytes.size(); i += 997) bytes[i] = static_cast<char>(i);
  for (const std::string& content : {bytes, std::string()}) {
    write_file(path, content);
    EXPECT_EQ(sha256_of_file(path), sha256_of_text(content));
    EXPECT_EQ(hash_of_file(path), hash_of_text(content));
  }
  EXPECT_THROW(sha256_of_file(path_join(directory.path(), "none")), Error);
}

}  // namespace
}  // namespace ucas
