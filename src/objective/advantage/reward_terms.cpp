#include "objective/advantage/reward_terms.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::vector<WeightedPart> parse_reward_weights(const std::vector<std::string>& weights, bool command) {
  if (weights.empty()) return {{command ? RewardPart::command : RewardPart::answer, 1}};
  constexpr auto kNames = names(RewardPart{});
  std::vector<WeightedPart> parts;
  for (const std::string& entry : weights) {
    const size_t sign = entry.find('=');
    const std::string name = entry.substr(0, sign), number = sign == std::string::npos ? "" : entry.substr(sign + 1);
    const auto found = std::ranges::find(kNames, name);
    double weight = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), weight);
    const bool read = error == std::errc() && end == number.data() + number.size() && std::isfinite(weight);
    if (found == kNames.end() || !read || weight == 0) {
      throw Error(ErrorKind::config,
                  str("reward.weights: \"", printable(entry, 60), "\": expected PART=WEIGHT, a part of ",
                      join(std::vector<std::string>(kNames.begin(), kNames.end()), ", "),
                      " and a number other than 0; for example \"answer=1\", \"format=0.2\""));
    }
    const auto part = static_cast<RewardPart>(found - kNames.begin());
    if (std::ranges::find(parts, part, &WeightedPart::part) != parts.end()) {
      throw Error(ErrorKind::config, str("reward.weights: duplicate ", name));
    }
    parts.push_back({part, weight});
  }
  return parts;
}

std::vector<RewardTerm> reward_terms(std::span<const WeightedPart> parts) {
  std::vector<RewardTerm> terms;
  for (const WeightedPart& part : parts) terms.push_back({word_of(part.part), part.weight});
  return terms;
}

std::vector<double> length_rewards(std::span<const int64_t> length, std::span<const uint8_t> right) {
  std::vector<double> rewards(length.size(), 0.0);
  if (length.empty()) return rewards;
  const auto [shortest, longest] = std::ranges::minmax_element(length);
  if (*shortest == *longest) return rewards;
  for (size_t i = 0; i < length.size(); ++i) {
    const double lambda = 0.5 - static_cast<double>(length[i] - *shortest) / static_cast<double>(*longest - *shortest);
    rewards[i] = right[i] != 0 ? lambda : std::min(0.0, lambda);
  }
  return rewards;
}

PrmRow implicit_prm_row(double logratio_sum, bool right, double beta) {
  double x = beta * logratio_sum, acc = right ? 1 : 0;
  PrmRow row;
  // sigma(x) and ln(1 + e^x) through e^-|x|: nothing overflows, and a sure answer keeps its loss to the last digit.
  double e = std::exp(-std::fabs(x));
  row.probability = x >= 0 ? 1 / (1 + e) : e / (1 + e);
  row.loss = std::max(x, 0.0) + std::log1p(e) - acc * x;
  row.d_token = beta * (row.probability - acc);
  row.agrees = (row.probability > 0.5) == right;
  return row;
}

bool is_right(const Response& response) { return response.verdict.kind == VerdictKind::equal; }

}  // namespace ucas
