// UCAS (Algorithm 1): Eq. 3's advantage, first weighted by how confident the response is among its group (stage 1),
// then lowered per token by how certain the token's raw logit is among its response (stage 2). All signals come from
// the old policy: C_it = logsumexp(z) - mean_v z with z = logits / temperature, and l_it = the raw logit of the sampled
// token (Eq. 5; kernels/lm_head.h computes both).
//
// Each line of UcasOptions that the article does not have is a departure of its released code, or a variant for study;
// the default is the article. `released` is what that code computes, but for its row scrambling (dynamic batching
// leaves C and l in another order than the responses there) and its bfloat16 logits.
//
// The preset `logprob` is ours: C(o|q) is the mean log-prob of the response's own tokens, all else as in the article.
// C of Eq. 5 is a function of the state alone: at a token where responses part, all of a group have the same C,
// whichever branch they take, and what is left of them in mean C is style and length; the log-prob sees the branch that
// was taken.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "methods/group_relative.h"
#include "methods/registry.h"
#include "objective/advantage/implicit_prm.h"
#include "objective/advantage/returns.h"

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

// For study: the same change of the advantage with the information taken out. Draws are keyed by the step's seed.
//   permuted_confidence  the C of a group's responses, each given to another of them at random: the same W, somewhere
//                        else
//   permuted_certainty   the l_hat of a response's tokens likewise
//   matched_dapo         A_it = rho A_i - delta where A_i is not 0: one factor and one constant for the whole step,
//   which
//                        give UCAS's ratio of mean |A| (before the constant) and its mean A
enum class Placebo { off, permuted_confidence, permuted_certainty, matched_dapo };

struct UcasOptions {
  double alpha = 0.25;    // Eq. 8; 0 = token-level shaping only
  double alpha_pos = -1;  // of right responses (A > 0); negative = alpha
  double alpha_neg = -1;  // of wrong responses (A < 0); negative = alpha
  double beta = 0.01;     // Eq. 10; 0 = response-level shaping only
  GroupAdvantageConfig group;
  bool norm_by_std = true;  // false: neither A nor C is divided by its deviation, as on Dr.GRPO

  ResponseConfidence response_confidence = ResponseConfidence::kl_uniform;
  TokenCertainty token_certainty = TokenCertainty::logit;
  Weight weight = Weight::exponential;

  Pooling pooling = Pooling::mean;
  bool tail = false;  // the sum has one more slot, the distribution after the last token
  CertaintyScope scope = CertaintyScope::response;
  EqualValues equal_certainty = EqualValues::zero;
  ZeroAdvantage zero_advantage = ZeroAdvantage::keep;
  AloneConfidence alone_confidence = AloneConfidence::zero;

  bool clamp = true;  // Eq. 10's max(0, .)
  SignOf sign = SignOf::advantage;
  Placebo placebo = Placebo::off;

  double for_right() const { return alpha_pos < 0 ? alpha : alpha_pos; }
  double for_wrong() const { return alpha_neg < 0 ? alpha : alpha_neg; }

