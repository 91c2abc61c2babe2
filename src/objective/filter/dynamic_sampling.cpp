#include "objective/filter/dynamic_sampling.h"

#include <algorithm>

#include "base/str.h"

namespace ucas {

double overlong_penalty(int64_t length, int64_t limit, int64_t buffer, double factor) {
  if (buffer <= 0) return 0;
  double beyond = static_cast<double>(length - (limit - buffer));
  return std::min(-beyond / static_cast<double>(buffer) * factor, 0.0);
}

std::string KeepRule::words() const {
  std::vector<std::string> parts;
  if (mixed) parts.push_back("both right and wrong answers");
  if (low > 0 || high < 1) parts.push_back(str("an accuracy in [", low, ", ", high, "]"));
  if (untruncated) parts.push_back(str("no response of ", response_limit - 1, " tokens or more"));
  return parts.empty() ? "any answers" : join(parts, " and ");
}

bool passes(const KeepRule& rule, const PromptOutcome& prompt) {
  if (rule.mixed && prompt.metric.size() > 1) {
    // DAPO asks for a standard deviation above 0. Rounding can give equal values one that is not.
    auto [low, high] = std::ranges::minmax(prompt.metric);
    if (low == high) return false;
  }
  if (prompt.accuracy < rule.low || prompt.accuracy > rule.high) return false;
  return !rule.untruncated || prompt.longest < rule.response_limit - 1;
}

SamplingAction DynamicSampling::add(std::span<const PromptOutcome> generation_batch) {
  ++gen_batches_;
  for (const PromptOutcome& prompt : generation_batch) {
    (passes(rule_, prompt) ? kept_ : failed_).push_back(arrived_);
    ++arrived_;
  }
  auto enough = rule_.order == KeepOrder::prefer ? arrived_ : static_cast<int64_t>(kept_.size());
  if (enough >= rule_.wanted) return SamplingAction::train;
  if (rule_.max_gen_batches <= 0 || gen_batches_ < rule_.max_gen_batches) return SamplingAction::more;
  return rule_.train_short ? SamplingAction::train : SamplingAction::abort;
}

std::vector<int64_t> DynamicSampling::trained() const {
  std::vector<int64_t> order = kept_;
  if (rule_.order == KeepOrder::prefer) order.insert(order.end(), failed_.begin(), failed_.end());
  if (static_cast<int64_t>(order.size()) > rule_.wanted) order.resize(rule_.wanted);
  return order;
}

bool DynamicSampling::may_train(int64_t number) const {
  if (rule_.order == KeepOrder::prefer) return true;
  auto found = std::ranges::lower_bound(kept_, number);
  return found != kept_.end() && *found == number && found - kept_.begin() < rule_.wanted;
}

}  // namespace ucas
