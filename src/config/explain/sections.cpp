#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "config/explain/explain.h"
#include "objective/advantage/reward_terms.h"
#include "objective/loss/clipped_ratio.h"
#include "objective/loss/kl.h"
#include "verify/registry.h"

namespace ucas {

namespace {

using Lines = std::vector<ExplainedLine>;

std::string kl_formula(KlEstimator estimator, const std::string& d) {
  switch (estimator) {
    case KlEstimator::k1:
      return d;
    case KlEstimator::abs:
      return str("|", d, "|");
    case KlEstimator::k2:
      return str("(", d, ")^2 / 2");
    case KlEstimator::k3:
      return str("exp(-(", d, ")) + (", d, ") - 1");
    case KlEstimator::k3_plus:
      return str("exp(-(", d, ")) + (", d, ") - 1, with the gradient of (", d, ")^2 / 2");
  }
  return d;
}

Lines sampling(const TrainConfig& c) {
  const TrainRolloutConfig& r = c.rollout;
  std::string sampler = str("temperature ", r.temperature);
  if (r.top_p < 1) sampler += str(", top-p ", r.top_p);
  Lines lines = {
      {"prompts", "",
       str(many(c.gen_batch(), "prompt"), " at a time, template ", printable(c.data.prompt_template), ", up to ",
           many(c.data.max_prompt_length, "token"), c.data.shuffle ? ", in a new order each epoch" : "")},
      {"responses", "o_1 .. o_G ~ pi_old(. | q)",
       str("G = ", r.n, " responses to each prompt at ", sampler, ", of at most T = ", many(r.response_length, "token"),
           ", the end token included")}};
  if (!r.stop.empty()) {
    lines.push_back({"end", "", str("also where a response's tokens complete ", printable(join(r.stop, " or "), 100))});
  }
  if (r.sampling().truncates()) {
    lines.push_back({"truncation", "",
                     "responses come from the renormalised rest of the distribution; pi, pi_old and every ratio below "
                     "are of the whole vocabulary, which also gives what was cut off its share"});
  }
  return lines;
}

// r_ik, and their sum where there are several.
void add_parts(const RewardConfig& r, Lines& lines) {
  const std::vector<WeightedPart> parts = parse_reward_weights(r.weights, r.from_outside());
  const auto says = [&](RewardPart part, const std::string& formula, const std::string& words) {
    const auto found = std::ranges::find(parts, part, &WeightedPart::part);
    if (found == parts.end()) return;
    const bool alone = parts.size() == 1 && parts[0].weight == 1;
    const std::string name = alone ? "R_i" : str("r_i,", word_of(part));
    lines.push_back({name, formula.empty() ? "" : str(name, " = ", formula), words});
  };
  std::vector<std::string> others;
  for (const auto& [source, kind] : parse_graders(r.graders, "reward.graders")) {
    others.push_back(str(printable(source), " by ", word_of(kind)));
  }
  const bool exact = r.grader == GraderKind::math;
  says(RewardPart::answer,
       str(r.correct, " if the answer is right, ", r.wrong, " if not",
           r.partial ? ", its share where it is partly" : ""),
       str("the verdict of ", exact ? "the verifier" : str("the grader ", word_of(r.grader)), " on ",
           r.grader == GraderKind::code             ? "the program that it finds"
           : r.extract == ExtractOption::answer_tag ? "the last \\boxed{} inside <answer>..</answer>"
           : r.extract == ExtractOption::lenient    ? "the last answer it can find"
           : r.extract == ExtractOption::automatic  ? "the last answer it can find, or, where the prompts ask for it, "
                                                      "the last \\boxed{}"
                                                    : "the last \\boxed{}",
           "; what cannot be read counts as wrong", others.empty() ? "" : str("; ", join(others, ", "))));
  says(RewardPart::command, "", str("the score that ", r.scorer(), " gives"));
  says(RewardPart::format, "[o_i matches]", str("the whole response, against ", printable(r.format, 100)));
  says(RewardPart::length, "l if right, min(0, l) if not;  l = 1/2 - (L_i - min L) / (max L - min L)",
       "the shorter the better among the responses to one prompt (Kimi k1.5)");
  if (parts.size() == 1 && parts[0].weight == 1) return;
  std::vector<std::string> terms;
  for (const WeightedPart& p : parts) terms.push_back(str(p.weight, " r_i,", word_of(p.part)));
  lines.push_back({"R_i", str("R_i = ", join(terms, " + ")), "each part is logged apart (rewards/)"});
}

Lines reward(const TrainConfig& c, const Needs& needs) {
  const RewardConfig& r = c.reward;
  Lines lines;
  if (!needs.labels) lines.push_back({"labels", "", "none are needed: the method below makes its own reward"});
  add_parts(r, lines);
  lines.push_back({"truncated", "",
                   r.truncated == Truncated::wrong ? "a response cut at T is wrong, whatever it says"
                   : r.truncated == Truncated::grade
                       ? "a response cut at T is graded as it is"
                       : "a response cut at T counts in its group, and its tokens are left "
                         "out of the loss and its means"});
  if (r.overlong_buffer > 0) {
    const int64_t from = c.rollout.response_length - r.overlong_buffer;
    lines.push_back({"overlong",
                     str("R_i += min(0, -(L_i - ", from, ") / ", r.overlong_buffer, " * ", r.overlong_factor, ")"),
                     str("from ", grouped(from), " tokens on, a response loses up to ", r.overlong_factor)});
  }
  if (r.kl_coeff > 0) {
    lines.push_back({"KL in reward",
                     str("r_it = [t = L_i] R_i - beta KL_it,  KL_it = ", kl_formula(r.kl_estimator, "lp_old - lp_ref")),
                     str("beta = ", r.kl_coeff, ": every token is penalised for leaving the reference")});
    if (c.objective.kl_coeff > 0) lines.push_back({"", "", "the loss below has a KL term as well"});
  }
  return lines;
}

Lines selection_of_prompts(const TrainConfig& c) {
  const KeepRule rule = c.keep_rule();
  const std::string wanted = many(c.data.train_batch_size, "prompt");
  if (!rule.filters()) {
    return {{"kept", "",
             str("all; ", wanted, " a step",
                 c.gen_batch() > c.data.train_batch_size ? ", the rest of a batch is dropped" : "")}};
  }
  Lines lines;
  if (rule.mixed) {
    const KeepMetric metric = c.objective.keep_metric;
    lines.push_back({"kept",
                     metric == KeepMetric::acc     ? "0 < |{i: o_i right}| < G"
                     : metric == KeepMetric::score ? "max score_i > min score_i"
                                                   : "max R_i > min R_i",
                     metric == KeepMetric::acc ? "only prompts with both right and wrong responses"
                                               : "only prompts whose responses differ in it"});
  }
  if (rule.low > 0 || rule.high < 1) {
    lines.push_back({"difficulty", str(rule.low, " <= |{i: o_i right}| / G <= ", rule.high), ""});
  }
  if (rule.untruncated) {
    lines.push_back({"length", "", str("no response of ", many(rule.response_limit - 1, "token"), " or more")});
  }
  std::string until;
  if (rule.max_gen_batches == 1) {
    until = rule.order == KeepOrder::prefer ? str("one generation batch a step, of which ", wanted)
                                            : str("one generation batch a step; of what it keeps, up to ", wanted);
  } else {
    until = str("generation batches until ", wanted, rule.order == KeepOrder::prefer ? " arrived" : " are kept",
                rule.max_gen_batches > 0 ? str(", at most ", rule.max_gen_batches, " a step") : "",
                rule.max_gen_batches > 0 ? rule.train_short ? ", then with those there are" : ", then stop" : "");
  }
  if (rule.order == KeepOrder::prefer) until += "; those that pass come first, others fill up";
  lines.push_back({"per step", "", until + "; the rest is dropped"});
  return lines;
}

// What the method says of itself; one that says nothing shows its options.
Lines method_part(const TrainConfig& c) {
  Lines lines;
  for (const Equation& e : c.method->equations()) lines.push_back({e.where, e.formula, e.words});
  if (!lines.empty()) return lines;
  for (const FieldValue& f : fields_of(c)) {
    if (!f.key.starts_with("method.") || f.key == "method.name" || f.key == "method.preset") continue;
    lines.push_back({"", str(f.key, " = ", f.value), f.help});
  }
  return lines;
}

std::string aggregation_formula(const TrainConfig& c) {
  const ObjectiveConfig& o = c.objective;
  std::string norm = str(c.rollout.response_length);
  switch (o.aggregation) {
    case Aggregation::token_mean:
      return "L = sum_i sum_t loss_it / sum_i L_i";
    case Aggregation::seq_mean_token_mean:
      return "L = 1/n sum_i (1/L_i) sum_t loss_it";
    case Aggregation::seq_mean_token_sum:
      return "L = 1/n sum_i sum_t loss_it";
    case Aggregation::seq_mean_token_sum_norm:
      return str("L = sum_i sum_t loss_it / ", norm);
    case Aggregation::row_mean_token_sum_norm:
      return str("L = 1/B sum_i sum_t loss_it / ", norm);
    case Aggregation::group_token_mean:
      return "L = 1/P sum_q (sum_i sum_t loss_it / sum_i L_i)";
  }
  return "";
}

std::string aggregation_words(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::token_mean:
      return "mean over all tokens of the mini-batch, as verl: long responses and prompts with long ones weigh more; "
             "Eq. 4 and 11 take it prompt by prompt (group_token_mean)";
    case Aggregation::seq_mean_token_mean:
      return "mean over the tokens of each response, then over the n responses: each weighs the same";
    case Aggregation::seq_mean_token_sum:
      return "sum over the tokens of each response, mean over the n responses";
    case Aggregation::seq_mean_token_sum_norm:
      return "sum over all tokens, divided by a constant length and not by the number of responses";
    case Aggregation::row_mean_token_sum_norm:
      return "sum over the tokens of each response, divided by a constant length; mean over all B responses";
    case Aggregation::group_token_mean:
      return "mean over the tokens of a prompt's responses, then over the P prompts of the mini-batch (Eq. 4, 11): "
             "each prompt weighs the same; verl and the released code take one mean over all tokens (token_mean)";
  }
  return "";
}

void token_losses(const TrainConfig& c, Lines& lines) {
  const ObjectiveConfig& o = c.objective;
  if (uses_clipped_ratio(c)) {
    lines.push_back({"ratio", "rho_it = pi(o_it) / pi_old(o_it)", ""});
    lines.push_back(
        {"clip",
         str("loss_it = max(-A_it rho_it, -A_it clip(rho_it, ", str(1 - o.clip_low), ", ", str(1 + o.clip_high), "))"),
         o.clip_low == o.clip_high
             ? str("no reward for moving a token's probability by more than ", percent(o.clip_low, 0))
             : str("eps_low = ", o.clip_low, ", eps_high = ", o.clip_high,
                   ": unlikely tokens may grow further than likely ones shrink")});
    if (o.dual_clip > 0) {
      lines.push_back({"dual clip", str("loss_it <= ", o.dual_clip, " |A_it| where A_it < 0"),
                       "a punished token that became likely cannot blow up the update"});
    }
  } else {
    lines.push_back({"token", "", "the method's own loss of a token, above, in place of the clipped ratio"});
  }
  if (std::optional<Selection> selection = c.method->needs().selection) {
    const char* words[] = {"each micro-batch, before the update, on the current policy",
                           "each mini-batch, before the update, on the current policy",
                           "the whole step, once, on the old policy"};
    lines.push_back(
        {"selection", "", str("the method chooses among the tokens of ", words[static_cast<int>(selection->scope)])});
  }
}

// What is done about a sampler that computes other probabilities than the trainer
// (objective/loss/rollout_correction.h).
void mismatch_remedies(const TrainConfig& c, Lines& lines) {
  const ObjectiveConfig& o = c.objective;
  const std::string ratio = "exp(lp_old - lp_rollout)";
  const bool truncates = c.rollout.sampling().truncates();
  if (truncates && o.tis != Tis::off) {
    lines.push_back({"lp_rollout", "",
                     "the sampler's under the whole vocabulary, like lp_old: the ratio below is 1 where both compute "
                     "the same, whatever was cut off"});
  }
  if (o.tis == Tis::token) {
    lines.push_back({"TIS", str("loss_it *= min(", ratio, ", ", o.tis_cap, ")"), "truncated importance sampling"});
  } else if (o.tis != Tis::off) {
    const bool mask = o.tis == Tis::sequence_mask;
    lines.push_back({"TIS",
                     mask ? str("loss_it *= w_i, w_i = prod_t ", ratio, ", 0 if above ", o.tis_cap)
                          : str("loss_it *= min(prod_t ", ratio, ", ", o.tis_cap, ")"),
                     "importance sampling, one weight per response"});
  }
}

Lines loss(const TrainConfig& c) {
  const ObjectiveConfig& o = c.objective;
  Lines lines;
  token_losses(c, lines);
  mismatch_remedies(c, lines);
  lines.push_back({"aggregation", aggregation_formula(c), aggregation_words(o.aggregation)});
  if (o.entropy_target > 0) {
    lines.push_back({"entropy", str("L -= alpha mean H_it,  alpha = c if H <= ", o.entropy_target, ", 0 otherwise"),
                     "H: mean entropy of the step's tokens under the old policy, nats; a bonus only where it is low"});
    lines.push_back(
        {"", str("c += ", kEntropyStep, " if H < ", o.entropy_target, ", c = max(0, c - ", kEntropyStep, ") otherwise"),
         str("after every step, from c = ", o.entropy_coeff)});
  } else if (o.entropy_coeff != 0) {
    lines.push_back({"entropy", str("L -= ", o.entropy_coeff, " mean H_it"),
                     o.entropy_coeff > 0 ? "a bonus for staying undecided" : "a penalty for staying undecided"});
  }
  if (o.kl_coeff > 0) {
    lines.push_back({"KL loss",
                     str("L += ", o.kl_coeff, " mean KL_it,  KL_it = ", kl_formula(o.kl_estimator, "lp - lp_ref")),
                     o.kl_estimator == KlEstimator::k1
                         ? "against the reference; the gradient of k1 is 0 on average, so this term does nothing"
                         : "keeps the policy near the reference"});
  }
  return lines;
}

std::string schedule_words(const OptimizerConfig& o) {
  std::string text = str("learning rate ", o.lr);
  if (o.warmup_steps > 0)
    text += str(", rising", o.warmup_from_zero ? " from 0" : "", " over ", many(o.warmup_steps, "step"));
  return text + (o.warmup_steps > 0 ? ", then constant" : ", constant");
}

std::string optimizer_words(const OptimizerConfig& o) {
  const bool muon = o.kind == OptimizerKind::muon;
  return str(muon ? str("Muon (", o.momentum, ") for the blocks' matrices, else ") : "", "AdamW (", o.beta1, ", ",
             o.beta2, "), eps ", o.eps, o.moments == MomentType::f32 ? "" : str(", moments in ", word_of(o.moments)),
             ", weight decay ", o.weight_decay, ", ",
             o.grad_clip > 0 ? str("gradient norm held to ", o.grad_clip) : "gradient norm free");
}

Lines update(const TrainConfig& c) {
  const int64_t prompts = c.data.train_batch_size, mini = c.update.mini_batch_size;
  const int64_t updates = (prompts + mini - 1) / mini * c.update.epochs;
  const int64_t responses = prompts * c.rollout.n;
  Lines lines;
  lines.push_back({"optimizer", "", optimizer_words(c.optimizer)});
  lines.push_back({"", "", schedule_words(c.optimizer)});
  std::string passes = c.update.epochs > 1 ? str(", ", c.update.epochs, " epochs over the batch") : "";
  lines.push_back({"updates", "",
                   str(many(updates, "update"), " a step, of ", many(std::min(mini, prompts), "prompt"), " or ",
                       many(std::min(mini, prompts) * c.rollout.n, "response"), " each", passes)});
  if (updates == 1) lines.push_back({"", "", "fully on-policy: every ratio is 1 and nothing clips"});
  lines.push_back({"per step", "",
                   str("trained on up to ", many(responses, "response"), ", ",
                       many(responses * c.rollout.response_length, "response token"), " at most")});
  lines.push_back({"length", "", many(c.train.steps, "step")});
  if (c.uses_passes()) {
    lines.back().words =
        str(c.train.epochs == 1 ? "1 epoch" : str(grouped(c.train.epochs), " epochs"),
            c.steps_are_known() ? "" : "; the run ends when they are used up, after as many steps as they gave");
  }
  return lines;
}

Lines needs_of(const TrainConfig& c, const Needs& needs) {
  Lines lines;
  int64_t models = 1, trained = 1;
  for (const NeededModel& model : needs.models()) models += model.held, trained += model.trained;
  lines.push_back(
      {"models", "",
       models == 1 ? std::string("one, held and trained") : str(models, " held, ", trained, " of them trained")});
  lines.push_back({"policy", "", "pi, trained; it also samples"});
  if (needs.reference) {
    const ReferenceConfig& r = c.reference;
    lines.push_back({"reference", "",
                     !r.moves()
                         ? std::string("pi_ref, the policy's start, frozen: for the KL terms")
                         : str("pi_ref, at first the policy's start; after every ",
                               r.sync_steps == 1 ? "step" : many(r.sync_steps, "step"), " the policy as it is then")});
  }
  if (needs.critic) {
    lines.push_back({"critic", "",
                     str("V, the policy's body with a scalar head; ", many(needs.critic->updates, "update"),
                         " a step, value clip ", needs.critic->value_clip)});
    lines.push_back(
        {"", "", str(optimizer_words(needs.critic->optimizer), "; ", schedule_words(needs.critic->optimizer))});
  }
  if (needs.prm) {
    lines.push_back({"reward model", "",
                     str("phi, a language model of its own, and its frozen start; trained ",
                         needs.prm->order == PrmOrder::before ? "before" : "after",
                         " it scores the batch; P(right) = sigmoid(", needs.prm->beta, " sum_t q_it)")});
    lines.push_back({"", "", str(optimizer_words(needs.prm->optimizer), "; ", schedule_words(needs.prm->optimizer))});
  }
  if (needs.teacher) {
    lines.push_back(
        {"teacher", "", "pi_T, a checkpoint of its own (method.teacher) with the policy's tokenizer, frozen"});
  }
  std::string words =
      models == 1 ? std::string("1 forward pass") : str(models, " forward passes");  // each reads it once
  words += " over the step's batch before the first update";
  if (needs.selection && needs.selection->scope != Scope::step) words += ", and one more before every update";
  lines.push_back({"passes", "", words});
  std::string data = needs.labels ? "problems with right answers" : "problems; right answers may be missing";
  if (needs.answer_classes) data += "; responses are grouped by their answer";
  lines.push_back({"data", "", data});
  return lines;
}

}  // namespace

