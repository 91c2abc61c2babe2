// STARE: of the tokens that the policy found unlikely, those of right responses count a little more, so that entropy
// stays up; the rest is GRPO with clip-higher. With s_t = -ln pi_theta(o_t) of the policy being updated, detached:
//   L+       the ceil(top n) tokens of largest s among the n tokens with A > 0, at least one
//   L-       the same among the tokens with A < 0
//   omega_t  `amplify` in L+; under C2 also `attenuate` in L-; 1 elsewhere, and everywhere while the mean entropy of
//   the
//            scope is not below `target_entropy`
//   loss_t   omega_t times the clipped ratio loss with dual clip
//
//   preset    scope of L+ and L-
//   paper     mini-batch
//   released  micro-batch, as the authors' code selects
// Departures: the released gate compares the mean entropy of the whole step before its first update, this one that of
// the scope at each update; with one update a step, which is the article's setting, the two are the same number but for
// the cut into scopes. Not here: the article's schedule that moves the two weights from step to step (its Sec. 4.4, off
// in the released script).
// Read for this: the authors' code (hp-luo/STARE: core_algos.py, the script of Qwen2.5-Math-7B).
#include <algorithm>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

enum class StareVariant { o1, c2 };

// What select() says of a token.
constexpr uint8_t kRareRewarded = 1, kRarePunished = 2;  // in L+, in L-

class Stare final : public GroupRelative {
 public:
  // The released script: clip 0.2 and 0.28, dual clip 10, token mean, groups with 0 < correct < G.
  explicit Stare(std::string_view preset) : scope_(preset == "released" ? Scope::micro : Scope::mini) {
    objective_ = {.clip_high = 0.28, .dual_clip = 10, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.choice("variant", variant_, {"o1", "c2"},
             "tokens to reweigh: unlikely tokens of positive advantage alone (o1), or of both signs (c2)");
    f.field("top", top_, Range{0, 1},
            "fraction of the tokens of each sign that counts as unlikely, at least one token");
    f.field("amplify", amplify_, Range{1, 100}, "factor on the loss of unlikely tokens of positive advantage");
    f.field("attenuate", attenuate_, Range{0, 1},
            "factor on the loss of unlikely tokens of negative advantage, under c2");
    f.field("target_entropy", target_entropy_, Range{0, 100},
            "mean entropy in nats from which on all tokens count alike; 0 = always alike");
    scope_field(f, scope_);
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.selection = Selection{scope_}}; }
  std::vector<Equation> equations() const override {
    const std::string scope = scope_words(scope_), top = str("ceil(", top_, " n)");
    const bool both = variant_ == StareVariant::c2;
    std::string omega = str("omega_t = ", amplify_, " in L+", both ? str(", ", attenuate_, " in L-") : "",
                            ", 1 elsewhere; 1 for all unless mean H < ", target_entropy_);
    return {
        equation("A"),
        {"surprisal", "s_t = -ln pi_theta(o_t)", "how unlikely the policy that is updated finds the token"},
        {"rare tokens",
         str("L+ = the ", top, " tokens of largest s with A > 0",
             both ? str("; L- = the ", top, " tokens of largest s with A < 0") : "", ", in the ", scope),
         "of tokens that are rewarded the least likely ones, which keep entropy up"},
        {"weights", omega,
         str("unlikely rewarded tokens count more while entropy is low", both ? ", unlikely punished ones less" : "")},
        {"objective", "loss_t = omega_t clipped ratio loss", "GRPO's otherwise"}};
  }

  void select(const LossInput& in, std::span<uint8_t> mark) const override {
    const std::vector<TokenAt> tokens = valid_tokens(in);
    std::vector<double> H;
    for (const TokenAt& x : tokens) H.push_back(in.entropy[x.index]);
    // Written so that a NaN opens the gate: it reaches the loss by the token's own numbers.
    const double n = static_cast<double>(tokens.size());
    if (tokens.empty() || sorted_sum(std::move(H)) / n >= target_entropy_) return;
    mark_rare(in, tokens, +1, mark);
    if (variant_ == StareVariant::c2) mark_rare(in, tokens, -1, mark);
  }
  void token_loss(const LossInput& in, LossOutput& out) const override {
    clipped_ratio_loss(in, out);
    for (size_t t = 0; t < in.mark.size(); ++t) {
      const double omega = in.mark[t] == kRareRewarded ? amplify_ : in.mark[t] == kRarePunished ? attenuate_ : 1;
      out.loss[t] = static_cast<float>(omega * out.loss[t]);
      out.d_logprob[t] = static_cast<float>(omega * out.d_logprob[t]);
    }
  }

 private:
  // L+ for sign +1, L- for -1.
  void mark_rare(const LossInput& in, std::span<const TokenAt> all, int sign, std::span<uint8_t> mark) const {
    std::vector<TokenAt> tokens;
    std::vector<double> s;
    for (const TokenAt& x : all) {
      if (!(sign * in.advantage[x.index] > 0)) continue;
      tokens.push_back(x);
      s.push_back(-in.logprob[x.index]);
    }
    if (tokens.empty() || top_ == 0) return;
    const auto k = static_cast<size_t>(top_ * static_cast<double>(tokens.size()) + 0.999999);  // as released
    for (int64_t index : largest(in, tokens, s, std::max<size_t>(1, k))) {
      mark[index] = sign > 0 ? kRareRewarded : kRarePunished;
    }
  }

  StareVariant variant_ = StareVariant::o1;
  double top_ = 0.1, amplify_ = 1.1, attenuate_ = 0.9, target_entropy_ = 0.3;
  Scope scope_;
};

}  // namespace

MethodRow stare_row() {
  return {.title = "STARE",
          .paper =
              "2026, STARE: Surprisal-guided Token-level Advantage Reweighting for Policy Entropy Stability "
              "(arXiv:2606.19236)",
          .presets = {"paper", "released"},
          .create = create<Stare>};
}

}  // namespace ucas
