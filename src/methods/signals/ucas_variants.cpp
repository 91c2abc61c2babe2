// UCAS apart from the article: what its released code computes otherwise, variants of its signals, and placebos, over
// the equations of signals/ucas.h. Every option's default is the article.
//
// `released` is what that code computes, but for its row scrambling (dynamic batching leaves C and l in another order
// than the responses there) and its bfloat16 logits. The release has two losses: its train_ucas_math scripts clip at
// 0.2 on both sides, c = 3, train on all groups and take verl's mean over all tokens of the mini-batch; its DAPO
// scripts have the article's loss, but scramble rows.
//
// `logprob` is ours: C(o|q) is the mean log-prob of the response's own tokens, all else as in the article. C of Eq. 5
// is a function of the state alone: at a token where responses part, all of a group have the same C, whichever branch
// they take, and what is left of them in mean C is style and length; the log-prob sees the branch that was taken.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "methods/signals/ucas.h"
#include "objective/advantage/returns.h"
#include "objective/advantage/reward_terms.h"

namespace ucas {

namespace {

// Variants. C_it: what a response's confidence is made of; l_it: what a token's certainty is.
// C = KL(U||p) + ln V; ln pi(o_it); -H; ln pi(o_it) - max_v ln pi(v); or of the response: share of its group with the
// same answer
enum class ResponseConfidence { kl_uniform, logprob, neg_entropy, margin, self_consistency };
enum class TokenCertainty { logit, probability, neg_entropy };  // raw logit; pi(o_it); -H
enum class Weight { exponential, linear };                      // e^x, or its first-order expansion 1 + x, floored at 0

// Departures of the released code, the second of each. EqualValues of the min-max is one more.
enum class Pooling { mean, sum };               // of C_it over the response
enum class CertaintyScope { response, batch };  // of the min-max
enum class ZeroAdvantage { keep, wrong };       // a response with A = 0 stays at 0, or is shaped like a wrong one
enum class AloneConfidence { zero, value };     // C_hat of the only response to a prompt

// Whose word decides which line of Eq. 8 holds: the sign of A, or the verdict. They differ where rewards are shaped:
// with overlong shaping a short wrong response may have A > 0.
enum class SignOf { advantage, verdict };

// For study: the same change of the advantage without the information. Permutations are keyed by the step's seed.
//   permuted_confidence  the C of a group's responses, each given to another of them at random: the same W elsewhere
//   permuted_within_sign the same among the responses with A > 0, and among those with A < 0: in each group the factors
//                        of right and of wrong responses are those of UCAS, and so is the net push
//   permuted_certainty   the l_hat of a response's tokens likewise
//   permuted_reward      the rewards of a group's responses likewise: with alpha = beta = 0 DAPO that learns nothing
//   matched_dapo         A_it = rho A_i - delta where A_i is not 0: one factor and one constant for the whole step,
//                        which give UCAS's mean A and its mean |A|
enum class Placebo {
  off,
  permuted_confidence,
  permuted_within_sign,
  permuted_certainty,
  permuted_reward,
  matched_dapo
};

// `values` in a random order that depends on each value's key alone, not on its place. Equal keys keep their order.
void permute(std::span<double> values, std::span<const SampleKey> key) {
  std::vector<size_t> place(values.size());
  std::iota(place.begin(), place.end(), size_t{0});
  std::ranges::stable_sort(place, {}, [&](size_t i) { return std::pair(key[i].response, key[i].position); });
  std::vector<size_t> shuffled = place;
  std::ranges::stable_sort(shuffled, {}, [&](size_t i) { return uniform(key[i]); });
  const std::vector<double> before(values.begin(), values.end());
  for (size_t k = 0; k < place.size(); ++k) values[place[k]] = before[shuffled[k]];
}

// The key of a placebo's permutation; no step of the sampler or of another one has this number.
SampleKey placebo_key(const Batch& batch, const Response& o_i, int64_t position) {
  constexpr uint32_t kPlaceboStep = 0x50000000;
  return {batch.seed, kPlaceboStep, static_cast<uint32_t>(batch.groups[o_i.group].problem),
          static_cast<uint32_t>(o_i.sample), static_cast<uint32_t>(position)};
}

// The placebo of stage 1: among the responses that have a confidence and are `chosen`. -1 is no token's position.
template <class Chosen>
void permute_confidences(std::span<double> C, const Batch& batch, std::span<const Response> o, Chosen chosen) {
  std::vector<size_t> row;
  std::vector<SampleKey> key;
  std::vector<double> present;
  for (size_t i = 0; i < o.size(); ++i) {
    if (o[i].length == 0 || !chosen(i)) continue;
    row.push_back(i);
    key.push_back(placebo_key(batch, o[i], -1));
    present.push_back(C[i]);
  }
  permute(present, key);
  for (size_t k = 0; k < row.size(); ++k) C[row[k]] = present[k];
}

// The placebo of stage 2.
void permute_certainties(const Batch& batch, std::span<double> l_hat) {
  std::vector<SampleKey> key;
  for (const Response& o_i : batch.responses) {
    key.clear();
    for (int64_t t = 0; t < o_i.length; ++t) key.push_back(placebo_key(batch, o_i, t));
    permute(l_hat.subspan(o_i.first, o_i.length), key);
  }
}

// The placebo of the reward. The verdicts, which metrics count, stay where they are.
Batch with_permuted_rewards(Batch batch) {
  for (const Group& group : batch.groups) {
    std::vector<double> reward;
    std::vector<SampleKey> key;
    for (const Response& o_i : batch.of(group)) {
      reward.push_back(o_i.reward);
      key.push_back(placebo_key(batch, o_i, -1));
    }
    permute(reward, key);
    for (size_t i = 0; i < reward.size(); ++i) batch.responses[group.first + i].reward = static_cast<float>(reward[i]);
  }
  return batch;
}

// In place of what Algorithm 1 made of the step: Placebo::matched_dapo. Its mean |rho A - delta| grows with rho where
// delta keeps the mean, and at rho = 0 it is the mean's own size: there is one rho.
void match_dapo(const Batch& batch, const UcasSteps& steps, std::span<float> A_final) {
  std::vector<double> A, tokens, plain, shaped, shaped_size;  // of responses with A != 0: A, tokens, their sums
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o_i = batch.responses[i];
    if (!o_i.trained || steps.response[i].A == 0) continue;
    A.push_back(steps.response[i].A);
    tokens.push_back(static_cast<double>(o_i.length));
    plain.push_back(A.back() * tokens.back());
    for (float a : A_final.subspan(o_i.first, o_i.length)) {
      shaped.push_back(a);
      shaped_size.push_back(std::fabs(a));
    }
  }
  const double n = std::max<double>(1, static_cast<double>(shaped.size()));
  const double mean = sorted_sum(shaped) / n, size = sorted_sum(shaped_size) / n, mean_A = sorted_sum(plain) / n;
  const auto size_at = [&](double rho) {
    std::vector<double> sizes(A.size());
    for (size_t i = 0; i < A.size(); ++i) sizes[i] = tokens[i] * std::fabs(rho * (A[i] - mean_A) + mean);
    return sorted_sum(std::move(sizes)) / n;
  };
  double low = 0, high = 1;
  while (!A.empty() && high < 1e6 && size_at(high) < size) high *= 2;
  for (int k = 0; k < 60; ++k) (size_at(low + (high - low) / 2) < size ? low : high) = low + (high - low) / 2;
  const double delta = low * mean_A - mean;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o_i = batch.responses[i];
    const double A_i = steps.response[i].A;
    std::ranges::fill(A_final.subspan(o_i.first, o_i.length), static_cast<float>(A_i == 0 ? 0 : low * A_i - delta));
  }
}

