// QAE, quantile advantage estimation: GRPO with the group's K-quantile in place of its mean.
//   b   = the smallest reward of the group that at least K G of its rewards do not exceed
//   A_i = (R_i - b) / (std(R) + eps)
// Of rewards of two values, with p the share of right responses, b is the lower one where p <= 1 - K and the higher one
// elsewhere: of a hard prompt only right responses are rewarded, of an easy one only wrong ones punished, and most
// responses have advantage 0. Alone in its group: as GRPO's.
//
// K = 0.4 is what the authors recommend (0.6 where entropy collapses early). The loss is DAPO's, whose baseline the
// article replaces.
//
//   preset    b
//   paper     as above
//   released  interpolated between the two rewards, as torch.quantile does: of 8 responses with 5 right 0.8, not 1
// Read for this: the article's abstract, which states the two regimes, a reader's notes, the authors' README.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/loss/selection.h"

namespace ucas {

namespace {

constexpr Metric kQaeSilent{
    .key = "qae/silent_share", .unit = Unit::share, .help = "share of responses with advantage 0"};

class Qae final : public Method {
 public:
  explicit Qae(std::string_view preset) : interpolated_(preset == "released") {
    objective_ = {
        .clip_high = 0.28, .dual_clip = 10, .aggregation = Aggregation::group_token_mean, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("quantile", quantile_, Range{0, 1}, "K: quantile of the group's rewards that is the baseline");
    group_.fields(f);
  }
  std::vector<Equation> equations() const override {
    return {
        {"baseline",
         interpolated_ ? str("b = the ", quantile_, "-quantile of the rewards, interpolated")
                       : str("b = min{x: at least ", quantile_, " G of the rewards are <= x}"),
         str("the ", quantile_, "-quantile of the prompt's rewards: the lower of two values where at most ", "1 - ",
             quantile_, " of the responses are right, else the higher")},
        {"advantage", str("A_i = (R_i - b) / (std(R) + ", group_.eps, "), std over G", group_.ddof == 1 ? " - 1" : ""),
         "hard prompts reward their right responses alone, easy ones punish their wrong ones alone"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    double zero_gradient = 0, count = 0;
    auto A = [&](std::span<const Response> o) {
      std::vector<double> of = advantages_of(o);
      zero_gradient += static_cast<double>(std::ranges::count(of, 0.0));
      count += static_cast<double>(of.size());
      return of;
    };
    broadcast(batch, A, advantage, recording);
    recording.record(kQaeSilent, count == 0 ? 0 : zero_gradient / count);
  }

 private:
  // Eq. 3 moved from the mean to the baseline, in units of its deviation.
  std::vector<double> advantages_of(std::span<const Response> o) const {
    std::vector<double> A = group_advantage(o, group_);
    if (o.size() < 2) return A;
    std::vector<double> R;
    for (const Response& o_i : o) R.push_back(o_i.reward);
    const Moments found = moments(R);
    if (!found.spread || std::isnan(found.mean)) return A;
    std::ranges::sort(R);
    const double G = static_cast<double>(R.size());
    const auto at = static_cast<size_t>(std::max(1.0, std::ceil(quantile_ * G - 1e-9))) - 1;
    const double b = interpolated_ ? quantile(R, quantile_) : R[at];
    const double std = std::sqrt(found.squares / (G - static_cast<double>(group_.ddof)));
    for (size_t i = 0; i < A.size(); ++i) A[i] = (o[i].reward - b) / (std + group_.eps);
    return A;
  }

  bool interpolated_;
  double quantile_ = 0.4;
  GroupAdvantageConfig group_;
};

}  // namespace

MethodRow qae_row() {
  return {.title = "QAE",
          .paper = "Wu et al. 2025, Quantile Advantage Estimation for Entropy-Safe Reasoning (arXiv:2509.22611)",
          .presets = {"paper", "released"},
          .create = create<Qae>,
          .metrics = {&kQaeSilent}};
}

}  // namespace ucas
