// The 80/20 rule: only the rho = 20 % of tokens with the highest entropy, where the reasoning forks, carry DAPO's loss.
// Two forms, which differ by 1 / rho = 5 in the size of the gradient:
//   released  the max(1, int(n rho + 0.9999)) tokens of largest H in each micro-batch; the mean divides by the tokens
//             selected
//   trl       tokens with H >= quantile(H, 1 - rho) in each mini-batch; the mean divides by all tokens
#include <algorithm>

#include "base/str.h"
#include "methods/clipped_ratio.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"
#include "methods/selection.h"

namespace ucas {

namespace {

enum class Rule { count, quantile };
enum class DivideBy { selected, all };

struct Config {
  double rho = 0.2;
  Rule rule = Rule::count;
  DivideBy divide_by = DivideBy::selected;
  Scope scope = Scope::micro;
  GroupAdvantageConfig group;

  void fields(Fields& f) {
    f.field("rho", rho, Range{0, 1}, "share of tokens, by entropy, that carry loss");
    f.choice("rule", rule, {"count", "quantile"}, "a number of tokens, or all at or above the 1 - rho quantile");
    f.choice("divide_by", divide_by, {"selected", "all"}, "the loss is a mean over the tokens selected, or over all");
    scope_field(f, scope);
    group.fields(f);
  }
};

class ForkingTokens final : public Method {
 public:
  std::string title() const override { return "Forking tokens (80/20)"; }
  std::string paper() const override {
    return "Wang et al. 2025, Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective Reinforcement "
           "Learning for LLM Reasoning (arXiv:2506.01939)";
  }
  // The authors' code selects within a micro-batch; `trl` keeps our mini-batch, for TRL's batch is neither.
  std::vector<std::string> presets() const override { return {"released", "trl"}; }
  void use_preset(const std::string& name) override {
    config_.rule = name == "trl" ? Rule::quantile : Rule::count;
    config_.divide_by = name == "trl" ? DivideBy::all : DivideBy::selected;
    config_.scope = name == "trl" ? Scope::mini : Scope::micro;
  }
  // DAPO otherwise.
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
  std::vector<Equation> equations() const override {
    std::string which = config_.rule == Rule::count
                            ? str("t among the max(1, int(", config_.rho, " n + 0.9999)) tokens of largest H")
                            : str("H_t >= the ", 1 - config_.rho, " quantile of H");
    return {group_advantage_equation(config_.group, "A"),
            {"objective",
             str("loss_t = [", which, " in the ", words(config_.scope), "] clipped ratio loss; mean over ",
                 config_.divide_by == DivideBy::selected ? "these tokens" : "all tokens"),
             "only tokens at which the policy hesitates are learned from"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_.group, advantage, trace);
  }

  SelectionScope selection_scope() const override { return ucas::selection_scope(config_.scope); }
  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    std::vector<TokenAt> tokens = valid_tokens(in);
    if (tokens.empty()) return;
    std::vector<double> H;
    for (const TokenAt& x : tokens) H.push_back(in.entropy[x.index]);
    if (config_.rule == Rule::count) {
      double n = static_cast<double>(tokens.size());
      auto k = std::max<size_t>(1, static_cast<size_t>(n * config_.rho + 0.9999));
      for (size_t index : largest(in, tokens, H, k)) mark[index] = 1;
    } else {
      double threshold = quantile(H, 1 - config_.rho);
      // Written so that a NaN selects all: it must reach the loss and be noticed.
      for (size_t i = 0; i < tokens.size(); ++i) mark[tokens[i].index] = !(H[i] < threshold);
    }
  }
  bool counted(uint8_t mark) const override { return config_.divide_by == DivideBy::all || mark != 0; }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    for (size_t t = 0; t < in.mark.size(); ++t) {
      if (in.mark[t] == 0) out.loss[t] = out.d_logprob[t] = out.clipped[t] = 0;
    }
  }

 private:
  Config config_;
};

}  // namespace

std::unique_ptr<Method> make_forking_tokens() { return std::make_unique<ForkingTokens>(); }

}  // namespace ucas
