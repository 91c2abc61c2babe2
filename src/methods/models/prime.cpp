// PRIME: token rewards from an implicit process reward model that learns online from the verdicts, and the verdict.
// Both sources are centred by leave-one-out, summed, turned into returns and whitened over the batch.
//
//   q_it   = ln pi_phi(o_it | ..) - ln pi_ref(o_it | ..)     model phi and its frozen start
//   r_it   = beta q_it, 0 at the last token (verl), or q_it (authors)
//   r_it  /= max over the batch of |sum_{k>=t} r_ik|, + 1e-6
//   u_it   = RLOO(r_it) over tokens, v_i = RLOO(acc_i) over responses
//   s_it   = 5 u_it, and + 5 v_i at the last token
//   R_it   = sum_{k>=t} s_ik                                 returns
//   A_it   = (R_it - mean) / sqrt(var + 1e-8)                over all tokens of the batch
//
// Not here: the article's beta q at every token and x - mean of the others; both released codes scale x by n / (n - 1).
// Neither code says what a lone response is: here it keeps its x, as in verl's RLOO.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/registry.h"
#include "objective/advantage/group_advantage.h"
#include "objective/advantage/returns.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

constexpr Metric kPrimeNormalizer{.key = "prm/normalizer",
                                  .help = "what PRIME divides token rewards by: the largest return of the batch"};

struct PrimeOptions {
  PrmConfig prm;
  bool all_tokens = false;           // r_it = q_it at every token, not beta q_it but at the last
  double coef_prm = 5, coef_gt = 5;  // verl: reward_dpo_coef, reward_gt_coef
};

// r_it before centring: [N].
std::vector<double> process_rewards(const PrimeOptions& options, const Batch& batch, double& normaliser) {
  const std::vector<float>& q = batch.signal("prm_logratio");
  std::vector<double> r(batch.token.size(), 0.0);
  double scale = options.all_tokens ? 1.0 : options.prm.beta;
  for (const Response& o : batch.responses) {
    int64_t rewarded = o.length - (options.all_tokens ? 0 : 1);
    for (int64_t t = o.first; t < o.first + rewarded; ++t) r[t] = scale * q[t];
  }
  std::vector<double> to_go = r;
  discount_backwards(batch, 1.0, to_go);
  normaliser = 0;
  for (double x : batch.trained(to_go)) {
    normaliser = std::fabs(x) <= normaliser ? normaliser : std::fabs(x);  // a NaN stays
  }
  normaliser += 1e-6;
  for (double& x : r) x /= normaliser;
  return r;
}

// Leave-one-out over one group: what a row's values are multiplied by, and what is taken off. `means`: mean_t(x_j) of
// the rows that take part.
struct Centre {
  double n = 0, sum = 0;

  explicit Centre(const std::vector<double>& means) : n(static_cast<double>(means.size())), sum(sorted_sum(means)) {}
  double operator()(double x) const { return n < 2 ? x : (n * x - sum) / (n - 1); }
};

double row_mean(const Response& o, std::span<const double> x) {
  double sum = 0;
  for (double value : x.subspan(o.first, o.length)) sum += value;
  return sum / static_cast<double>(o.length);
}

class Prime final : public Method {
 public:
  // Clip 0.2 and the token mean in both; verl's actor adds its dual clip, the authors' older one has none. Prompts of
  // medium difficulty: verl prefers them among those generated, the authors generate until the batch is full of them.
  explicit Prime(std::string_view preset) {
    bool authors = preset == "authors";
    options_.all_tokens = authors;
    options_.prm.order = authors ? PrmOrder::after : PrmOrder::before;
    // The reward model's optimizer is the same in both codes: AdamW, 1e-6, no decay, clip 10.
    options_.prm.optimizer.lr = 1e-6;
    options_.prm.optimizer.weight_decay = 0;
    options_.prm.optimizer.grad_clip = 10;
    objective_ = {.dual_clip = authors ? 0.0 : 3.0,
                  .keep_low = 0.2,
                  .keep_high = 0.8,
                  .keep_untruncated = !authors,
                  .keep_order = authors ? KeepOrder::refill : KeepOrder::prefer};
  }
  void fields(Fields& f) override {
    f.field("coef_prm", options_.coef_prm, Range{0, 1000}, "weight of the reward model's token rewards");
    f.field("coef_gt", options_.coef_gt, Range{0, 1000}, "weight of the verdict");
    f.section("prm", options_.prm);
  }
  Needs needs() const override { return {.prm = options_.prm}; }

