// Differential smoothing (DS-GRPO): a right response is worth the more the less likely it was, a wrong one the less:
//   A_i = z(R)_i - gamma_p ln pi_old(o_i|q)   where the verdict is right
//   A_i = z(R)_i + gamma_n ln pi_old(o_i|q)   otherwise (its Eq. 6)
// ln pi_old(o_i|q) is the sum over the response's tokens; `length = "mean"` (ours) divides it by their number, since a
// sum is mostly the response's length. Where UCAS under `logprob` multiplies the advantage of right and wrong responses
// by what is relative to the group, this adds what is not.
//
// The article's analysis has the base model in place of pi_old; its experiments have pi_old, and so has this. The
// values of gamma are ours: those of the article were not at hand. The loss is DAPO's, as for UCAS, so that two such
// runs differ by their advantages alone.
// Read for this: two transcriptions of the article's Eq. 4 and 6, which agree; the authors' code was not found.
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

enum class ResponseLogprob { sum, mean };

class DsGrpo final : public GroupRelative {
 public:
  explicit DsGrpo(std::string_view) {
    objective_ = {
        .clip_high = 0.28, .dual_clip = 10, .aggregation = Aggregation::group_token_mean, .keep_mixed_groups = true};
  }
  void fields(Fields& f) override {
    f.field("gamma_p", gamma_p_, Range{0, 100}, "weight of minus the log-prob of right responses; 0 = off");
    f.field("gamma_n", gamma_n_, Range{0, 100}, "weight of the log-prob of wrong responses; 0 = off");
    f.choice("length", length_, {"sum", "mean"},
             "log-prob of a response: the sum of token log-probs (paper), or the mean");
    GroupRelative::fields(f);
  }
  Needs needs() const override { return {.signals = {signals::old_logprob()}}; }
  std::vector<Equation> equations() const override {
    return {equation("A"),
            {"log-prob", str("l_i = ", length_ == ResponseLogprob::sum ? "sum" : "mean", "_t ln pi_old(o_it)"),
             "how likely the policy found the response"},
            {"Eq. 6", str("A_i - ", gamma_p_, " l_i if right, A_i + ", gamma_n_, " l_i otherwise"),
             "unlikely right responses are rewarded more, unlikely wrong ones punished more"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    GroupRelative::advantages(batch, advantage, recording);
    std::vector<float> logprob;
    for (const Response& o : batch.responses) {
      const double mean_lp = mean(Batch::tokens(batch.old_logprob, o));
      const double l = length_ == ResponseLogprob::sum ? mean_lp * static_cast<double>(o.length) : mean_lp;
      const double gamma = is_right(o) ? -gamma_p_ : gamma_n_;
      for (float& A : advantage.subspan(o.first, o.length)) {
        A = static_cast<float>(A + (gamma == 0 ? 0 : gamma * l));
      }
      logprob.push_back(static_cast<float>(l));
    }
    recording.record_responses("l", std::move(logprob));
  }

 private:
  double gamma_p_ = 0.001, gamma_n_ = 0.001;
  ResponseLogprob length_ = ResponseLogprob::sum;
};

}  // namespace

MethodRow ds_grpo_row() {
  return {.title = "DS-GRPO",
          .paper =
              "Gai et al. 2025, Differential Smoothing Mitigates Sharpening and Improves LLM Reasoning "
              "(arXiv:2511.19942)",
          .presets = {"paper"},
          .create = create<DsGrpo>};
}

}  // namespace ucas
