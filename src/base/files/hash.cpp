#include "base/files/hash.h"

#define XXH_INLINE_ALL
#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"

namespace ucas {

namespace {

constexpr int64_t kBlock = int64_t{8} << 20;

template <class Bytes>
std::string hex(const Bytes& bytes) {
  std::string text;
  for (unsigned char b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

std::string hex(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  return hex(bytes.digest);
}

void for_each_block(const std::string& path, const std::function<void(const char*, size_t)>& use) {
  const int64_t size = file_size(path);
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
  for (int64_t at = 0; at < size; at += kBlock) {
    const int64_t n = std::min(kBlock, size - at);
    read_at(path, at, block.data(), n);
    use(block.data(), static_cast<size_t>(n));
  }
}

// "-fips": also where the machine allows only approved digests, for nothing here is encrypted. Looked up once and kept.
const EVP_MD* digest_called(const char* name) {
  const EVP_MD* kind = EVP_MD_fetch(nullptr, name, "-fips");
  if (kind == nullptr)
    throw Error(ErrorKind::unsupported, std::string("libcrypto of this machine has no ") + name, kNumeric);
  return kind;
}

const EVP_MD* sha256() {
  static const EVP_MD* const kind = digest_called("SHA256");
  return kind;
}

const EVP_MD* md5() {
  static const EVP_MD* const kind = digest_called("MD5");
  return kind;
}

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : state_(EVP_MD_CTX_new()) {
    UCAS_CHECK(state_ && EVP_DigestInit_ex2(state_.get(), kind, nullptr) == 1, "SHA-256 context initialised");
  }
  void add(const char* bytes, size_t size) {
    UCAS_CHECK(EVP_DigestUpdate(state_.get(), bytes, size) == 1, "SHA-256 update failed");
  }
  template <size_t kSize>
  std::array<uint8_t, kSize> end() {
    std::array<uint8_t, kSize> bytes{};
    unsigned int size = 0;
    UCAS_CHECK(EVP_MD_CTX_get_size(state_.get()) == static_cast<int>(kSize), "the digest must have its full size");
    UCAS_CHECK(EVP_DigestFinal_ex(state_.get(), bytes.data(), &size) == 1, "SHA-256 final failed");
    return bytes;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* state) const { EVP_MD_CTX_free(state); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> state_;
};

}  // namespace

std::string hash_of_text(std::string_view text) { return hex(XXH3_128bits(text.data(), text.size())); }

std::string hash_of_file(const std::string& path) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  for_each_block(path, [&](const char* bytes, size_t n) { XXH3_128bits_update(state.get(), bytes, n); });
  return hex(XXH3_128bits_digest(state.get()));
}

std::string sha256_of_text(std::string_view text) {
  Digest digest(sha256());
  digest.add(text.data(), text.size());
  return hex(digest.end<32>());
}

std::string sha256_of_file(const std::string& path) {
  Digest digest(sha256());
  for_each_block(path, [&](const char* bytes, size_t n) { digest.add(bytes, n); });
  return hex(digest.end<32>());
}

std::array<uint8_t, 16> md5_of_text(std::string_view text) {
  Digest digest(md5());
  digest.add(text.data(), text.size());
  return digest.end<16>();
}

}  // namespace ucas