class UcasVariants final : public Ucas {
 public:
  explicit UcasVariants(std::string_view preset) {
    if (preset == "logprob") response_confidence_ = ResponseConfidence::logprob;
    if (preset != "released") return;
    alpha_neg_ = 0.35;  // with alpha = 0.25 for right responses
    beta_ = 0.05;
    pooling_ = Pooling::sum;
    tail_ = true;
    scope_ = CertaintyScope::batch;
    equal_certainty_ = EqualValues::half;
    zero_advantage_ = ZeroAdvantage::wrong;
    alone_confidence_ = AloneConfidence::value;
    objective_ = {
        .clip_high = 0.2, .dual_clip = 3.0, .aggregation = Aggregation::token_mean, .keep_mixed_groups = false};
  }

  void fields(Fields& f) override {
    f.field("alpha", alpha_, Range{0, 10}, "strength of response-level modulation (Eq. 8); 0 = off");
    f.field("alpha_pos", alpha_pos_, Range{-1, 10}, "alpha of right responses; -1 = alpha");
    f.field("alpha_neg", alpha_neg_, Range{-1, 10}, "alpha of wrong responses; -1 = alpha");
    f.field("beta", beta_, Range{0, 10}, "token certainty penalty (Eq. 10); 0 = off");
    group_.fields(f);
    f.field("norm_by_std", norm_by_std_,
            "divide A and C by the group's standard deviations (Eq. 3, 7); false = only subtract the means");
    f.choice("response_confidence", response_confidence_,
             {"kl_uniform", "logprob", "neg_entropy", "margin", "self_consistency"},
             "confidence C (Eq. 6): per token KL(U||p) (paper), log-prob, negative entropy or log-prob margin to the "
             "most probable token; or the group's answer agreement");
    f.choice("token_certainty", token_certainty_, {"logit", "probability", "neg_entropy"},
             "token certainty l (Eq. 9): raw logit (paper), probability, or negative entropy");
    f.choice("weight", weight_, {"exponential", "linear"},
             "weight W (Eq. 8): exp(-+alpha C_hat) (paper), or max(0, 1 -+ alpha C_hat)");
    f.choice("pooling", pooling_, {"mean", "sum"},
             "pooling of token confidences to C of a response: mean (paper), or sum (released)");
    f.field("tail", tail_, "add the confidence of the distribution after the last token to a summed C (released)");
    f.choice("scope", scope_, {"response", "batch"},
             "scope of the scaling of l_hat: the response (paper), or the step (released)");
    f.choice("equal_certainty", equal_certainty_, {"zero", "half"},
             "value of l_hat where all certainties are equal: 0 (paper), or 0.5, also where nearly equal (released)");
    f.choice("zero_advantage", zero_advantage_, {"keep", "wrong"},
             "treatment of responses with A = 0: stay 0 (paper), or are pushed down like wrong responses (released)");
    f.choice("alone_confidence", alone_confidence_, {"zero", "value"},
             "confidence C_hat of the only response to a prompt: 0, or C / (1 + eps) (released)");
    f.field("clamp", clamp_, "hold the advantage of rewarded tokens at 0 or above (Eq. 10, paper); false = no bound");
    f.choice("sign", sign_, {"advantage", "verdict"},
             "rule for right and wrong in Eq. 8: the sign of A (paper), or the verdict");
    f.choice(
        "placebo", placebo_,
        {"off", "permuted_confidence", "permuted_within_sign", "permuted_certainty", "permuted_reward", "matched_dapo"},
        "placebo in place of UCAS: confidences permuted within the group, or within the responses of one sign of "
        "A; certainties permuted within the response; rewards permuted within the group; or DAPO with UCAS's size "
        "and net push");
  }

