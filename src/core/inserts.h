// Inserts: what an environment said in the middle of a response. They are context of the model's later tokens; none of
// them has a log-prob, an advantage or a loss. Made by rollout/environment; read where a response is laid out as one
// sequence (train/signals) and by the writers of records.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ucas {

struct Insert {
  int64_t at = 0;              // how many of the model's tokens precede it: 1 at least, and fewer than all
  std::vector<int32_t> token;  // 1 at least
  std::string text;            // the same as text
  bool operator==(const Insert&) const = default;
};

// All of their tokens, and those that precede the model's token number `at` (the first one is 0).
int64_t inserted_tokens(std::span<const Insert> inserts);
int64_t inserted_before(std::span<const Insert> inserts, int64_t at);
// The model's tokens and the inserts, in the order in which the model saw them.
std::vector<int32_t> with_inserts(std::span<const int32_t> own, std::span<const Insert> inserts);

}  // namespace ucas
