// UCAS, paper form (Algorithm 1): Eq. 3's advantage, first weighted by how confident the response is among its group
// (stage 1), then lowered per token by how certain the token's raw logit is among its response (stage 2).
// All signals come from the old policy: C_it = logsumexp(z) - mean_v z with z = logits / temperature, and l_it = the
// raw logit of the sampled token (Eq. 5; kernels/lm_head.h computes both).
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

// Defaults are the paper's table. A negative alpha_pos or alpha_neg means: the same as alpha.
struct Config {
  double alpha = 0.25;    // Eq. 8; 0 = token-level shaping only
  double alpha_pos = -1;  // for right responses (A > 0)
  double alpha_neg = -1;  // for wrong responses (A < 0)
  double beta = 0.01;     // Eq. 10; 0 = response-level shaping only
  GroupAdvantageConfig group;

  double for_right() const { return alpha_pos < 0 ? alpha : alpha_pos; }
  double for_wrong() const { return alpha_neg < 0 ? alpha : alpha_neg; }

  void fields(Fields& f) {
    f.field("alpha", alpha, Range{0, 10}, "strength of response-level modulation (Eq. 8); 0 = off");
    f.field("alpha_pos", alpha_pos, Range{-1, 10}, "alpha of right responses; -1 = alpha");
    f.field("alpha_neg", alpha_neg, Range{-1, 10}, "alpha of wrong responses; -1 = alpha");
    f.field("beta", beta, Range{0, 10}, "token certainty penalty (Eq. 10); 0 = off");
    group.fields(f);
  }
};

// What Algorithm 1 computes on its way, kept for the report.
struct Steps {
  explicit Steps(const Batch& batch)
      : A(batch.responses.size()), C_hat(A.size()), W(A.size(), 1.0f), A_mod(A.size()), l_hat(batch.token.size()) {}
  std::vector<float> A, C_hat, W, A_mod;  // [B]
  std::vector<float> l_hat;               // [N]
};

void algorithm_1(const Config& config, const Batch& batch, std::span<float> A_final, Steps& steps) {
  const double alpha_pos = config.for_right(), alpha_neg = config.for_wrong(), beta = config.beta;
  const double eps = config.group.eps;
  for (const Group& group : batch.groups) {
    auto o = batch.of(group);                                  // o_1 .. o_G
    std::vector<double> A = group_advantage(o, config.group);  // Eq. 3
    std::vector<double> C;                                     // Eq. 6: C(o_i|q) = mean_t C_it
    for (const Response& o_i : o) C.push_back(mean(Batch::tokens(batch.confidence, o_i)));
    std::vector<double> C_hat = zscore(C, non_empty(o), eps, config.group.ddof);  // Eq. 7
    for (size_t i = 0; i < o.size(); ++i) {
      double W = A[i] > 0   ? std::exp(-alpha_pos * C_hat[i])  // Eq. 8: a confident right answer counts less,
                 : A[i] < 0 ? std::exp(alpha_neg * C_hat[i])   // a confident wrong one is punished more
                            : 1.0;
      double A_mod = W * A[i];
      std::vector<double> l_hat = min_max(Batch::tokens(batch.logit, o[i]), eps);  // Eq. 9, within the response
      size_t first = static_cast<size_t>(o[i].first);
      for (size_t t = 0; t < l_hat.size(); ++t) {  // Eq. 10
        double shaped = A_mod - beta * l_hat[t];
        A_final[first + t] = static_cast<float>(A_mod >= 0 ? std::max(0.0, shaped) : shaped);
        steps.l_hat[first + t] = static_cast<float>(l_hat[t]);
      }
      size_t row = static_cast<size_t>(group.first) + i;
      steps.A[row] = static_cast<float>(A[i]);
      steps.C_hat[row] = static_cast<float>(C_hat[i]);
      steps.W[row] = static_cast<float>(W);
      steps.A_mod[row] = static_cast<float>(A_mod);
    }
  }
}

struct Spread {
  double count = 0, sum = 0, squares = 0, low = 0, high = 0;
  void add(double x) {
    low = count == 0 ? x : std::min(low, x);
    high = count == 0 ? x : std::max(high, x);
    count += 1;
    sum += x;
    squares += x * x;
  }
  double mean() const { return count == 0 ? 0 : sum / count; }
  double std() const { return count == 0 ? 0 : std::sqrt(std::max(0.0, squares / count - mean() * mean())); }
};

// What shaping did to the step (docs/numerics.md says how each is defined).
void record_metrics(const Batch& batch, std::span<const float> A_final, const Steps& steps, Trace& trace) {
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

class Ucas final : public Method {
 public:
  std::string title() const override { return "UCAS"; }
  std::string paper() const override {
    return "Xie et al. 2025, Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning "
           "(arXiv:2510.10649)";
  }
  // The loss is DAPO's (Eq. 11), with dynamic sampling.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 0.2;
    objective.clip_high = 0.28;
    objective.dual_clip = 10;
    objective.aggregation = Aggregation::token_mean;
    objective.keep_mixed_groups = true;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    UCAS_CHECK(batch.confidence.size() == advantage.size() && batch.logit.size() == advantage.size(),
               "UCAS needs the confidence and the chosen logit of every token");
    Steps steps(batch);
    algorithm_1(config_, batch, advantage, steps);
    record_metrics(batch, advantage, steps, trace);
    trace.rows.push_back({"A", false, std::move(steps.A)});
    trace.rows.push_back({"C_hat", false, std::move(steps.C_hat)});
    trace.rows.push_back({"W", false, std::move(steps.W)});
    trace.rows.push_back({"A_mod", false, std::move(steps.A_mod)});
    trace.rows.push_back({"l_hat", true, std::move(steps.l_hat)});
  }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Method> make_ucas() { return std::make_unique<Ucas>(); }

}  // namespace ucas