  void validate() const override;
  Needs needs() const override;
  std::vector<Equation> equations() const override;

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    UcasSteps steps;
    algorithm_1(placebo_ == Placebo::permuted_reward ? with_permuted_rewards(batch) : batch, advantage, steps);
    if (placebo_ == Placebo::matched_dapo) match_dapo(batch, steps, advantage);
    record_ucas_metrics(batch, advantage, steps, recording);
  }

 protected:
  std::vector<double> advantage_of(std::span<const Response> o) const override {
    return norm_by_std_ ? Ucas::advantage_of(o) : centered_rewards(o, group_.group_of_one);
  }
  std::vector<double> confidence_of(const Batch& batch, std::span<const Response> o) const override;
  std::vector<double> standardized(std::span<const double> C, std::span<const Response> o) const override;
  double weight_of(double A, double C_hat, const Response& o_i) const override;
  std::vector<double> scaled_certainty(const Batch& batch) const override;
  double token_advantage(double A, double A_mod, double l_hat, const Response& o_i) const override;

 private:
  bool of_answers() const { return response_confidence_ == ResponseConfidence::self_consistency; }
  double for_right() const { return alpha_pos_ < 0 ? alpha_ : alpha_pos_; }
  double for_wrong() const { return alpha_neg_ < 0 ? alpha_ : alpha_neg_; }
  // A < 0, or the verdict; the released code takes A = 0 for wrong, too.
  bool is_wrong(double A, const Response& o_i) const {
    if (A == 0) return zero_advantage_ == ZeroAdvantage::wrong;
    return sign_ == SignOf::verdict ? !is_right(o_i) : A < 0;
  }
  std::vector<float> token_confidence(const Batch& batch, const Response& o_i) const;
  std::vector<float> token_certainty(const Batch& batch) const;

  double alpha_pos_ = -1;    // of right responses (A > 0); negative = alpha
  double alpha_neg_ = -1;    // of wrong responses (A < 0); negative = alpha
  bool norm_by_std_ = true;  // false: neither A nor C is divided by its deviation, as on Dr.GRPO

  ResponseConfidence response_confidence_ = ResponseConfidence::kl_uniform;
  TokenCertainty token_certainty_ = TokenCertainty::logit;
  Weight weight_ = Weight::exponential;

  Pooling pooling_ = Pooling::mean;
  bool tail_ = false;  // the sum has one more slot, the distribution after the last token
  CertaintyScope scope_ = CertaintyScope::response;
  EqualValues equal_certainty_ = EqualValues::zero;
  ZeroAdvantage zero_advantage_ = ZeroAdvantage::keep;
  AloneConfidence alone_confidence_ = AloneConfidence::zero;

  bool clamp_ = true;  // Eq. 10's max(0, .)
  SignOf sign_ = SignOf::advantage;
  Placebo placebo_ = Placebo::off;
};

