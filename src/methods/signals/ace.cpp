// ACE, asymmetric confidence-aware error penalty: a wrong response is punished the harder the more training has raised
// its probability; right ones stay as they are:
//   c_i = ln pi_old(o_i|q) - ln pi_ref(o_i|q)
//   A_i = z(R)_i                                 where z(R)_i >= 0
//   A_i = z(R)_i (1 + alpha softplus(c_i))       otherwise,  softplus(c) = ln(1 + e^c)
// It is the second line of UCAS's Eq. 8 with confidence gained since the start in place of confidence: no group decides
// what is much, and a wrong response that the policy has become less sure of keeps nearly its own advantage.
//
// c_i is the sum over the response's tokens, as the article defines it; `length = "mean"` (ours) divides it by their
// number, for a sum grows with the length and softplus with it. alpha = 1 is ours: the article's value was not at hand.
// The loss is DAPO's, one of the two that the article puts it into.
// Read for this: the article's abstract, which defines c_i, and two summaries of its method; no code was found.
#include <cmath>

#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"

namespace ucas {

namespace {

constexpr Metric kAceOverconfident{.key = "ace/overconfident_share",
                                   .unit = Unit::share,
                                   .help = "share of the wrong responses that training has made likelier"};

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

enum class ConfidenceShift { sum, mean };

class Ace final : public GroupRelative {
 public:
  explicit Ace(std::string_view) {
    objective_ = {
        .clip_high = 0.28, .dual_clip = 10, .aggregation = Aggregation::group_token_mean, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("alpha", alpha_, Range{0, 100}, "strength of the confidence penalty on wrong responses; 0 = off");
    f.choice("length", length_, {"sum", "mean"},
             "confidence shift of a response: the sum of token log-ratios (paper), or the mean");
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.signals = {signals::old_logprob()}, .reference = true}; }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"confidence shift",
             str("c_i = ", length_ == ConfidenceShift::sum ? "sum" : "mean", "_t ln pi_old(o_it) - ln pi_ref(o_it)"),
             "how much likelier training has made the response"},
            {"penalty", str("A_i (1 + ", alpha_, " ln(1 + exp(c_i))) if A_i < 0, A_i otherwise"),
             "errors that training has reinforced are punished harder"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    GroupRelative::advantages(batch, advantage, recording);
    const std::vector<float>& reference = batch.signal("ref_logprob");
    std::vector<float> shift;
    double raised = 0, wrong = 0;
    for (const Response& o : batch.responses) {
      std::vector<double> gained;
      for (int64_t t = o.first; t < o.first + o.length; ++t) {
        gained.push_back(static_cast<double>(batch.old_logprob[t]) - reference[t]);
      }
      double c = sorted_sum(std::move(gained));
      if (length_ == ConfidenceShift::mean && o.length > 0) c /= static_cast<double>(o.length);
      shift.push_back(static_cast<float>(c));
      auto A = advantage.subspan(o.first, o.length);
      if (A.empty() || !(A.front() < 0)) continue;
      wrong += o.trained;
      raised += o.trained && c > 0;
      if (alpha_ == 0) continue;
      for (float& a : A) a = static_cast<float>(a * (1 + alpha_ * softplus(c)));
    }
    recording.record_responses("c", std::move(shift));
    recording.record(kAceOverconfident, wrong == 0 ? 0 : raised / wrong);
  }

 private:
  double alpha_ = 1;
  ConfidenceShift length_ = ConfidenceShift::sum;
};

}  // namespace

MethodRow ace_row() {
  return {.title = "ACE",
          .paper =
              "Xu et al. 2026, Overconfident Errors Need Stronger Correction: Asymmetric Confidence Penalties for "
              "Reinforcement Learning (arXiv:2602.21420)",
          .presets = {"paper"},
          .create = create<Ace>,
          .metrics = {&kAceOverconfident}};
}

}  // namespace ucas
