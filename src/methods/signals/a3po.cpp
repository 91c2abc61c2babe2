// A3PO: the tokens that matter most to exploration count several times: the least likely ones of right responses and
// the likeliest ones of wrong responses. Of each response with L tokens, by ln pi_old:
//   right  A_it = low_scale A_i   for the max(1, int(share L)) least likely tokens, A_i for the others
//   wrong  A_it = high_scale A_i  for the max(1, int(share L)) likeliest tokens, A_i for the others
// Right is the verdict. A_i is the group's z-score.
//
// The scales start high and fall to 1 in the article; its schedule could not be read, and the authors' code has none,
// so they stay as given here (5, which that code names as an example). Give another to a run that goes on from a
// checkpoint. The loss is DAPO's, which the article compares with, so that two such runs differ by their advantages.
// Read for this: the authors' code (txy77/Sample-Polarity-of-RLVR: core_algos.py, README), and the article's abstract.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

class A3po final : public GroupRelative {
 public:
  explicit A3po(std::string_view) {
    objective_ = {
        .clip_high = 0.28, .dual_clip = 10, .aggregation = Aggregation::group_token_mean, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("share", share_, Range{0, 1}, "fraction of each response's tokens that is scaled, at least one token");
    f.field("low_scale", low_scale_, Range{0, 1000}, "factor on the least likely tokens of right responses");
    f.field("high_scale", high_scale_, Range{0, 1000}, "factor on the likeliest tokens of wrong responses");
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.signals = {signals::old_logprob()}}; }
  std::vector<Equation> equations() const override {
    const std::string count = str("max(1, int(", share_, " L))");
    return {equation("A"),
            {"right", str("A_it = ", low_scale_, " A_i for the ", count, " least likely of its L tokens, A_i else"),
             "what the policy hardly took and was right counts most"},
            {"wrong", str("A_it = ", high_scale_, " A_i for the ", count, " likeliest of its L tokens, A_i else"),
             "what the policy was sure of and led nowhere is punished most"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    GroupRelative::advantages(batch, advantage, recording);
    for (const Response& o : batch.responses) {
      const bool right = is_right(o);
      scale(Batch::tokens(batch.old_logprob, o), right, advantage.subspan(o.first, o.length));
    }
  }

 private:
  // Of equal tokens the earlier one. With a NaN it is open which tokens are the least likely.
  void scale(std::span<const float> lp, bool right, std::span<float> A) const {
    if (A.empty() || A.front() == 0) return;
    if (std::ranges::any_of(lp, [](float x) { return std::isnan(x); })) {
      std::ranges::fill(A, std::nanf(""));
      return;
    }
    std::vector<size_t> order(lp.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return right ? lp[a] < lp[b] : lp[a] > lp[b]; });
    const auto k = std::max<size_t>(1, static_cast<size_t>(share_ * static_cast<double>(lp.size())));
    for (size_t i = 0; i < std::min(k, order.size()); ++i) {
      A[order[i]] = static_cast<float>((right ? low_scale_ : high_scale_) * A[order[i]]);
    }
  }

  double share_ = 0.2, low_scale_ = 5, high_scale_ = 5;
};

}  // namespace

MethodRow a3po_row() {
  return {.title = "A3PO",
          .paper =
              "Tang et al. 2026, Rethinking Sample Polarity in Reinforcement Learning with Verifiable Rewards "
              "(ACL 2026, arXiv:2512.21625)",
          .presets = {"released"},
          .create = create<A3po>};
}

}  // namespace ucas
