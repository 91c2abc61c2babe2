#include "objective/advantage/group_advantage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace ucas {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// False where a NaN, which has no place in an order, is among them.
bool sorted(std::vector<double>& values) {
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) return false;
  std::ranges::sort(values);
  return true;
}

Moments moments_of(std::span<const double> x, const std::vector<bool>& counted) {
  UCAS_CHECK(counted.empty() || counted.size() == x.size(), "expected one mark per value");
  std::vector<double> values;
  for (size_t i = 0; i < x.size(); ++i) {
    if (counted.empty() || counted[i]) values.push_back(x[i]);
  }
  return moments(std::move(values));
}

// (x_i - mean) / divisor for the counted values; `m` is theirs.
std::vector<double> standardized(std::span<const double> x, const std::vector<bool>& counted, const Moments& m,
                                 double divisor) {
  std::vector<double> z(x.size(), 0.0);
  for (size_t i = 0; m.spread && i < x.size(); ++i) {
    if (counted.empty() || counted[i]) z[i] = (x[i] - m.mean) / divisor;
  }
  return z;
}

std::vector<double> rewards_of(std::span<const Response> group) {
  std::vector<double> R;
  for (const Response& o_i : group) R.push_back(o_i.reward);
  return R;
}

}  // namespace

void GroupAdvantageConfig::fields(Fields& f) {
  f.field("eps", eps, Range{0, 1}, "epsilon added to standard deviations and ranges before division");
  f.field("ddof", ddof, Range{0, 1}, "delta degrees of freedom: standard deviations divide by G - ddof");
  f.choice("group_of_one", group_of_one, {"reward", "zero"},
           "advantage of the only response to a prompt: the reward, or zero");
}

double sorted_sum(std::vector<double> values) {
  return sorted(values) ? std::accumulate(values.begin(), values.end(), 0.0) : kNan;
}

Moments moments(std::vector<double> values) {
  double n = static_cast<double>(values.size());
  if (!sorted(values)) return {true, n, kNan, kNan};
  // Equal values must give exactly 0: their computed mean may be off by an ulp, which eps would magnify.
  if (values.size() < 2 || values.front() == values.back()) return {};
  Moments m{true, n, std::accumulate(values.begin(), values.end(), 0.0) / n, 0};
  for (double v : values) m.squares += (v - m.mean) * (v - m.mean);
  return m;
}

std::vector<double> zscore(std::span<const double> x, const std::vector<bool>& counted, double eps, int64_t ddof) {
  Moments m = moments_of(x, counted);
  return standardized(x, counted, m, std::sqrt(m.squares / (m.n - static_cast<double>(ddof))) + eps);
}

std::vector<double> centered(std::span<const double> x, const std::vector<bool>& counted) {
  return standardized(x, counted, moments_of(x, counted), 1);
}

std::vector<double> centered_rewards(std::span<const Response> group, GroupOfOne group_of_one) {
  std::vector<double> R = rewards_of(group);
  if (R.size() == 1 && group_of_one == GroupOfOne::reward) return R;
  return centered(R, {});
}

std::vector<double> group_advantage(std::span<const Response> group, const GroupAdvantageConfig& config) {
  std::vector<double> R = rewards_of(group);
  if (R.size() == 1 && config.group_of_one == GroupOfOne::reward) return {R[0] / (1 + config.eps)};
  return zscore(R, {}, config.eps, config.ddof);
}

std::vector<double> min_max(std::span<const float> x, double eps, EqualValues equal) {
  std::vector<double> scaled(x.size(), equal == EqualValues::half ? 0.5 : 0.0);
  if (x.empty()) return scaled;
  for (float v : x) {
    if (std::isnan(v)) return std::vector<double>(x.size(), v);  // with a NaN the smallest is not defined
  }
  auto [least, most] = std::minmax_element(x.begin(), x.end());
  double low = *least, range = *most - low;
  double close = equal == EqualValues::half ? 1e-8 + 1e-5 * std::fabs(low) : 0;
  if (range <= close) return scaled;
  for (size_t t = 0; t < x.size(); ++t) scaled[t] = (x[t] - low) / (range + eps);
  return scaled;
}

double mean(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += v;
  return x.empty() ? 0 : sum / static_cast<double>(x.size());
}

std::vector<double> agreement(std::span<const int32_t> answer_class) {
  std::vector<double> shares;
  for (int32_t answer : answer_class) {
    const auto same = answer < 0 ? 1 : std::ranges::count(answer_class, answer);
    shares.push_back(static_cast<double>(same) / static_cast<double>(answer_class.size()));
  }
  return shares;
}

std::vector<bool> non_empty(std::span<const Response> responses) {
  std::vector<bool> is;
  for (const Response& response : responses) is.push_back(response.length > 0);
  return is;
}

}  // namespace ucas
