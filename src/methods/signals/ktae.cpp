// KTAE: the group advantage of a response plus, for each of its tokens, the key-token value K of that token id: how
// strongly the id goes with right answers among the responses to the same prompt.
//
// Per group and token id v:
//   K     from the 2 x 2 table of the responses that hold v, and v's frequencies: objective/advantage/key_tokens.h,
//   step by step A_it = A_i + K(o_it)
//
// The default preset is the authors' released code, `paper` the article's summary: its p is the probability of the one
// table, K is sigmoid - 1/2 without division by h1 + h2, and no id is exempt. Departures from the release: its test
// runs in float32, where p = 1 and ties are missed; its one exempt id (151643, end and padding) is here every id that
// ends a response; its asin terms lack Cohen's factor 2, as here.
#include <cmath>

#include "base/error.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/key_tokens.h"

namespace ucas {

namespace {

constexpr Metric kKeyValue{.key = "ktae/key_abs_mean", .help = "mean over tokens of the size of the key-token value K"};
constexpr Metric kKeySaturated{
    .key = "ktae/saturated_share",
    .unit = Unit::share,
    .help = "share of tokens with K within 1 % of its bound: mostly ids seen on one side only"};
constexpr Metric kKeyTurned{.key = "ktae/turned_share",
                            .unit = Unit::share,
                            .help = "share of tokens whose advantage has the other sign than their response's"};

class Ktae final : public GroupRelative {
 public:
  explicit Ktae(std::string_view preset) {
    if (preset == "paper") {
      keys_.fisher = FisherTest::single_table;
      keys_.form = KeyTokenForm::paper;
      keys_.exempt_ends = false;
    }
    objective_ = {.clip_high = 0.24, .dual_clip = 10, .keep_mixed_groups = true};  // DAPO's but for the upper clip
  }
  void fields(Fields& f) override {
    keys_.fields(f);
    GroupRelative::fields(f);
  }
  void validate() const override {
    if (keys_.form == KeyTokenForm::released && keys_.h1 + keys_.h2 == 0) {
      throw Error(ErrorKind::config,
                  "method.h1 = 0 and method.h2 = 0: the released form divides by h1 + h2; set one of them above 0");
    }
  }

  std::vector<Equation> equations() const override {
    const KeyTokenConfig& c = keys_;
    bool two_sided = c.fisher == FisherTest::two_sided;
    return {
        {"Eq. 3", str("A_i = (R_i - mean) / (std + ", group_.eps, ")"), "the response's advantage within its group"},
        {"Fisher", str("F = exp(-2 p), 0 where p = 1; p = ", two_sided ? "sum of p_k <= p_observed" : "p_observed"),
         "certainty that a token goes with right or with wrong answers, from its 2 x 2 table of responses"},
        {"information gain", "IG = H2(right) - sum_v P(v) H2(right | v)",
         "bits of information in the token's presence about being right"},
        {"frequency",
         str("TF = tf ", c.k1 + 1, " / (tf + ", c.k1, " (", 1 - c.b, " + ", c.b, " len / mean len)), tf = count / len"),
         "saturated, length-normalised frequency in right and in wrong responses"},
        {"direction",
         str("D = asin sqrt(a/(a+c)) - asin sqrt(b/(b+d)) + ", c.h3, " (TF_T/(TF_F + 1e-5) - TF_F/(TF_T + 1e-5))"),
         "towards right answers (above 0) or wrong ones"},
        {"key-token value",
         c.form == KeyTokenForm::released
             ? str("K = ", c.top, " (2 sigmoid((", c.h1, " F + ", c.h2, " IG) D / ", c.h1 + c.h2, ") - 1)",
                   c.exempt_ends ? "; 0 for end tokens" : "")
             : str("K = sigmoid((", c.h1, " F + ", c.h2, " IG) D) - 1/2", c.exempt_ends ? "; 0 for end tokens" : ""),
         "0 where all responses are right or all wrong"},
        {"advantage", "A_it = A_i + K(o_it)", "the same K in right and in wrong responses"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    GroupRelative::advantages(batch, advantage, recording);  // A_i
    std::vector<float> K = key_values(batch);
    double size = 0, saturated = 0, turned = 0, tokens = 0;
    double limit = 0.99 * (keys_.form == KeyTokenForm::released ? keys_.top : 0.5);
    for (const Response& o_i : batch.responses) {
      for (int64_t t = o_i.first; t < o_i.first + o_i.length; ++t) {
        float A = advantage[t];
        advantage[t] = static_cast<float>(static_cast<double>(A) + K[t]);  // A_it = A_i + K
        if (!o_i.trained) continue;
        tokens += 1;
        size += std::fabs(K[t]);
        saturated += std::fabs(K[t]) > limit && K[t] != 0;
        turned += A * advantage[t] < 0;
      }
    }
    tokens = std::max(1.0, tokens);
    recording.record(kKeyValue, size / tokens);
    recording.record(kKeySaturated, saturated / tokens);
    recording.record(kKeyTurned, turned / tokens);
    recording.record_tokens("K", std::move(K));
  }

 private:
  // K of every token, [N].
  std::vector<float> key_values(const Batch& batch) const {
    std::vector<float> K(batch.token.size());
    for (const Group& group : batch.groups) {
      auto keys = key_tokens(keys_, batch, group);
      if (keys.empty()) continue;
      for (const Response& o_i : batch.of(group)) {
        for (int64_t t = o_i.first; t < o_i.first + o_i.length; ++t) K[t] = static_cast<float>(keys[batch.token[t]].K);
      }
    }
    return K;
  }

  KeyTokenConfig keys_;
};

}  // namespace

MethodRow ktae_row() {
  return {
      .title = "KTAE",
      .paper =
          "Sun et al. 2025, KTAE: A Model-Free Algorithm to Key-Tokens Advantage Estimation in Mathematical Reasoning "
          "(arXiv:2505.16826)",
      .presets = {"released", "paper"},
      .create = create<Ktae>,
      .metrics = {&kKeyValue, &kKeySaturated, &kKeyTurned}};
}

}  // namespace ucas
