// A signal for tests of the LM head: the mean log-prob of the likeliest tokens, as SimKO's.
#pragma once

#include <algorithm>

#include "core/signal.h"

namespace ucas::testing {

inline std::vector<TokenSignal> mean_of_likeliest(int64_t count) {
  if (count == 0) return {};
  return {
      {.key = "likely",
       .words = "the likeliest tokens",
       .reads = {.count = count},
       .compute =
           [](const LogitRow& row) {
             double sum = 0;
             for (const LikelyToken& token : row.likely) sum += token.z - row.lse;
             return sum / static_cast<double>(row.likely.size());
           },
       .derivatives = [](const LogitRow& row,
                         std::span<double> d) { std::ranges::fill(d, 1 / static_cast<double>(row.likely.size())); }}};
}

}  // namespace ucas::testing
