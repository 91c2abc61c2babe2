// PRIME: token rewards from an implicit process reward model that learns online from the verdicts, beside the verdict
// itself. Both sources are centred by leave-one-out, summed, turned into returns and whitened over the batch.
//
//   q_it   = ln pi_phi(o_it | ..) - ln pi_ref(o_it | ..)     model phi and its frozen start
//   r_it   = beta q_it, 0 at the last token (verl), or q_it (authors)
//   r_it  /= max over the batch of |sum_{k>=t} r_ik|, + 1e-6
//   u_it   = RLOO(r_it) over tokens, v_i = RLOO(acc_i) over responses
//   s_it   = 5 u_it, and + 5 v_i at the last token
//   R_it   = sum_{k>=t} s_ik                                 returns
//   A_it   = (R_it - mean) / sqrt(var + 1e-8)                over all tokens of the batch
//
// Departures. Article: beta q at every token and x - mean of the others; both released codes scale x by n / (n - 1) too
// (leave_one_out = "scaled"). Neither code says what a lone response is: here it keeps its x, as in verl's RLOO.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "methods/implicit_prm.h"
#include "methods/registry.h"
#include "methods/returns.h"

namespace ucas {

namespace {

enum class TokenReward { all_but_last, all, all_scaled };  // beta q but the last | q | beta q
enum class LeaveOneOut { scaled, others };

struct Config {
  PrmConfig prm;
  TokenReward token_reward = TokenReward::all_but_last;
  LeaveOneOut leave_one_out = LeaveOneOut::scaled;
  double coef_prm = 5, coef_gt = 5;  // verl: reward_dpo_coef, reward_gt_coef

  // The reward model's optimizer is the same in both codes: AdamW, 1e-6, no decay, clip 10.
  Config() {
    prm.optimizer.lr = 1e-6;
    prm.optimizer.weight_decay = 0;
    prm.optimizer.grad_clip = 10;
  }
  void fields(Fields& f) {
    f.choice("token_reward", token_reward, {"all_but_last", "all", "all_scaled"},
             "beta q at every token but the last (verl), q at every token (authors), beta q at every token (article)");
    f.choice("leave_one_out", leave_one_out, {"scaled", "others"},
             "x n/(n-1) - sum of means/(n-1), as in the codes, or x - mean of the others, as in the article");
    f.field("coef_prm", coef_prm, Range{0, 1000}, "weight of the reward model's token rewards");
    f.field("coef_gt", coef_gt, Range{0, 1000}, "weight of the verdict");
    f.section("prm", prm);
  }
};

// r_it before centring: [N].
std::vector<double> process_rewards(const Config& config, const Batch& batch, double& normaliser) {
  std::vector<double> r(batch.token.size(), 0.0);
  double scale = config.token_reward == TokenReward::all ? 1.0 : config.prm.beta;
  for (const Response& o : batch.responses) {
    auto first = static_cast<size_t>(o.first), end = first + static_cast<size_t>(o.length);
    if (o.length > 0 && config.token_reward == TokenReward::all_but_last) --end;
    for (size_t t = first; t < end; ++t) r[t] = scale * batch.prm_logratio[t];
  }
  std::vector<double> to_go = r;
  discount_backwards(batch, 1.0, to_go);
  normaliser = 0;
  for (double x : to_go) normaliser = std::fabs(x) <= normaliser ? normaliser : std::fabs(x);  // a NaN stays
  normaliser += 1e-6;
  for (double& x : r) x /= normaliser;
  return r;
}

// Leave-one-out over one group: what a row's values are multiplied by, and what is taken off. `mean`: mean_t(x_j) of
// the rows that take part. Sums run over sorted values, so the order of the rows changes no bit.
struct Centre {
  LeaveOneOut form;
  double n = 0, sum = 0;

  Centre(LeaveOneOut which, std::vector<double> mean) : form(which), n(static_cast<double>(mean.size())) {
    bool nan = std::ranges::any_of(mean, [](double m) { return std::isnan(m); });  // which cannot be sorted
    if (!nan) std::sort(mean.begin(), mean.end());
    for (double m : mean) sum += m;
  }
  // x of a row whose own mean is `own`.
  double operator()(double x, double own) const {
    if (n < 2) return x;
    return form == LeaveOneOut::scaled ? (n * x - sum) / (n - 1) : x - (sum - own) / (n - 1);
  }
};

std::vector<double> row_means(const Batch& batch, const Group& group, std::span<const double> x) {
  std::vector<double> mean;
  for (const Response& o : batch.of(group)) {
    double sum = 0;
    for (int64_t t = 0; t < o.length; ++t) sum += x[static_cast<size_t>(o.first + t)];
    mean.push_back(o.length == 0 ? 0 : sum / static_cast<double>(o.length));
  }
  return mean;
}

class Prime final : public Method {
 public:
  std::string title() const override { return "PRIME"; }
  std::string paper() const override {
    return "Cui et al. 2025, Process Reinforcement through Implicit Rewards (arXiv:2502.01456)";
  }
  std::vector<std::string> presets() const override { return {"verl", "authors"}; }
  void use_preset(const std::string& name) override {
    authors_ = name == "authors";
    config_.token_reward = authors_ ? TokenReward::all : TokenReward::all_but_last;
    config_.prm.order = authors_ ? PrmOrder::after : PrmOrder::before;
  }
  // Clip 0.2 and the token mean in both; verl's actor adds its dual clip, the authors' older one has none. Prompts of
  // medium difficulty: verl prefers them among those generated, the authors generate until the batch is full of them.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = objective.clip_high = 0.2;
    objective.dual_clip = authors_ ? 0 : 3;
    objective.aggregation = Aggregation::token_mean;
    objective.keep_low = 0.2;
    objective.keep_high = 0.8;
    objective.keep_untruncated = !authors_;
    objective.keep_order = authors_ ? KeepOrder::refill : KeepOrder::prefer;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  Needs needs() const override {
    Needs needs;
    needs.prm = config_.prm;
    return needs;
  }

