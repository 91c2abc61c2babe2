// The K largest logits of a row, tile by tile: for the trainer's head and for losses that read a policy's likeliest
// tokens (model/head/head.cpp). From the largest on; of equal ones the lower id first, so that the choice
// depends on nothing but the row. Pointers only, no allocation, no exceptions.
#pragma once

#include <cstdint>

namespace ucas::kernels {

struct LikelyToken {
  float logit;
  int32_t id;
};

// Merges columns [0, n) of `logits`, whose ids begin with `first`, into the `kept` of at most `most` tokens; call tile
// by tile from column 0. Returns how many are kept now. A NaN is never kept before a number.
static inline int64_t keep_likeliest(const float* logits, int64_t n, int64_t first, int64_t most, LikelyToken* kept,
                                     int64_t count) {
  for (int64_t v = 0; v < n; ++v) {
    if (count == most && !(logits[v] > kept[count - 1].logit)) continue;
    int64_t at = count < most ? count++ : count - 1;
    for (; at > 0 && logits[v] > kept[at - 1].logit; --at) kept[at] = kept[at - 1];
    kept[at] = {logits[v], static_cast<int32_t>(first + v)};
  }
  return count;
}

}  // namespace ucas::kernels