void UcasVariants::validate() const {
  if (of_answers() && pooling_ == Pooling::sum) {
    throw Error(ErrorKind::config,
                "method.response_confidence = \"self_consistency\" is of the response, nothing to sum over tokens: set "
                "method.pooling = \"mean\" and method.tail = false");
  }
  if (!tail_) return;
  if (pooling_ != Pooling::sum) {
    throw Error(ErrorKind::config,
                "method.tail = true needs method.pooling = \"sum\": a mean has no slot after its last token");
  }
  if (response_confidence_ != ResponseConfidence::kl_uniform) {
    throw Error(ErrorKind::config,
                "method.tail = true needs method.response_confidence = \"kl_uniform\": nothing else is known after "
                "the last token; set method.tail = false");
  }
}

Needs UcasVariants::needs() const {
  Needs needs{.answer_classes = of_answers(), .signals = {signals::confidence(), signals::logit()}};
  const auto add = [&](bool wanted, const TokenSignal& signal) {
    if (wanted) needs.signals.push_back(signal);
  };
  add(response_confidence_ == ResponseConfidence::margin, signals::margin());
  add(tail_, signals::tail_confidence());
  add(response_confidence_ == ResponseConfidence::logprob || token_certainty_ == TokenCertainty::probability,
      signals::old_logprob());
  add(response_confidence_ == ResponseConfidence::neg_entropy || token_certainty_ == TokenCertainty::neg_entropy,
      signals::entropy());
  return needs;
}

// C_it of one response under the chosen variant.
std::vector<float> UcasVariants::token_confidence(const Batch& batch, const Response& o_i) const {
  const bool neg_entropy = response_confidence_ == ResponseConfidence::neg_entropy;
  const std::vector<float>& all = neg_entropy                                           ? batch.entropy
                                  : response_confidence_ == ResponseConfidence::logprob ? batch.old_logprob
                                  : response_confidence_ == ResponseConfidence::margin  ? batch.signal("margin")
                                                                                        : batch.confidence;
  auto C = Batch::tokens(all, o_i);
  std::vector<float> C_i(C.begin(), C.end());
  if (neg_entropy) std::ranges::transform(C_i, C_i.begin(), std::negate());
  return C_i;
}