bool uses_clipped_ratio(const TrainConfig& config) {
  // Two responses of a few tokens: ratios on both sides of every bound, advantages of both signs.
  constexpr size_t n = 12;
  const std::vector<Sequence> sequences{{0, 6, 0}, {6, 6, 1}};
  std::vector<float> lp(n), old(n, -1.5f), H(n), C(n), A(n);
  for (size_t t = 0; t < n; ++t) {
    lp[t] = -1.5f + 0.35f * (static_cast<float>(t % 6) - 2.4f) + (t < 6 ? 0.0f : 1.1f);
    A[t] = t % 2 == 0 ? 0.8f : -1.3f;
    H[t] = 0.3f + 0.2f * static_cast<float>(t);
    C[t] = 12.0f + static_cast<float>(t % 5);
  }
  std::vector<uint8_t> mark(n);
  LossInput in;
  in.sequences = sequences;
  in.logprob = lp;
  in.entropy = H;
  in.confidence = C;
  in.old_logprob = in.rollout_logprob = old;
  in.advantage = A;
  in.mark = mark;
  in.objective = &config.objective;
  const Needs needs = config.needs();
  std::vector<TokenSignal> read = needs.all_signals();
  read.insert(read.end(), needs.current.begin(), needs.current.end());
  constexpr LikelyToken alike[4] = {};  // a row of four tokens, each as likely as the others
  const LogitRow row{.lse = std::log(4.0), .likely = alike};
  std::vector<std::vector<float>> values;
  for (const TokenSignal& signal : read)
    values.emplace_back(n, signal.compute ? static_cast<float>(signal.compute(row)) : -1.4f);
  for (size_t k = 0; k < read.size(); ++k) in.signals.emplace_back(read[k].key, values[k]);
  LossBuffer buffers[2];
  LossOutput own = buffers[0].view(n, needs.current), usual = buffers[1].view(n, needs.current);
  config.method->token_loss(in, own);
  clipped_ratio_loss(in, usual);
  return std::ranges::equal(own.numbers(), usual.numbers(), [](auto a, auto b) { return std::ranges::equal(a, b); });
}

std::vector<ExplainedSection> explain_sections(const TrainConfig& config) {
  const Needs needs = config.needs();
  return {{"Sampling", sampling(config)},
          {"Reward", reward(config, needs)},
          {"Prompts trained on", selection_of_prompts(config)},
          {"The method", method_part(config)},
          {"Loss", loss(config)},
          {"Update", update(config)},
          {"Needs", needs_of(config, needs)}};
}

}  // namespace ucas