  void fields(Fields& f) {
    f.field("alpha", alpha, Range{0, 10}, "strength of response-level modulation (Eq. 8); 0 = off");
    f.field("alpha_pos", alpha_pos, Range{-1, 10}, "alpha of right responses; -1 = alpha");
    f.field("alpha_neg", alpha_neg, Range{-1, 10}, "alpha of wrong responses; -1 = alpha");
    f.field("beta", beta, Range{0, 10}, "token certainty penalty (Eq. 10); 0 = off");
    group.fields(f);
    f.field("norm_by_std", norm_by_std,
            "divide A and C by the group's standard deviations (Eq. 3, 7); false = only subtract the means");
    f.choice("response_confidence", response_confidence,
             {"kl_uniform", "logprob", "neg_entropy", "margin", "self_consistency"},
             "confidence C (Eq. 6): per token KL(U||p) (paper), log-prob, negative entropy or log-prob margin to the "
             "most probable token; or the group's answer agreement");
    f.choice("token_certainty", token_certainty, {"logit", "probability", "neg_entropy"},
             "token certainty l (Eq. 9): raw logit (paper), probability, or negative entropy");
    f.choice("weight", weight, {"exponential", "linear"},
             "weight W (Eq. 8): exp(-+alpha C_hat) (paper), or max(0, 1 -+ alpha C_hat)");
    f.choice("pooling", pooling, {"mean", "sum"},
             "pooling of token confidences to C of a response: mean (paper), or sum (released)");
    f.field("tail", tail, "add the confidence of the distribution after the last token to a summed C (released)");
    f.choice("scope", scope, {"response", "batch"},
             "scope of the scaling of l_hat: the response (paper), or the step (released)");
    f.choice("equal_certainty", equal_certainty, {"zero", "half"},
             "value of l_hat where all certainties are equal: 0 (paper), or 0.5, also where nearly equal (released)");
    f.choice("zero_advantage", zero_advantage, {"keep", "wrong"},
             "treatment of responses with A = 0: stay 0 (paper), or are pushed down like wrong responses (released)");
    f.choice("alone_confidence", alone_confidence, {"zero", "value"},
             "confidence C_hat of the only response to a prompt: 0, or C / (1 + eps) (released)");
    f.field("clamp", clamp, "hold the advantage of rewarded tokens at 0 or above (Eq. 10, paper); false = no bound");
    f.choice("sign", sign, {"advantage", "verdict"},
             "rule for right and wrong in Eq. 8: the sign of A (paper), or the verdict");
    f.choice("placebo", placebo, {"off", "permuted_confidence", "permuted_certainty", "matched_dapo"},
             "placebo in place of UCAS: confidences permuted within the group, certainties permuted within the "
             "response, or DAPO with UCAS's size and net push");
  }
};

UcasOptions released_ucas() {
  UcasOptions c;
  c.alpha_neg = 0.35;  // beside alpha = 0.25 for right responses
  c.beta = 0.05;
  c.pooling = Pooling::sum;
  c.tail = true;
  c.scope = CertaintyScope::batch;
  c.equal_certainty = EqualValues::half;
  c.zero_advantage = ZeroAdvantage::wrong;
  c.alone_confidence = AloneConfidence::value;
  return c;
}

bool of_answers(const UcasOptions& c) { return c.response_confidence == ResponseConfidence::self_consistency; }

// C_it and l_it of every token under the chosen variant, [N]; no C_it where C is of the answers.
std::vector<float> response_signal(const UcasOptions& c, const Batch& batch) {
  if (of_answers(c)) return {};
  if (c.response_confidence == ResponseConfidence::kl_uniform) return batch.confidence;
  if (c.response_confidence == ResponseConfidence::logprob) return batch.old_logprob;
  if (c.response_confidence == ResponseConfidence::margin) return batch.margin;
  std::vector<float> signal;
  for (float H : batch.entropy) signal.push_back(-H);
  return signal;
}

std::vector<float> token_signal(const UcasOptions& c, const Batch& batch) {
  if (c.token_certainty == TokenCertainty::logit) return batch.logit;
  std::vector<float> signal(batch.token.size());
  bool probability = c.token_certainty == TokenCertainty::probability;
  for (size_t t = 0; t < signal.size(); ++t) {
    signal[t] = probability ? std::exp(batch.old_logprob[t]) : -batch.entropy[t];
  }
  return signal;
}

// Eq. 3
std::vector<double> advantage_of(const UcasOptions& c, std::span<const Response> o) {
  return c.norm_by_std ? group_advantage(o, c.group) : centered_rewards(o, c.group.group_of_one);
}

