#include "objective/advantage/returns.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "objective/advantage/group_advantage.h"

namespace ucas {

std::vector<double> token_rewards(const Batch& batch) {
  std::vector<double> r(batch.token.size(), 0.0);
  for (const Response& o : batch.responses) {
    if (o.length == 0) continue;
    int64_t last = o.first + o.length - 1;
    if (!batch.reward_kl.empty()) {
      for (int64_t t = o.first; t <= last; ++t) r[t] = -static_cast<double>(batch.reward_kl[t]);
    }
    r[last] += static_cast<double>(o.reward) + o.kl_penalty;
  }
  return r;
}

void discount_backwards(const Batch& batch, double gamma, std::span<double> rewards) {
  for (const Response& o : batch.responses) {
    for (int64_t t = o.first + o.length - 1; t > o.first; --t) rewards[t - 1] += gamma * rewards[t];
  }
}

std::vector<double> gae(const Batch& batch, std::span<const double> reward, double gamma, double lambda) {
  const std::vector<float>& value = batch.signal("value");
  UCAS_CHECK(value.size() == batch.token.size() && reward.size() == batch.token.size(),
             "GAE needs the value and the reward of every token");
  std::vector<double> A(reward.size());
  for (const Response& o : batch.responses) {
    double V_next = 0, A_next = 0;
    for (int64_t t = o.first + o.length - 1; t >= o.first; --t) {
      double V = value[t];
      double delta = reward[t] + gamma * V_next - V;
      A_next = A[t] = delta + gamma * lambda * A_next;
      V_next = V;
    }
  }
  return A;
}

void whiten(const Batch& batch, std::span<double> x, int64_t ddof) {
  UCAS_CHECK(x.size() == batch.token.size(), "expected one value per token");
  const Moments m = moments(batch.trained<double>(x));
  double sigma = ddof == 0 ? std::sqrt(std::max(m.squares / m.n, 1e-8)) : std::sqrt(m.squares / (m.n - 1) + 1e-8);
  for (const Response& o : batch.responses) {
    for (double& v : x.subspan(o.first, o.length)) v = m.spread && o.trained ? (v - m.mean) / sigma : 0;
  }
}

std::vector<float> to_float(std::span<const double> values) { return {values.begin(), values.end()}; }

}  // namespace ucas
