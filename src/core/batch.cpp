#include "core/batch.h"

namespace ucas {

namespace {

constexpr std::pair<std::string_view, std::vector<float> Batch::*> kArrays[] = {
    {"rollout_logprob", &Batch::rollout_logprob},
    {"rollout_whole_logprob", &Batch::rollout_whole_logprob},
    {"old_logprob", &Batch::old_logprob},
    {"reward_kl", &Batch::reward_kl},
    {"entropy", &Batch::entropy},
    {"confidence", &Batch::confidence},
    {"logit", &Batch::logit},
};

}  // namespace

const std::vector<float>& Batch::signal(std::string_view key) const {
  static const std::vector<float> none;
  for (const auto& [name, member] : kArrays)
    if (name == key) return this->*member;
  const auto found = signals.find(key);
  return found == signals.end() ? none : found->second;
}

std::vector<float>& Batch::signal(std::string_view key) {
  for (const auto& [name, member] : kArrays)
    if (name == key) return this->*member;
  return signals[std::string(key)];
}

std::vector<std::pair<std::string_view, std::span<const float>>> Batch::all_signals() const {
  std::vector<std::pair<std::string_view, std::span<const float>>> all;
  for (const auto& [name, member] : kArrays) all.emplace_back(name, this->*member);
  for (const auto& [key, values] : signals) all.emplace_back(key, values);
  std::erase_if(all, [](const auto& one) { return one.second.empty(); });
  return all;
}

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