// `values` in a random order that depends on each value's key alone, not on where it stands. Equal keys are taken as
// they come.
void permute(std::span<double> values, std::span<const SampleKey> key) {
  std::vector<size_t> place(values.size());
  std::iota(place.begin(), place.end(), size_t{0});
  std::ranges::stable_sort(place, {}, [&](size_t i) { return std::pair(key[i].response, key[i].position); });
  std::vector<size_t> drawn = place;
  std::ranges::stable_sort(drawn, {}, [&](size_t i) { return uniform(key[i]); });
  const std::vector<double> before(values.begin(), values.end());
  for (size_t k = 0; k < place.size(); ++k) values[place[k]] = before[drawn[k]];
}

// The key of a placebo's draw; no step of the sampler or of another draw has this number.
SampleKey placebo_key(const Batch& batch, const Response& o_i, int64_t position) {
  constexpr uint32_t kPlaceboStep = 0x50000000;
  return {batch.seed, kPlaceboStep, static_cast<uint32_t>(batch.groups[o_i.group].problem),
          static_cast<uint32_t>(o_i.sample), static_cast<uint32_t>(position)};
}

// Eq. 6: C(o_i|q) = mean_t C_it
double confidence_of(const UcasOptions& c, std::span<const float> C_i, const Response& o_i) {
  double C = mean(C_i);
  if (c.pooling == Pooling::mean) return C;
  return C * static_cast<double>(C_i.size()) + (c.tail ? o_i.tail_confidence : 0);
}

// Of a group, [G]: Eq. 6, or self-consistency, the share of o_1 .. o_G with the same answer.
std::vector<double> confidences_of(const UcasOptions& c, const std::vector<float>& C_it, std::span<const Response> o) {
  std::vector<double> C;
  if (of_answers(c)) {
    std::vector<int32_t> answers;
    for (const Response& o_i : o) answers.push_back(o_i.verdict.answer_class);
    return agreement(answers);
  }
  for (const Response& o_i : o) C.push_back(confidence_of(c, Batch::tokens(C_it, o_i), o_i));
  return C;
}

