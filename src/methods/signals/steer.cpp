// STEER: tokens whose update would change the policy's entropy most count least. To first order a token's update
// changes the entropy by a multiple of
//   Omega_t = A_t / pi (pi (1 - pi)) (ln pi + H_t)   with pi = pi_old(o_t): A_t (1 - pi) (ln pi + H_t)
// and its loss is multiplied by
//   linear       w_t = w_max - (w_max - w_min) (|Omega_t| - min) / (max - min),   min and max of |Omega| over the step
//   exponential  w_t = max(w_min, exp(-k |Omega_t|)),   k = -ln w_min / max(max, 0.02)
// Where all |Omega| are equal the linear form is (w_min + w_max) / 2. A positive factor on the clipped ratio loss is
// one on its advantage, and so the weight is.
//
// Departures: the released code takes pi, H and the extremes anew of each micro-batch at each update, and pi_old in the
// denominator alone; here all is of the old policy and the whole step, which is the same at the first update but for
// the cut into micro-batches. Its pi is held at 1e-8 or above, as here.
// Read for this: the authors' code (zz-haooo/STEER: core_algos.py, the scripts run_linear and run_exp). That code calls
// pi (1 - pi) "x_one_minus_x_squared"; the article was not at hand to say which of the two is meant.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

constexpr Metric kSteerWeight{.key = "steer/weight_mean", .help = "mean weight of a token"};

enum class SteerForm { linear, exponential };

class Steer final : public GroupRelative {
 public:
  // The released scripts: clip 0.2 and 0.28, dual clip 10, token mean; weights up to 1.2 under linear, to 1 under exp.
  explicit Steer(std::string_view preset)
      : form_(preset == "exponential" ? SteerForm::exponential : SteerForm::linear) {
    objective_ = {.clip_high = 0.28, .dual_clip = 10, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.choice("form", form_, {"linear", "exponential"},
             "form of the token weight: linear between the extremes of |Omega|, or exponential in |Omega|");
    f.field("weight_min", weight_min_, Range{0.01, 1}, "weight of the token with the largest entropy change");
    f.field("weight_max", weight_max_, Range{1, 100},
            "weight of the token with the smallest entropy change, under linear");
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.signals = {signals::old_logprob(), signals::entropy()}}; }
  std::vector<Equation> equations() const override {
    const bool linear = form_ == SteerForm::linear;
    return {equation("A"),
            {"entropy change", "Omega_t = A_t (1 - pi) (ln pi + H_t), pi = pi_old(o_t)",
             "how much the token's update would change the entropy, to first order"},
            {"weight",
             linear ? str("w_t = ", weight_max_, " - (", weight_max_, " - ", weight_min_,
                          ") (|Omega_t| - min) / (max - min)")
                    : str("w_t = max(", weight_min_, ", exp(-k |Omega_t|)), k = ", -std::log(weight_min_),
                          " / max(max |Omega|, 0.02)"),
             "tokens that would change the entropy most count least; extremes over the step"},
            {"A'", "A'_t = w_t A_t", "the loss of a token times its weight"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    GroupRelative::advantages(batch, advantage, recording);
    std::vector<float> omega(advantage.size());
    for (size_t t = 0; t < omega.size(); ++t) {
      const double lp = batch.old_logprob[t], pi = std::exp(lp < kLeast ? kLeast : lp);
      const double change = (1 - (pi > 1 - kTiny ? 1 - kTiny : pi)) * (std::log(pi) + batch.entropy[t]);
      omega[t] = advantage[t] == 0 ? 0 : static_cast<float>(advantage[t] * change);
    }
    std::vector<double> sizes;
    bool nan = false;
    for (float x : batch.trained(omega)) {
      sizes.push_back(std::fabs(x));
      nan = nan || std::isnan(x);
    }
    const double low = sizes.empty() ? 0 : std::ranges::min(sizes), high = sizes.empty() ? 0 : std::ranges::max(sizes);
    std::vector<float> weight(advantage.size());
    for (size_t t = 0; t < weight.size(); ++t) {
      // One NaN leaves the extremes open, and with them every weight.
      weight[t] = nan ? std::nanf("") : static_cast<float>(weight_of(std::fabs(omega[t]), low, high));
      if (advantage[t] != 0) advantage[t] *= weight[t];
    }
    recording.record(kSteerWeight, mean(batch.trained(weight)));
    recording.record_tokens("Omega", std::move(omega));
    recording.record_tokens("w", std::move(weight));
  }

 private:
  static constexpr double kTiny = 1e-8;
  static constexpr double kLeast = -18.420680743952367;  // ln 1e-8

  double weight_of(double size, double low, double high) const {
    if (form_ == SteerForm::exponential) {
      const double k = -std::log(weight_min_) / std::max(high, 0.02);
      return std::clamp(std::exp(-k * size), weight_min_, 1.0);
    }
    if (!(high > low)) return (weight_min_ + weight_max_) / 2;
    // Masked responses may be outside.
    return std::clamp(weight_max_ - (weight_max_ - weight_min_) * (size - low) / (high - low), weight_min_,
                      weight_max_);
  }

  SteerForm form_;
  double weight_min_ = 0.8, weight_max_ = 1.2;
};

}  // namespace

MethodRow steer_row() {
  return {.title = "STEER",
          .paper =
              "Hao et al. 2025, Rethinking Entropy Interventions in RLVR: An Entropy Change Perspective "
              "(arXiv:2510.10150)",
          .presets = {"linear", "exponential"},
          .create = create<Steer>,
          .metrics = {&kSteerWeight}};
}

}  // namespace ucas
