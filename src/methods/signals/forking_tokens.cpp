// The 80/20 rule: only the rho = 20 % of tokens with the highest entropy, where the reasoning forks, carry DAPO's loss.
// Two forms, which differ by 1 / rho = 5 in the size of the gradient:
//   released  the max(1, int(n rho + 0.9999)) tokens of largest H in each micro-batch; the mean divides by the tokens
//             selected
//   trl       tokens with H >= quantile(H, 1 - rho) in each mini-batch; the mean divides by all tokens
#include <algorithm>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

enum class ForkingRule { count, quantile };
enum class DivideBy { selected, all };

class ForkingTokens final : public GroupRelative {
 public:
  // The authors' code selects within a micro-batch; `trl` keeps our mini-batch, for TRL's batch is neither.
  explicit ForkingTokens(std::string_view preset) {
    if (preset == "trl") {
      rule_ = ForkingRule::quantile;
      divide_by_ = DivideBy::all;
      scope_ = Scope::mini;
    }
    objective_ = {.clip_high = 0.28, .dual_clip = 10, .keep_mixed_groups = true};  // DAPO otherwise
  }
  void fields(Fields& f) override {
    f.field("rho", rho_, Range{0, 1}, "fraction of tokens with the highest entropy that carry loss");
    f.choice("rule", rule_, {"count", "quantile"},
             "selection rule: a count of tokens, or all tokens at or above the 1 - rho quantile");
    f.choice("divide_by", divide_by_, {"selected", "all"},
             "divisor of the loss: the number of selected tokens, or of all tokens");
    scope_field(f, scope_);
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.selection = Selection{scope_, divide_by_ == DivideBy::selected}}; }
  std::vector<Equation> equations() const override {
    std::string which = rule_ == ForkingRule::count
                            ? str("t among the max(1, int(", rho_, " n + 0.9999)) tokens of largest H")
                            : str("H_t >= the ", 1 - rho_, " quantile of H");
    return {equation("A"),
            {"objective",
             str("loss_t = [", which, " in the ", scope_words(scope_), "] clipped ratio loss; mean over ",
                 divide_by_ == DivideBy::selected ? "these tokens" : "all tokens"),
             "only tokens at which the policy hesitates are learned from"}};
  }

  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    std::vector<TokenAt> tokens = valid_tokens(in);
    if (tokens.empty()) return;
    std::vector<double> H;
    for (const TokenAt& x : tokens) H.push_back(in.entropy[x.index]);
    if (rule_ == ForkingRule::count) {
      double n = static_cast<double>(tokens.size());
      auto k = std::max<size_t>(1, static_cast<size_t>(n * rho_ + 0.9999));
      for (int64_t index : largest(in, tokens, H, k)) mark[index] = 1;
    } else {
      double threshold = quantile(H, 1 - rho_);
      // Written so that a NaN selects all: it must reach the loss and be noticed.
      for (size_t i = 0; i < tokens.size(); ++i) mark[tokens[i].index] = !(H[i] < threshold);
    }
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    for (size_t t = 0; t < in.mark.size(); ++t) {
      if (in.mark[t] == 0) out.loss[t] = out.d_logprob[t] = out.clipped[t] = 0;
    }
  }

 private:
  double rho_ = 0.2;
  ForkingRule rule_ = ForkingRule::count;
  DivideBy divide_by_ = DivideBy::selected;
  Scope scope_ = Scope::micro;
};

}  // namespace

MethodRow forking_tokens_row() {
  return {.title = "Forking tokens (80/20)",
          .paper =
              "Wang et al. 2025, Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective Reinforcement "
              "Learning for LLM Reasoning (arXiv:2506.01939)",
          .presets = {"released", "trl"},
          .create = create<ForkingTokens>};
}

}  // namespace ucas
