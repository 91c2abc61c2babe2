#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/file.h"

namespace ucas {

namespace {

constexpr int64_t kBlock = int64_t{8} << 20;

std::string hex(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  std::string text;
  for (unsigned char b : bytes.digest) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

}  // namespace

std::string hash_of_text(std::string_view text) { return hex(XXH3_128bits(text.data(), text.size())); }

std::string hash_of_file(const std::string& path) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  int64_t size = file_size(path);
  std::vector<char> block(static_cast<size_t>(std::min(size, kBlock)));
  for (int64_t at = 0; at < size; at += kBlock) {
    int64_t n = std::min(kBlock, size - at);
    read_at(path, at, block.data(), n);
    XXH3_128bits_update(state.get(), block.data(), static_cast<size_t>(n));
  }
  return hex(XXH3_128bits_digest(state.get()));
}

}  // namespace ucas