  std::vector<Equation> equations() const override {
    const PrmConfig& prm = config_.prm;
    std::string beta = config_.token_reward == TokenReward::all ? "" : str(prm.beta, " ");
    bool last = config_.token_reward != TokenReward::all_but_last, before = prm.order == PrmOrder::before;
    std::string others = config_.leave_one_out == LeaveOneOut::scaled ? "(n x - sum_j mean_t(x_j)) / (n - 1)"
                                                                      : "x - mean of mean_t(x_j) over the others";
    return {{"implicit reward", "q_it = ln pi_phi(o_it) - ln pi_ref(o_it)",
             "a second model phi, read through its log-ratio to its frozen start"},
            {"reward model's loss", str("BCE(sigmoid(", prm.beta, " sum_t q_it), acc_i), lr ", prm.optimizer.lr),
             str("phi learns from the verdicts alone, one update per step, ", before ? "before" : "after",
                 " it scores the batch")},
            {"token reward", str("r_it = ", beta, "q_it", last ? "" : " for t < L_i, r_iL = 0"),
             last ? "every token has one" : "the last token has none"},
            {"batch norm", "r_it = r_it / (max |sum_{k>=t} r_ik| + 1e-6)", "the largest return of the batch becomes 1"},
            {"leave-one-out", str("u, v: x = ", others),
             "both sources, token rewards and verdicts, are compared with the group's other responses"},
            {"advantage", str("A = whiten(sum_{k>=t} ", config_.coef_prm, " u_ik + ", config_.coef_gt, " v_i)"),
             "returns of both, whitened over the tokens of the batch"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    UCAS_CHECK(batch.prm_logratio.size() == advantage.size(), "PRIME needs q of every token");
    double normaliser = 0;
    std::vector<double> r = process_rewards(config_, batch, normaliser);
    std::vector<double> R(r.size(), 0.0);
    Trace::Row verdicts{"v", false, std::vector<float>(batch.responses.size())};
    for (const Group& group : batch.groups) {
      auto o = batch.of(group);
      std::vector<double> own = row_means(batch, group, r), with_tokens, acc;
      for (size_t i = 0; i < o.size(); ++i) {
        acc.push_back(is_right(o[i]) ? 1.0 : 0.0);
        if (o[i].length > 0) with_tokens.push_back(own[i]);  // an empty response has no token rewards to compare with
      }
      Centre prm(config_.leave_one_out, with_tokens), gt(config_.leave_one_out, acc);
      for (size_t i = 0; i < o.size(); ++i) {
        double v = gt(acc[i], acc[i]);
        verdicts.values[static_cast<size_t>(group.first) + i] = static_cast<float>(v);
        if (o[i].length == 0) continue;
        auto first = static_cast<size_t>(o[i].first), last = first + static_cast<size_t>(o[i].length) - 1;
        for (size_t t = first; t <= last; ++t) R[t] = config_.coef_prm * prm(r[t], own[i]);
        R[last] += config_.coef_gt * v;
      }
    }
    if (!batch.reward_kl.empty()) {  // KL in reward, where the config adds it
      for (size_t t = 0; t < R.size(); ++t) R[t] -= batch.reward_kl[t];
    }
    Trace::Row sum{"s", true, std::vector<float>(R.begin(), R.end())};
    discount_backwards(batch, 1.0, R);
    std::vector<double> A = R;
    whiten(A);
    std::copy(A.begin(), A.end(), advantage.begin());

    trace.rows.push_back({"q", true, batch.prm_logratio});
    trace.rows.push_back({"r", true, std::vector<float>(r.begin(), r.end())});
    trace.rows.push_back(std::move(verdicts));
    trace.rows.push_back(std::move(sum));
    trace.rows.push_back({"R", true, std::vector<float>(R.begin(), R.end())});
    trace.metrics.emplace_back("prm/normalizer", normaliser);
  }

 private:
  Config config_;
  bool authors_ = false;
};

}  // namespace

std::unique_ptr<Method> make_prime() { return std::make_unique<Prime>(); }

}  // namespace ucas