// The placebo of stage 1: among the responses that have a confidence. -1 is no token's position.
void permute_confidences(std::span<double> C, const Batch& batch, std::span<const Response> o) {
  std::vector<size_t> row;
  std::vector<SampleKey> key;
  std::vector<double> present;
  for (size_t i = 0; i < o.size(); ++i) {
    if (o[i].length == 0) continue;
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

// Eq. 7. Empty responses have no confidence and stay out.
std::vector<double> standardized_confidence(const UcasOptions& c, std::span<const double> C,
                                            std::span<const Response> o) {
  if (C.size() == 1 && c.alone_confidence == AloneConfidence::value) {
    return {C[0] / (c.norm_by_std ? 1 + c.group.eps : 1)};
  }
  return c.norm_by_std ? zscore(C, non_empty(o), c.group.eps, c.group.ddof) : centered(C, non_empty(o));
}

// max(0, x), by which a NaN stays one: std::max(0.0, NaN) is 0, and a token of advantage 0 is silent.
double not_below_zero(double x) { return x < 0 ? 0 : x; }

// e^x, or 1 + x where it is not negative. Only the C of a lone response, which is not centred, meets the bounds.
double weight_of(const UcasOptions& c, double x) {
  return c.weight == Weight::linear ? not_below_zero(1 + x) : std::exp(std::clamp(x, -20.0, 20.0));
}

// Eq. 9 for every token, [N]. The packed tokens of the batch are just its valid ones.
std::vector<double> scaled_certainty(const UcasOptions& c, const Batch& batch) {
  std::vector<float> l = token_signal(c, batch);
  std::vector<double> l_hat;
  if (c.scope == CertaintyScope::batch) {
    const std::vector<double> scaled = min_max(batch.trained(l), c.group.eps, c.equal_certainty);
    if (scaled.size() == l.size()) return scaled;
    l_hat.assign(l.size(), 0);  // of masked responses, which learn nothing
    auto next = scaled.begin();
    for (const Response& o_i : batch.responses) {
      if (!o_i.trained) continue;
      std::copy_n(next, o_i.length, l_hat.begin() + o_i.first);
      next += o_i.length;
    }
    return l_hat;
  }
  for (const Response& o_i : batch.responses) {
    std::vector<double> of_i = min_max(Batch::tokens(l, o_i), c.group.eps, c.equal_certainty);
    l_hat.insert(l_hat.end(), of_i.begin(), of_i.end());
  }
  return l_hat;
}

// A < 0, or the verdict; the released code takes A = 0 for wrong, too.
bool is_wrong(const UcasOptions& c, double A, const Response& o_i) {
  if (A == 0) return c.zero_advantage == ZeroAdvantage::wrong;
  return c.sign == SignOf::verdict ? !is_right(o_i) : A < 0;
}

// What Algorithm 1 computes on its way, for the report.
struct UcasSteps {
  struct OfResponse {
    double A = 0, C = 0, C_hat = 0, W = 1, A_mod = 0;
  };
  std::vector<OfResponse> response;  // [B]
  std::vector<double> l_hat;         // [N]
};

void algorithm_1(const UcasOptions& c, const Batch& batch, std::span<float> A_final, UcasSteps& steps) {
  const std::vector<float> C_it = response_signal(c, batch);
  std::vector<double>& l_hat = steps.l_hat = scaled_certainty(c, batch);  // Eq. 9, within the response
  if (c.placebo == Placebo::permuted_certainty) permute_certainties(batch, l_hat);
  for (const Group& group : batch.groups) {
    auto o = batch.of(group);                            // o_1 .. o_G
    std::vector<double> A = advantage_of(c, o);          // Eq. 3
    std::vector<double> C = confidences_of(c, C_it, o);  // Eq. 6: C(o_i|q) = mean_t C_it
    if (c.placebo == Placebo::permuted_confidence) permute_confidences(C, batch, o);
    std::vector<double> C_hat = standardized_confidence(c, C, o);  // Eq. 7
    for (size_t i = 0; i < o.size(); ++i) {
      const bool wrong = is_wrong(c, A[i], o[i]);
      // Eq. 8: a confident right answer counts less, a confident wrong one is punished more.
      double W = wrong       ? weight_of(c, c.for_wrong() * C_hat[i])
                 : A[i] != 0 ? weight_of(c, -c.for_right() * C_hat[i])
                             : 1.0;
      double A_mod = W * A[i];
      // Eq. 10: certain tokens are pushed down, those of a right answer never below 0.
      for (int64_t t = o[i].first; t < o[i].first + o[i].length; ++t) {
        double shaped = A_mod - c.beta * l_hat[t];
        const bool bounded = A[i] == 0 ? !wrong : c.clamp && !(A_mod < 0);
        A_final[t] = static_cast<float>(bounded ? not_below_zero(shaped) : shaped);
      }
      steps.response[group.first + i] = {A[i], C[i], C_hat[i], W, A_mod};
    }
  }
}

// In place of what Algorithm 1 made of the step: Placebo::matched_dapo.
void match_dapo(const Batch& batch, const UcasSteps& steps, std::span<float> A_final) {
  std::vector<double> plain, plain_size, shaped, shaped_size;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o_i = batch.responses[i];
    const double A = steps.response[i].A;
    if (!o_i.trained || A == 0) continue;
    for (float a : A_final.subspan(o_i.first, o_i.length)) {
      plain.push_back(A);
      plain_size.push_back(std::fabs(A));
      shaped.push_back(a);
      shaped_size.push_back(std::fabs(a));
    }
  }
  const double n = std::max<double>(1, static_cast<double>(plain.size())), size = sorted_sum(plain_size);
  const double rho = size == 0 ? 1 : sorted_sum(shaped_size) / size;
  const double delta = (rho * sorted_sum(plain) - sorted_sum(shaped)) / n;
  for (size_t i = 0; i < batch.responses.size(); ++i) {
    const Response& o_i = batch.responses[i];
    const double A = steps.response[i].A;
    std::ranges::fill(A_final.subspan(o_i.first, o_i.length), static_cast<float>(A == 0 ? 0 : rho * A - delta));
  }
}

// Algorithm 1 for people, with the values of this run.
std::vector<Equation> algorithm_1_in_words(const UcasOptions& c) {
  const char* C_it[] = {"KL(U || p_it) + ln V", "ln pi(o_it)", "-H_it", "ln pi(o_it) - max_v ln pi(v)", ""};
  const char* l_it[] = {"the raw logit of o_it", "pi(o_it)", "-H_it"};
  double eps = c.group.eps;
  auto phi = [&](double alpha, char sign) {
    return c.weight == Weight::linear ? str("max(0, 1 ", sign, " ", alpha, " C_hat)")
                                      : str("exp(", sign == '-' ? "-" : "", alpha, " C_hat)");
  };
  bool sum = c.pooling == Pooling::sum, push_zero = c.zero_advantage == ZeroAdvantage::wrong;
  Equation A = group_advantage_equation(c.group, "Eq. 3");
  if (!c.norm_by_std) A.formula = "A_i = R_i - mean(R)";
  Equation C = {
      "Eq. 6",
      str("C_i = ", sum ? "sum" : "mean", "_t C_it", c.tail ? " + C after the last token" : "",
          ", C_it = ", C_it[static_cast<int>(c.response_confidence)]),
      sum ? "a response's confidence; as a sum it is mostly the response's length" : "a response's confidence"};
  if (c.response_confidence == ResponseConfidence::logprob) {
    C.words += ", of the tokens that it took: unlike KL(U || p) it sees which branch was taken";
  }
  if (of_answers(c)) {
    C.formula = "C_i = |{j: answer_j = answer_i}| / G";
    C.words =
        "a response's confidence: how many of the group agree with it; an unreadable answer agrees with itself alone";
  }
  std::vector<Equation> list = {
      A,
      C,
      {"Eq. 7",
       c.norm_by_std ? str("C_hat = (C_i - mean(C)) / (std(C) + ", eps, ")") : std::string("C_hat = C_i - mean(C)"),
       "against that of the other responses to the prompt"},
      {"Eq. 8",
       c.sign == SignOf::verdict ? str("A_mod = W A, W = ", phi(c.for_right(), '-'), " if right, ",
                                       phi(c.for_wrong(), '+'), " if wrong, by the verdict")
                                 : str("A_mod = W A, W = ", phi(c.for_right(), '-'), " if A > 0, ",
                                       phi(c.for_wrong(), '+'), push_zero ? " otherwise" : " if A < 0, 1 if A = 0"),
       "stage 1: a confident right answer counts less, a confident wrong one is punished more"},
      {"Eq. 9",
       str("l_hat = (l_it - min l) / (max l - min l + ", eps, ") over the ",
           c.scope == CertaintyScope::batch ? "whole step" : "response",
           ", l_it = ", l_it[static_cast<int>(c.token_certainty)]),
       str("how certain a token is; where all are equal: ", c.equal_certainty == EqualValues::half ? "0.5" : "0")},
      {"Eq. 10",
       c.clamp ? str("A_it = max(0, A_mod - ", c.beta, " l_hat) if A ", push_zero ? ">" : ">=", " 0, A_mod - ", c.beta,
                     " l_hat otherwise")
               : str("A_it = A_mod - ", c.beta, " l_hat", push_zero ? "" : " if A != 0, 0 otherwise"),
       push_zero ? "stage 2: certain tokens are pushed down, those of groups without a difference too"
       : c.clamp ? "stage 2: certain tokens are pushed down; a right answer's never below 0"
                 : "stage 2: certain tokens are pushed down, a right answer's below 0, too"}};
  if (c.placebo == Placebo::permuted_confidence) {
    list.push_back({"placebo", "C_i <- C_pi(i), pi a random order of the group's responses",
                    "the same confidences, given to other responses: no information is left in stage 1"});
  } else if (c.placebo == Placebo::permuted_certainty) {
    list.push_back({"placebo", "l_hat_it <- l_hat_i,pi(t), pi a random order of the response's tokens",
                    "the same certainties, given to other tokens: no information is left in stage 2"});
  } else if (c.placebo == Placebo::matched_dapo) {
    list.push_back({"placebo", "A_it = rho A_i - delta if A_i != 0, rho = mean |UCAS| / mean |A|, delta: the same mean",
                    "in place of the above: DAPO with the size and the net push that UCAS has on this step"});
  }
  return list;
}

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

// What shaping did to the step, in numbers; docs/numerics.md says how each is defined.
void record_metrics(const Batch& batch, std::span<const float> A_final, const UcasSteps& steps, Recording& recording) {
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
}

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

class Ucas final : public Method {
 public:
  // The loss is DAPO's (Eq. 11), with dynamic sampling; its mean is over the tokens of a prompt, then over prompts,
  // where the release takes verl's mean over all tokens of the mini-batch. The release has two losses: its
  // train_ucas_math scripts clip at 0.2 on both sides, c = 3, and train on all groups; its DAPO scripts have the
  // article's loss, but scramble rows.
  explicit Ucas(std::string_view preset) {
    bool released = preset == "released";
    if (released) options_ = released_ucas();
    if (preset == "logprob") options_.response_confidence = ResponseConfidence::logprob;
    objective_ = {.clip_high = released ? 0.2 : 0.28,
                  .dual_clip = released ? 3.0 : 10.0,
                  .aggregation = released ? Aggregation::token_mean : Aggregation::group_token_mean,
                  .keep_mixed_groups = !released};
  }
  void fields(Fields& f) override { options_.fields(f); }
  void validate() const override {
    if (of_answers(options_) && options_.pooling == Pooling::sum) {
      throw Error(
          ErrorKind::config,
          "method.response_confidence = \"self_consistency\" is of the response, nothing to sum over tokens: set "
          "method.pooling = \"mean\" and method.tail = false");
    }
    if (!options_.tail) return;
    if (options_.pooling != Pooling::sum) {
      throw Error(ErrorKind::config,
                  "method.tail = true needs method.pooling = \"sum\": a mean has no slot after its last token");
    }
    if (options_.response_confidence != ResponseConfidence::kl_uniform) {
      throw Error(ErrorKind::config,
                  "method.tail = true needs method.response_confidence = \"kl_uniform\": nothing else is known after "
                  "the last token; set method.tail = false");
    }
  }
  Needs needs() const override {
    return {.answer_classes = of_answers(options_),
            .confidence = true,
            .logit = true,
            .margin = options_.response_confidence == ResponseConfidence::margin,
            .tail_confidence = options_.tail,
            .old_logprob = options_.response_confidence == ResponseConfidence::logprob ||
                           options_.token_certainty == TokenCertainty::probability,
            .entropy = options_.response_confidence == ResponseConfidence::neg_entropy ||
                       options_.token_certainty == TokenCertainty::neg_entropy};
  }
  std::vector<Equation> equations() const override { return algorithm_1_in_words(options_); }

  void advantages(const Batch& batch, std::span<float> advantage, Recording& recording) const override {
    UcasSteps steps{std::vector<UcasSteps::OfResponse>(batch.responses.size()), {}};
    algorithm_1(options_, batch, advantage, steps);
    if (options_.placebo == Placebo::matched_dapo) match_dapo(batch, steps, advantage);
    record_metrics(batch, advantage, steps, recording);
    record_steps(steps, recording);
  }

 private:
  UcasOptions options_;
};

}  // namespace

MethodRow ucas_row() {
  return {
      .title = "UCAS",
      .paper =
          "Xie et al. 2025, Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning "
          "(arXiv:2510.10649)",
      .presets = {"paper", "released", "logprob"},
      .create = create<Ucas>,
      .metrics = {&kUcasWeightMean, &kUcasWeightStd, &kUcasWeightMin, &kUcasWeightMax, &kUcasClamped,
                  &kUcasWrongRewarded, &kUcasConfidence, &kUcasNet, &kUcasNetSize}};
}

}  // namespace ucas