// l_it of every token, [N].
std::vector<float> UcasVariants::token_certainty(const Batch& batch) const {
  if (token_certainty_ == TokenCertainty::logit) return batch.logit;
  std::vector<float> l(batch.token.size());
  const bool probability = token_certainty_ == TokenCertainty::probability;
  for (size_t t = 0; t < l.size(); ++t) l[t] = probability ? std::exp(batch.old_logprob[t]) : -batch.entropy[t];
  return l;
}

// Eq. 6, or self-consistency: the share of o_1 .. o_G with the same answer.
std::vector<double> UcasVariants::confidence_of(const Batch& batch, std::span<const Response> o) const {
  std::vector<double> C;
  if (of_answers()) {
    std::vector<int32_t> answers;
    for (const Response& o_i : o) answers.push_back(o_i.verdict.answer_class);
    C = agreement(answers);
  } else {
    for (const Response& o_i : o) {
      const std::vector<float> C_i = token_confidence(batch, o_i);
      double pooled = mean(C_i);
      if (pooling_ == Pooling::sum)
        pooled = pooled * static_cast<double>(C_i.size()) + (tail_ ? o_i.tail_confidence : 0);
      C.push_back(pooled);
    }
  }
  if (placebo_ == Placebo::permuted_confidence) permute_confidences(C, batch, o, [](size_t) { return true; });
  if (placebo_ == Placebo::permuted_within_sign) {
    const std::vector<double> A = advantage_of(o);
    permute_confidences(C, batch, o, [&](size_t i) { return A[i] > 0; });
    permute_confidences(C, batch, o, [&](size_t i) { return A[i] < 0; });
  }
  return C;
}

std::vector<double> UcasVariants::standardized(std::span<const double> C, std::span<const Response> o) const {
  if (C.size() == 1 && alone_confidence_ == AloneConfidence::value) return {C[0] / (norm_by_std_ ? 1 + group_.eps : 1)};
  return norm_by_std_ ? Ucas::standardized(C, o) : centered(C, non_empty(o));
}

// e^x, or 1 + x where it is not negative. Only the C of a lone response, which is not centred, meets the bounds.
double UcasVariants::weight_of(double A, double C_hat, const Response& o_i) const {
  const bool wrong = is_wrong(A, o_i);
  if (A == 0 && !wrong) return 1;
  const double x = wrong ? for_wrong() * C_hat : -for_right() * C_hat;
  return weight_ == Weight::linear ? not_below_zero(1 + x) : std::exp(std::clamp(x, -20.0, 20.0));
}

// Eq. 9. The packed tokens of the batch are just its valid ones.
std::vector<double> UcasVariants::scaled_certainty(const Batch& batch) const {
  const std::vector<float> l = token_certainty(batch);
  std::vector<double> l_hat;
  if (scope_ == CertaintyScope::batch) {
    const std::vector<double> scaled = min_max(batch.trained(l), group_.eps, equal_certainty_);
    l_hat.assign(l.size(), 0);  // of masked responses, which learn nothing
    auto next = scaled.begin();
    for (const Response& o_i : batch.responses) {
      if (!o_i.trained) continue;
      std::copy_n(next, o_i.length, l_hat.begin() + o_i.first);
      next += o_i.length;
    }
  } else {
    for (const Response& o_i : batch.responses) {
      std::vector<double> of_i = min_max(Batch::tokens(l, o_i), group_.eps, equal_certainty_);
      l_hat.insert(l_hat.end(), of_i.begin(), of_i.end());
    }
  }
  if (placebo_ == Placebo::permuted_certainty) permute_certainties(batch, l_hat);
  return l_hat;
}

double UcasVariants::token_advantage(double A, double A_mod, double l_hat, const Response& o_i) const {
  const double shaped = A_mod - beta_ * l_hat;
  const bool bounded = A == 0 ? !is_wrong(A, o_i) : clamp_ && !(A_mod < 0);
  return bounded ? not_below_zero(shaped) : shaped;
}

