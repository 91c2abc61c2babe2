#include "methods/group_advantage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/str.h"
#include "methods/method.h"

namespace ucas {

void GroupAdvantageConfig::fields(Fields& f) {
  f.field("eps", eps, Range{0, 1}, "added to standard deviations and ranges before dividing");
  f.field("ddof", ddof, Range{0, 1}, "standard deviation over G - ddof");
  f.choice("group_of_one", group_of_one, {"reward", "zero"}, "advantage of the only response to a prompt");
}

namespace {

// Mean and deviation of the counted values.
struct Moments {
  bool spread = false;  // at least two of them, and not all equal
  double mean = 0, std = 0;
};

Moments moments(std::span<const double> x, const std::vector<bool>& counted, int64_t ddof) {
  UCAS_CHECK(counted.empty() || counted.size() == x.size(), "one mark per value");
  std::vector<double> values;
  for (size_t i = 0; i < x.size(); ++i) {
    if (counted.empty() || counted[i]) values.push_back(x[i]);
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) return {true, kNan, kNan};
  std::sort(values.begin(), values.end());
  // Equal values must give exactly 0: their computed mean may be off by an ulp, which eps would magnify.
  if (values.size() < 2 || values.front() == values.back()) return {};
  double n = static_cast<double>(values.size()), sum = 0, squares = 0;
  for (double v : values) sum += v;
  double mu = sum / n;
  for (double v : values) squares += (v - mu) * (v - mu);
  return {true, mu, std::sqrt(squares / (n - static_cast<double>(ddof)))};
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

std::vector<double> zscore(std::span<const double> x, const std::vector<bool>& counted, double eps, int64_t ddof) {
  Moments m = moments(x, counted, ddof);
  return standardized(x, counted, m, m.std + eps);
}

std::vector<double> centered(std::span<const double> x, const std::vector<bool>& counted) {
  return standardized(x, counted, moments(x, counted, 0), 1);
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
    if (std::isnan(v)) return std::vector<double>(x.size(), v);  // what is the smallest beside it is not defined
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

std::vector<bool> non_empty(std::span<const Response> responses) {
  std::vector<bool> is;
  for (const Response& response : responses) is.push_back(response.length > 0);
  return is;
}

void broadcast(const Batch& batch, const AdvantageOf& advantage_of, std::span<float> advantage, Trace& trace) {
  Trace::Row row{"A", false, std::vector<float>(batch.responses.size())};
  for (const Group& group : batch.groups) {
    auto o = batch.of(group);
    std::vector<double> A = advantage_of(o);
    UCAS_CHECK(A.size() == o.size(), "one advantage per response");
    for (size_t i = 0; i < o.size(); ++i) {
      row.values[static_cast<size_t>(group.first) + i] = static_cast<float>(A[i]);
      auto of_i = advantage.subspan(static_cast<size_t>(o[i].first), static_cast<size_t>(o[i].length));
      std::fill(of_i.begin(), of_i.end(), static_cast<float>(A[i]));
    }
  }
  trace.rows.push_back(std::move(row));
}

void broadcast_group_advantage(const Batch& batch, const GroupAdvantageConfig& config, std::span<float> advantage,
                               Trace& trace) {
  broadcast(batch, [&](std::span<const Response> group) { return group_advantage(group, config); }, advantage, trace);
}

Equation group_advantage_equation(const GroupAdvantageConfig& config, const std::string& where,
                                  const std::string& reward) {
  return {where,
          str("A_i = (", reward, "_i - mean(", reward, ")) / (std(", reward, ") + ", config.eps, "), std over G",
              config.ddof == 1 ? " - 1" : ""),
          str("a response's reward against those of the same prompt; the same for all its tokens; 0 where all rewards "
              "are equal; alone in its group: ",
              config.group_of_one == GroupOfOne::reward ? "its reward" : "0")};
}

}  // namespace ucas
