// What UCAS did to a step, in numbers for the log, and Algorithm 1's values on the way for the report; docs/numerics.md
// says how each is defined.
#include <algorithm>
#include <cmath>
#include <utility>

#include "methods/signals/ucas.h"
#include "objective/advantage/returns.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

constexpr Metric kUcasWeightMean{.key = "ucas/weight/mean",
                                 .help = "`W` over responses with `A != 0`",
                                 .title = "Mean response weight",
                                 .caption = "mean of the response weights W (Eq. 8)"};
constexpr Metric kUcasWeightStd{.key = "ucas/weight/std",
                                .title = "Spread of response weights",
                                .caption = "spread of the response weights W (Eq. 8)"};
constexpr Metric kUcasWeightMin{
    .key = "ucas/weight/min", .title = "Smallest response weight", .caption = "smallest response weight W (Eq. 8)"};
constexpr Metric kUcasWeightMax{
    .key = "ucas/weight/max", .title = "Largest response weight", .caption = "largest response weight W (Eq. 8)"};
constexpr Metric kUcasClamped{.key = "ucas/clamped_share",
                              .unit = Unit::share,
                              .help = "of the tokens of responses with `A_mod > 0`, the share that Eq. 10 clamps to 0",
                              .title = "Clamped tokens",
                              .caption = "share of tokens of rewarded responses that Eq. 10 clamps to zero"};
constexpr Metric kUcasWrongRewarded{
    .key = "ucas/wrong_rewarded_share",
    .unit = Unit::share,
    .help = "share of wrong responses with A > 0, as shaped rewards can give (`method.sign`)"};
constexpr Metric kUcasConfidence{.key = "ucas/confidence/mean",
                                 .unit = Unit::nats,
                                 .help = "mean `C` over tokens",
                                 .title = "Mean token confidence",
                                 .caption = "mean over tokens of C = logsumexp minus mean logit (Eq. 5)"};
constexpr Metric kUcasNet{.key = "ucas/net_advantage/mean",
                          .help =
                              "per group, the mean over responses of their mean final advantage, averaged over groups. "
                              "Without advantage shaping it is 0",
                          .title = "Net advantage of groups",
                          .caption = "mean over groups of the net shaped advantage; shaping makes it nonzero"};
constexpr Metric kUcasNetSize{.key = "ucas/net_advantage/abs_mean",
                              .help = "the same with the size of each group's value",
                              .title = "Size of the net advantage",
                              .caption = "mean over groups of its size"};

struct UcasSpread {
  double count = 0, sum = 0, squares = 0, low = 0, high = 0;
  void add(double x) {
    low = count == 0 ? x : std::min(low, x);
    high = count == 0 ? x : std::max(high, x);
    count += 1;
    sum += x;
    squares += x * x;
  }
  double mean() const { return count == 0 ? 0 : sum / count; }
  // Rounding may leave the variance below 0; a NaN stays one.
  double std() const { return count == 0 ? 0 : std::sqrt(not_below_zero(squares / count - mean() * mean())); }
};

void record_steps(const UcasSteps& steps, Recording& recording) {
  using Step = UcasSteps::OfResponse;
  for (auto [name, value] :
       {std::pair{"A", &Step::A}, {"C", &Step::C}, {"C_hat", &Step::C_hat}, {"W", &Step::W}, {"A_mod", &Step::A_mod}}) {
    std::vector<float> values;
    for (const Step& step : steps.response) values.push_back(static_cast<float>(step.*value));
    recording.record_responses(name, std::move(values));
  }
  recording.record_tokens("l_hat", to_float(steps.l_hat));
}

}  // namespace

void record_ucas_metrics(const Batch& batch, std::span<const float> A_final, const UcasSteps& steps,
                         Recording& recording) {
  UcasSpread weight, net, net_size;
  double rewarded = 0, clamped = 0;      // tokens with A_mod > 0, and those of them that Eq. 10 holds at 0
  double wrong = 0, wrong_rewarded = 0;  // responses that are wrong by the verdict, and those of them with A > 0
  for (const Group& group : batch.groups) {
    double sum = 0, responses = 0;
    for (int64_t row = group.first; row < group.first + group.count; ++row) {
      const Response& o_i = batch.responses[row];
      const UcasSteps::OfResponse& step = steps.response[row];
      if (o_i.length == 0 || !o_i.trained) continue;
      auto A_i = A_final.subspan(o_i.first, o_i.length);
      if (step.A != 0) weight.add(static_cast<float>(step.W));
      wrong += !is_right(o_i);
      wrong_rewarded += !is_right(o_i) && step.A > 0;
      if (step.A_mod > 0) {
        rewarded += static_cast<double>(o_i.length);
        clamped += static_cast<double>(std::ranges::count(A_i, 0.0f));
      }
      sum += mean(A_i);
      responses += 1;
    }
    if (responses == 0) continue;
    net.add(sum / responses);
    net_size.add(std::fabs(sum / responses));
  }
  if (weight.count == 0) weight.add(1.0);
  recording.record(kUcasWeightMean, weight.mean());
  recording.record(kUcasWeightStd, weight.std());
  recording.record(kUcasWeightMin, weight.low);
  recording.record(kUcasWeightMax, weight.high);
  recording.record(kUcasClamped, rewarded == 0 ? 0 : clamped / rewarded);
  recording.record(kUcasWrongRewarded, wrong == 0 ? 0 : wrong_rewarded / wrong);
  recording.record(kUcasConfidence, mean(batch.trained(batch.confidence)));
  recording.record(kUcasNet, net.mean());
  recording.record(kUcasNetSize, net_size.mean());
  record_steps(steps, recording);
}

std::vector<const Metric*> ucas_metrics() {
  return {&kUcasWeightMean,    &kUcasWeightStd,  &kUcasWeightMin, &kUcasWeightMax, &kUcasClamped,
          &kUcasWrongRewarded, &kUcasConfidence, &kUcasNet,       &kUcasNetSize};
}

}  // namespace ucas