std::vector<Equation> UcasVariants::equations() const {
  const char* C_it[] = {"KL(U || p_it) + ln V", "ln pi(o_it)", "-H_it", "ln pi(o_it) - max_v ln pi(v)", ""};
  const char* l_it[] = {"the raw logit of o_it", "pi(o_it)", "-H_it"};
  const double eps = group_.eps;
  auto phi = [&](double alpha, char sign) {
    return weight_ == Weight::linear ? str("max(0, 1 ", sign, " ", alpha, " C_hat)")
                                     : str("exp(", sign == '-' ? "-" : "", alpha, " C_hat)");
  };
  const bool sum = pooling_ == Pooling::sum, push_zero = zero_advantage_ == ZeroAdvantage::wrong;
  std::vector<Equation> list = Ucas::equations();
  if (!norm_by_std_) {
    list[0].formula = "A_i = R_i - mean(R)";
    list[2].formula = "C_hat = C_i - mean(C)";
  }
  list[1].formula = str("C_i = ", sum ? "sum" : "mean", "_t C_it", tail_ ? " + C after the last token" : "",
                        ", C_it = ", C_it[static_cast<int>(response_confidence_)]);
  if (sum) list[1].words += "; as a sum it is mostly the response's length";
  if (response_confidence_ == ResponseConfidence::logprob) {
    list[1].words += ", of the tokens that it took: unlike KL(U || p) it sees which branch was taken";
  }
  if (of_answers()) {
    list[1].formula = "C_i = |{j: answer_j = answer_i}| / G";
    list[1].words += ": how many of the group agree with it; an unreadable answer agrees with itself alone";
  }
  list[3].formula = sign_ == SignOf::verdict
                        ? str("A_mod = W A, W = ", phi(for_right(), '-'), " if right, ", phi(for_wrong(), '+'),
                              " if wrong, by the verdict")
                        : str("A_mod = W A, W = ", phi(for_right(), '-'), " if A > 0, ", phi(for_wrong(), '+'),
                              push_zero ? " otherwise" : " if A < 0, 1 if A = 0");
  list[4].formula = str("l_hat = (l_it - min l) / (max l - min l + ", eps, ") over the ",
                        scope_ == CertaintyScope::batch ? "whole step" : "response",
                        ", l_it = ", l_it[static_cast<int>(token_certainty_)]);
  if (equal_certainty_ == EqualValues::half) list[4].words = "how certain a token is; where all are equal: 0.5";
  list[5].formula = clamp_ ? str("A_it = max(0, A_mod - ", beta_, " l_hat) if A ",
                                 push_zero ? ">" : ">=", " 0, A_mod - ", beta_, " l_hat otherwise")
                           : str("A_it = A_mod - ", beta_, " l_hat", push_zero ? "" : " if A != 0, 0 otherwise");
  if (push_zero) list[5].words = "stage 2: certain tokens are pushed down, those of groups without a difference too";
  if (!push_zero && !clamp_) list[5].words = "stage 2: certain tokens are pushed down, a right answer's below 0, too";
  if (placebo_ == Placebo::permuted_confidence) {
    list.push_back({"placebo", "C_i <- C_pi(i), pi a random order of the group's responses",
                    "the same confidences, given to other responses: no information is left in stage 1"});
  } else if (placebo_ == Placebo::permuted_within_sign) {
    list.push_back(
        {"placebo", "C_i <- C_pi(i), pi a random order of the group's responses with A > 0, and of those with A < 0",
         "the same factors and net push, given to other responses of the same sign: which of the right ones is "
         "confident is not in them"});
  } else if (placebo_ == Placebo::permuted_certainty) {
    list.push_back({"placebo", "l_hat_it <- l_hat_i,pi(t), pi a random order of the response's tokens",
                    "the same certainties, given to other tokens: no information is left in stage 2"});
  } else if (placebo_ == Placebo::permuted_reward) {
    list.push_back({"placebo", "R_i <- R_pi(i), pi a random order of the group's responses",
                    "the same rewards, given to other responses: there is nothing to learn"});
  } else if (placebo_ == Placebo::matched_dapo) {
    list.push_back({"placebo", "A_it = rho A_i - delta if A_i != 0, rho and delta: the same mean A and |A|",
                    "in place of the above: DAPO with the size and the net push that UCAS has on this step"});
  }
  return list;
}

}  // namespace

std::unique_ptr<Method> make_ucas(std::string_view preset) { return std::make_unique<UcasVariants>(preset); }

}  // namespace ucas