  std::vector<Equation> equations() const override {
    const PrmConfig& prm = options_.prm;
    const bool last = options_.all_tokens, before = prm.order == PrmOrder::before;
    std::string beta = last ? "" : str(prm.beta, " ");
    return {{"implicit reward", "q_it = ln pi_phi(o_it) - ln pi_ref(o_it)",
             "a second model phi, read through its log-ratio to its frozen start"},
            {"reward model's loss", str("BCE(sigmoid(", prm.beta, " sum_t q_it), acc_i), lr ", prm.optimizer.lr),
             str("phi learns from the verdicts alone, one update per step, ", before ? "before" : "after",
                 " it scores the batch")},
            {"token reward", str("r_it = ", beta, "q_it", last ? "" : " for t < L_i, r_iL = 0"),
             last ? "every token has one" : "the last token has none"},
            {"batch norm", "r_it = r_it / (max |sum_{k>=t} r_ik| + 1e-6)", "the largest return of the batch becomes 1"},
            {"leave-one-out", "u, v: x = (n x - sum_j mean_t(x_j)) / (n - 1)",
             "both sources, token rewards and verdicts, are compared with the group's other responses"},
            {"advantage", str("A = whiten(sum_{k>=t} ", options_.coef_prm, " u_ik + ", options_.coef_gt, " v_i)"),
             "returns of both, whitened over the trained tokens of the batch"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    double normaliser = 0;
    std::vector<double> r = process_rewards(options_, batch, normaliser), s(r.size(), 0.0);
    std::vector<float> verdicts(batch.responses.size());
    for (const Group& group : batch.groups) {
      auto o = batch.of(group);
      std::vector<double> with_tokens, acc;
      for (const Response& o_i : o) {
        acc.push_back(is_right(o_i) ? 1.0 : 0.0);
        if (o_i.length > 0) with_tokens.push_back(row_mean(o_i, r));  // an empty one has no token rewards to compare
      }
      const Centre prm(with_tokens), gt(acc);
      for (size_t i = 0; i < o.size(); ++i) {
        double v = gt(acc[i]);
        verdicts[group.first + i] = static_cast<float>(v);
        if (o[i].length == 0) continue;
        int64_t last = o[i].first + o[i].length - 1;
        for (int64_t t = o[i].first; t <= last; ++t) s[t] = options_.coef_prm * prm(r[t]);
        s[last] += options_.coef_gt * v;
      }
    }
    if (!batch.reward_kl.empty()) {  // KL in reward, where the config adds it
      for (size_t t = 0; t < s.size(); ++t) s[t] -= batch.reward_kl[t];
    }
    std::vector<double> R = s;
    discount_backwards(batch, 1.0, R);
    std::vector<double> A = R;
    whiten(batch, A);
    std::copy(A.begin(), A.end(), advantage.begin());

    recording.record_tokens("q", batch.signal("prm_logratio"));
    recording.record_tokens("r", to_float(r));
    recording.record_responses("v", std::move(verdicts));
    recording.record_tokens("s", to_float(s));
    recording.record_tokens("R", to_float(R));
    recording.record(kPrimeNormalizer, normaliser);
  }

 private:
  PrimeOptions options_;
};

}  // namespace

MethodRow prime_row() {
  return {.title = "PRIME",
          .paper = "Cui et al. 2025, Process Reinforcement through Implicit Rewards (arXiv:2502.01456)",
          .presets = {"verl", "authors"},
          .create = create<Prime>,
          .metrics = {&kPrimeNormalizer}};
}

}  // namespace ucas
