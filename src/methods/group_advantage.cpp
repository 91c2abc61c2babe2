#include "methods/group_advantage.h"

#include <algorithm>
#include <cmath>

#include "methods/method.h"

namespace ucas {

void GroupAdvantageConfig::fields(Fields& f) {
  f.field("eps", eps, Range{0, 1}, "added to standard deviations and ranges before dividing");
  f.field("ddof", ddof, Range{0, 1}, "standard deviation over G - ddof");
  f.choice("group_of_one", group_of_one, {"reward", "zero"}, "advantage of the only response to a prompt");
}

std::vector<double> zscore(std::span<const double> x, const std::vector<bool>& counted, double eps, int64_t ddof) {
  std::vector<double> values;
  for (size_t i = 0; i < x.size(); ++i) {
    if (counted.empty() || counted[i]) values.push_back(x[i]);
  }
  std::vector<double> z(x.size(), 0.0);
  if (values.size() < 2) return z;
  std::sort(values.begin(), values.end());
  // Equal values must give exactly 0: their computed mean may be off by an ulp, which eps would magnify.
  if (values.front() == values.back()) return z;
  double n = static_cast<double>(values.size()), sum = 0, squares = 0;
  for (double v : values) sum += v;
  double mu = sum / n;
  for (double v : values) squares += (v - mu) * (v - mu);
  double sigma = std::sqrt(squares / (n - static_cast<double>(ddof)));
  for (size_t i = 0; i < x.size(); ++i) {
    if (counted.empty() || counted[i]) z[i] = (x[i] - mu) / (sigma + eps);
  }
  return z;
}

std::vector<double> group_advantage(std::span<const Response> group, const GroupAdvantageConfig& config) {
  std::vector<double> R;
  for (const Response& o_i : group) R.push_back(o_i.reward);
  if (R.size() == 1 && config.group_of_one == GroupOfOne::reward) return {R[0] / (1 + config.eps)};
  return zscore(R, {}, config.eps, config.ddof);
}

std::vector<double> min_max(std::span<const float> x, double eps) {
  std::vector<double> scaled(x.size(), 0.0);
  if (x.empty()) return scaled;
  auto [low, high] = std::minmax_element(x.begin(), x.end());
  double range = static_cast<double>(*high) - *low;
  if (range == 0) return scaled;
  for (size_t t = 0; t < x.size(); ++t) scaled[t] = (static_cast<double>(x[t]) - *low) / (range + eps);
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

void broadcast_group_advantage(const Batch& batch, const GroupAdvantageConfig& config, std::span<float> advantage,
                               Trace& trace) {
  Trace::Row row{"A", false, std::vector<float>(batch.responses.size())};
  for (const Group& group : batch.groups) {
    auto o = batch.of(group);
    std::vector<double> A = group_advantage(o, config);  // Eq. 3
    for (size_t i = 0; i < o.size(); ++i) {
      row.values[static_cast<size_t>(group.first) + i] = static_cast<float>(A[i]);
      auto of_i = advantage.subspan(static_cast<size_t>(o[i].first), static_cast<size_t>(o[i].length));
      std::fill(of_i.begin(), of_i.end(), static_cast<float>(A[i]));
    }
  }
  trace.rows.push_back(std::move(row));
}

}  // namespace ucas
