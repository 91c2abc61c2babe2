// The LM head on plain memory: statistics of given tokens and their gradients, 256 rows by kTile columns at a time, so
// that [R, V] never exists. The same numbers as the trainer's head (model/head/head.h), bit for bit in f32, for hosts
// that have no LibTorch of ours: the Python package (model/head/head_test.cpp). f32 throughout; a bf16 W is widened
// where it is read. Legend: R rows (tokens), V vocabulary, D width; z = h W^T / temperature. Every number is one chain
// of sums in a fixed order: nothing depends on the threads, which live for the call alone (0: all that this process may
// use). Pointers are not kept.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace ucas::kernels {

struct HeadWeight {  // one of the two
  const float* f32 = nullptr;
  const Bf16* bf16 = nullptr;
};

struct HeadInput {
  int64_t rows, vocab, width;
  const float* hidden;    // [R, D]
  HeadWeight weight;      // [V, D]
  const int64_t* target;  // [R], each in [0, V)
  float inverse_temperature;
};

// [R] each; lse is what the gradient needs, with the entropy.
struct HeadOutput {
  float *logprob, *entropy, *confidence, *logit, *margin, *lse;
};
void head_stats(const HeadInput& in, const HeadOutput& out, int64_t threads);

// From d loss / d logprob, entropy and confidence, [R] each: adds to d_hidden [R, D] and d_weight [V, D]; either may be
// null. Rows whose three derivatives are 0 cost nothing.
struct HeadDerivatives {
  const float *logprob, *entropy, *confidence;
};
void head_gradient(const HeadInput& in, const float* lse, const float* entropy, const HeadDerivatives& d,
                   float* d_hidden, float* d_weight, int64_t threads);

}  // namespace ucas::kernels
