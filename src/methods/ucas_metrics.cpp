#include "methods/ucas_metrics.h"

#include <algorithm>
#include <cmath>

#include "methods/group_advantage.h"

namespace ucas {

namespace {

struct Spread {
  double count = 0, sum = 0, squares = 0, low = 0, high = 0;
  void add(double x) {
    low = count == 0 ? x : std::min(low, x);
    high = count == 0 ? x : std::max(high, x);
    count += 1;
    sum += x;
    squares += x * x;
  }
  double variance() const {  // rounding may leave it below 0; a NaN stays one
    double v = squares / count - mean() * mean();
    return v < 0 ? 0 : v;
  }
  double mean() const { return count == 0 ? 0 : sum / count; }
  double std() const { return count == 0 ? 0 : std::sqrt(variance()); }
};

// docs/numerics.md says how each is defined.
void record_metrics(const Batch& batch, std::span<const float> A_final, const UcasSteps& steps, Trace& trace) {
  Spread weight, net, net_size;
  double rewarded = 0, clamped = 0;  // tokens with A_mod > 0, and those of them that Eq. 10 holds at 0
  for (const Group& group : batch.groups) {
    double sum = 0, responses = 0;
    for (int64_t row = group.first; row < group.first + group.count; ++row) {
      const Response& o_i = batch.responses[static_cast<size_t>(row)];
      if (o_i.length == 0) continue;
      auto A_i = A_final.subspan(static_cast<size_t>(o_i.first), static_cast<size_t>(o_i.length));
      if (steps.A[static_cast<size_t>(row)] != 0) weight.add(steps.W[static_cast<size_t>(row)]);
      if (steps.A_mod[static_cast<size_t>(row)] > 0) {
        rewarded += static_cast<double>(o_i.length);
        clamped += static_cast<double>(std::count(A_i.begin(), A_i.end(), 0.0f));
      }
      sum += mean(A_i);
      responses += 1;
    }
    if (responses == 0) continue;
    net.add(sum / responses);
    net_size.add(std::fabs(sum / responses));
  }
  if (weight.count == 0) weight.add(1.0);
  trace.metrics.insert(trace.metrics.end(), {{"ucas/weight/mean", weight.mean()},
                                             {"ucas/weight/std", weight.std()},
                                             {"ucas/weight/min", weight.low},
                                             {"ucas/weight/max", weight.high},
                                             {"ucas/clamped_share", rewarded == 0 ? 0 : clamped / rewarded},
                                             {"ucas/confidence/mean", mean(batch.confidence)},
                                             {"ucas/net_advantage/mean", net.mean()},
                                             {"ucas/net_advantage/abs_mean", net_size.mean()}});
}

}  // namespace

void record_ucas(const Batch& batch, std::span<const float> A_final, UcasSteps steps, Trace& trace) {
  record_metrics(batch, A_final, steps, trace);
  trace.rows.push_back({"A", false, std::move(steps.A)});
  trace.rows.push_back({"C", false, std::move(steps.C)});
  trace.rows.push_back({"C_hat", false, std::move(steps.C_hat)});
  trace.rows.push_back({"W", false, std::move(steps.W)});
  trace.rows.push_back({"A_mod", false, std::move(steps.A_mod)});
  trace.rows.push_back({"l_hat", true, std::move(steps.l_hat)});
}

}  // namespace ucas
