#include "core/batch.h"

namespace ucas {

int64_t inserted_tokens(std::span<const Insert> inserts) {
  int64_t count = 0;
  for (const Insert& insert : inserts) count += std::ssize(insert.token);
  return count;
}

int64_t inserted_before(std::span<const Insert> inserts, int64_t at) {
  int64_t count = 0;
  for (const Insert& insert : inserts) count += insert.at <= at ? std::ssize(insert.token) : 0;
  return count;
}

std::vector<int32_t> with_inserts(std::span<const int32_t> own, std::span<const Insert> inserts) {
  std::vector<int32_t> all;
  all.reserve(own.size() + static_cast<size_t>(inserted_tokens(inserts)));
  size_t next = 0;
  for (const Insert& insert : inserts) {
    const auto at = static_cast<size_t>(insert.at);
    all.insert(all.end(), own.begin() + next, own.begin() + at);
    all.insert(all.end(), insert.token.begin(), insert.token.end());
    next = at;
  }
  all.insert(all.end(), own.begin() + next, own.end());
  return all;
}

}  // namespace ucas
