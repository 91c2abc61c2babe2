// The table behind KTAE's key-token values, every step of it: for tests and for whoever asks why a token got its K.
#pragma once

#include <cstdint>
#include <map>

#include "core/batch.h"
#include "methods/fisher.h"
#include "methods/method.h"

namespace ucas {

struct KeyToken {
  ContingencyTable table;             // responses with and without it, right and wrong
  double p = 0, F = 0;                // Fisher's test and what is made of it
  double IG = 0;                      // information gain, bits
  double TF_right = 0, TF_wrong = 0;  // frequencies
  double arcsine = 0;                 // difference of the shares: D without the frequencies
  double D = 0, K = 0;
};
// By token id; empty where all responses of the group are right, or all wrong. `ktae` must be made by make_ktae().
std::map<int32_t, KeyToken> key_tokens(const Method& ktae, const Batch& batch, const Group& group);

}  // namespace ucas
