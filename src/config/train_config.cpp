#include "config/train_config.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/error.h"
#include "base/file.h"
#include "base/refusals.h"
#include "base/str.h"
#include "config/prompt_choice.h"
#include "config/stop_bound.h"
#include "data/source_weights.h"
#include "objective/reward_terms.h"

namespace ucas {

void TrainDataConfig::fields(Fields& f) {
  f.field("files", files, "training problems, JSONL", Effect::place);
  f.field("template", prompt_template,
          "prompt template: auto (chat where the checkpoint has a chat template, else qwen_math), chat (the "
          "checkpoint's own), qwen_math, qwen_boxed, orz, plain, or a file");
  examples.fields(f);
  f.field("max_prompt_length", max_prompt_length, Range{1, 1 << 20}, "longer prompts are dropped, counted",
          Effect::size);
  f.field("train_batch_size", train_batch_size, Range{1, 1 << 20}, "prompts trained on per step", Effect::size);
  f.field("gen_batch_size", gen_batch_size, Range{0, 1 << 20}, "prompts generated at a time; 0 = train_batch_size",
          Effect::size);
  f.field("max_num_gen_batches", max_num_gen_batches, Range{0, 1 << 20},
          "generation batches per step at most; 0 = no limit", Effect::size);
  f.field("train_short", train_short,
          "when those did not give train_batch_size prompts: train on fewer, or stop (false; DAPO's code)");
  f.field("shuffle", shuffle, "a new order each epoch, keyed by the seed");
  f.choice("draw", draw,
           "shuffled: all problems each epoch; difficulty: each with a chance by p (1 - p), p the share of right "
           "responses the last time it was asked, (right + 1) / (n + 2)");
  f.field("weights", weights,
          "shares in which the data sources are drawn, each SOURCE=WEIGHT, for instance \"gsm8k=2\", \"math=1\"; a "
          "source is a row's data_source or its file's name; none = all problems alike");
  f.field("rest_solved", rest_solved, Range{0, 1e9},
          "steps for which a problem is passed over after all its responses were right; 0 = it comes as any other");
  f.field("skip_bad_rows", skip_bad_rows, "skip and count unusable rows (stops above 1 %)", Effect::place);
  f.field("val_files", val_files, "validation problems, JSONL", Effect::place);
  f.field("val_limit", val_limit, Range{0, 1 << 30}, "validate on the first N problems; 0 = all", Effect::procedure);
  f.section("columns", columns);
}

void TrainRolloutConfig::fields(Fields& f) {
  f.field("n", n, Range{1, 1 << 16}, "responses per prompt (G)", Effect::size);
  f.field("temperature", temperature, Range{1e-2, 100},
          "sampling temperature; at 0.01 the rounding of f32 logits already moves a log-prob by 0.001 and more");
  f.field("top_p", top_p, Range{1e-6, 1}, "nucleus; 1 = off");
  f.field("top_k", top_k, Range{0, 1 << 20}, "0 = off");
  f.field("min_p", min_p, Range{0, 1},
          "draw only tokens of at least this share of the most probable one's probability, after top_k and top_p; "
          "0 = off");
  f.field("response_length", response_length, Range{1, 1 << 20}, "longest response in tokens, end token included",
          Effect::size);
  f.field("stop", stop,
          "texts that end a response, beside its stop tokens, such as \"</answer>\"; it goes up to the token that "
          "completes "
          "one");
  f.choice("surplus", surplus,
           "prompts that passed the rule of collection beyond data.train_batch_size: dropped, or carried to the next "
           "step, which trains on them under the log-probs that they were sampled with");
  f.field("max_slots", max_slots, Range{0, 1 << 16}, "responses decoded at once; 0 = chosen from the shape",
          Effect::bookkeeping);
  f.choice(
      "old_log_prob", old_log_prob,
      "log-probs of the old policy: the sampler's, a sixteenth of them checked bit for bit (CPU), or the trainer's",
      Effect::bookkeeping);
  f.field("lag", lag, Range{0, 1},
          "1: the responses of a step are drawn by the weights that the step before began with, with servers while "
          "these are "
          "updated");
  f.choice("backend", backend, "who samples: this program, or servers of SGLang or vLLM (docs/scale.md)",
           Effect::procedure);
  f.field("servers", servers, "with a backend elsewhere: addresses, such as http://127.0.0.1:30000",
          Effect::bookkeeping);
  f.field("served_model", served_model, "with vLLM: the model's name there; empty = the only one it has",
          Effect::bookkeeping);
  f.field("requests", requests, Range{1, 1024}, "with servers: requests in flight", Effect::bookkeeping);
  f.field("retries", retries, Range{0, 1000}, "with servers: how often one request is tried again",
          Effect::bookkeeping);
  f.field("request_timeout", request_timeout, Range{0.05, 86400}, "with servers: seconds until one try counts as lost",
          Effect::bookkeeping);
  f.field("patience", patience, Range{0.1, 86400},
          "with servers: seconds without any response until the run stops, saved", Effect::bookkeeping);
  f.field("handover_bound", handover_bound, Range{0, 100},
          "with servers: how far, in the mean, their log-probs of a known text may be from ours after each hand-over "
          "of weights",
          Effect::bookkeeping);
}

void RewardConfig::fields(Fields& f) {
  f.field("correct", correct, Range{-100, 100}, "reward of a right answer");
  f.field("wrong", wrong, Range{-100, 100}, "reward of a wrong or unparseable answer");
  f.field("partial", partial, "a program that passes some of its tests is paid its share of the way between these");
  f.choice(
      "grader", grader,
      "who grades: mathematics exactly, a choice letter, a number within reward.tolerance, a program run on tests, "
      "or a simpler grader to compare with");
  f.field("graders", graders, "other graders by data source, each SOURCE=GRADER, for instance \"leetcode=code\"");
  f.field("tolerance", tolerance, Range{0, 1}, "of the grader numeric: |a - b| <= tolerance * max(|a|, |b|)");
  f.field("weights", weights,
          "what the score is a sum of, each PART=WEIGHT of answer, command, format, length, for instance \"answer=1\", "
          "\"format=0.2\"; none = the answer alone, or the command's score");
  f.field("format", format,
          "pattern that the whole response must match for the part format: think_answer, or a regular expression "
          "where . is any character");
  f.field(
      "command", command,
      "a program that scores responses instead, for instance \"python3 reward.py\": a JSON line each on its standard "
      "input, {\"id\": N, \"score\": X} back on its standard output; \"\" = the verifier's verdict pays");
  f.field("command_seconds", command_seconds, Range{0, 1e6},
          "it may be silent for so long while it owes replies; 0 = any time", Effect::bookkeeping);
  f.choice(
      "extract", extract,
      "where the answer is: strict, the last box; lenient, there, or after the usual phrases; answer_tag, the last "
      "box inside the last <answer>; auto, lenient after a chat template whose prompts ask for no box, else strict");
  f.choice(
      "truncated", truncated,
      "a response cut at the length limit: graded as it is, wrong, or left out of the loss (its reward still counts "
      "in its group)");
  f.field("overlong_buffer", overlong_buffer, Range{0, 1 << 20},
          "DAPO overlong shaping over the last N tokens; 0 = off", Effect::size);
  f.field("overlong_factor", overlong_factor, Range{0, 100}, "its largest penalty");
  f.field("kl_coeff", kl_coeff, Range{0, 100},
          "KL in the reward: every token pays kl_coeff * KL(old policy, frozen reference); 0 = off");
  f.choice("kl_estimator", kl_estimator, {"k1", "abs", "k2", "k3", "k3_plus"}, "estimator of that KL");
  f.choice("kl_control", kl_control, "adaptive: kl_coeff is steered towards kl_target");
  f.field("kl_target", kl_target, Range{1e-9, 1e6}, "mean KL per token, nats, that the controller aims at");
  f.field("kl_horizon", kl_horizon, Range{1, 1e12}, "responses over which the controller may move by a factor");
  f.section("kl_schedule", kl_schedule);
  f.section("code", code);
}

void ReferenceConfig::fields(Fields& f) {
  f.field("sync_steps", sync_steps, Range{0, 1e9},
          "every N steps the reference of the KL terms is moved to the policy; 0 = it stays the policy's start");
  f.field("mixup_alpha", mixup_alpha, Range{1e-9, 1},
          "by how much: reference = alpha policy + (1 - alpha) reference; 1 = a reset, with sync_steps = 1 a small one "
          "is an EMA");
}

void UpdateConfig::fields(Fields& f) {
  f.field("mini_batch_size", mini_batch_size, Range{1, 1 << 20}, "prompts per optimizer update", Effect::size);
  f.field("epochs", epochs, Range{1, 1000}, "passes over each step's batch");
  f.field("micro_batch_tokens", micro_batch_tokens, Range{16, 1 << 24}, "tokens per forward and backward pass",
          Effect::procedure);
  f.choice("recompute", recompute,
           "what a backward pass makes again instead of keeping it: nothing, all of a block but its attention, all of "
           "it; the same bits for less memory",
           Effect::bookkeeping);
  f.choice("reduce", reduce, {"sum", "ordered"},
           "gradients of several ranks: their sum, or one rank adds to another's in the order of one process: the same "
           "bits for any number of ranks, and their backward passes wait for each other");
  f.choice("shard", shard,
           "what each of several ranks keeps a share of: the optimizer's moments, or gradients, too: less memory, and "
           "more bytes sent, of every pass instead of every update");
}

void RunConfig::fields(Fields& f) {
  f.field("steps", steps, Range{0, 1e9}, "rollout steps; 0 = as many as the epochs give", Effect::size);
  f.field("epochs", epochs, Range{1, 1e6}, "where steps is 0: the run ends after so many passes over the problems",
          Effect::size);
  f.field("save_freq", save_freq, Range{0, 1e9}, "checkpoint every N steps; 0 = at the end only", Effect::bookkeeping);
  f.field("keep", keep, Range{1, 1000}, "checkpoints kept", Effect::bookkeeping);
  f.field("test_freq", test_freq, Range{0, 1e9}, "greedy validation every N steps; 0 = off", Effect::procedure);
  f.field("val_before_train", val_before_train, "validate before the first step too", Effect::procedure);
  f.field("val_n", val_n, Range{0, 1 << 16},
          "sampled responses to each validation problem, beside the greedy one: mean@n and pass@k; 0 = none",
          Effect::procedure);
  f.field("val_temperature", val_temperature, Range{1e-2, 100}, "of these", Effect::procedure);
  f.field("best_metric", best_metric,
          "keep the checkpoint where this number of a validation is highest, beside the newest: a name of steps.jsonl, "
          "such as \"val-core/*/acc/mean@1\" (the mean over what * stands for); empty = none",
          Effect::procedure);
  f.field("patience", patience, Range{0, 1e6},
          "so many validations in a row without a better best_metric end the run; 0 = it goes on", Effect::size);
  f.field("stop_when", stop_when,
          "the run ends after the first step with a number beyond one of these: names of steps.jsonl with < or >, for "
          "instance \"actor/entropy < 0.05\", \"actor/ppo_kl > 0.1\", \"rollout/logprob_diff_mean > 0.05\"",
          Effect::size);
  f.field("stored_prompts", stored_prompts, Range{0, 1000}, "prompts per step whose responses are kept for the report",
          Effect::bookkeeping);
  f.field("stored_responses", stored_responses, Range{0, 1000}, "responses kept of each", Effect::bookkeeping);
  f.field("stored_signals", stored_signals, Range{0, 1e9},
          "keep all signals of every N-th step and of the first, for `ucas advantages` and the report; 0 = off",
          Effect::bookkeeping);
  f.field("stored_signal_tokens", stored_signal_tokens, Range{0, 1e12},
          "most tokens of a step kept so, in whole prompts, about 130 bytes each; 0 = all", Effect::bookkeeping);
  f.field("tensorboard", tensorboard, "write the numbers of steps.jsonl as event files for TensorBoard, too",
          Effect::bookkeeping);
  f.field("max_hours", max_hours, Range{0, 1e5}, "save and exit 75 after this long; 0 = no limit", Effect::bookkeeping);
  f.field(
      "watchdog", watchdog, Range{0, 1e7},
      "say after so many seconds without progress which phase, response, problem or grader the run is stuck in; 0 = "
      "never",
      Effect::bookkeeping);
  f.field("watchdog_end", watchdog_end, Range{0, 1e7},
          "end the program with exit 74 after so many seconds without progress; the last checkpoint stands; 0 = never",
          Effect::bookkeeping);
}

void TrainConfig::fields(Fields& f) {
  f.field("label", label, "name of the run in reports; empty = the method's title", Effect::bookkeeping);
  f.field("model", model, "Hugging Face checkpoint directory, or that of a PEFT adapter to go on with", Effect::place);
  f.field("device", device, "cpu, cuda or cuda:N", Effect::place);
  f.choice("dtype", dtype, "of products, activations, keys and values; sums, masters and moments are f32 in both");
  f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores", Effect::place);
  f.field("seed", seed, Range{0, 9e15}, "of sampling and data order", Effect::place);
  f.section("data", data);
  f.section("rollout", rollout);
  f.section("lora", lora);
  f.section("reward", reward);
  f.section("reference", reference);
  struct MethodSection {
    TrainConfig* config;
    void fields(Fields& inner) {
      inner.field("name", config->method_name, "the method, one of those listed below");
      inner.field("preset", config->method_preset, "which form of it, as listed below; empty = its first");
      if (config->method) config->method->fields(inner);
    }
  } method_section{this};
  f.section("method", method_section);
  f.section("objective", objective);
  f.section("update", update);
  f.section("optimizer", optimizer);
  f.section("train", train);
}

void RewardConfig::validate() const {
  Refusals refuse("config");
  if (const std::string wrong_schedule = kl_schedule.refusal("reward.kl_schedule"); !wrong_schedule.empty()) {
    refuse(wrong_schedule);
  }
  if (correct <= wrong) refuse(str("reward.correct = ", correct, " must be larger than reward.wrong = ", wrong));
  refuse.attempt([&] { parse_graders(graders, "reward.graders"); });
  std::vector<WeightedPart> parts;
  refuse.attempt([&] { parts = parse_reward_weights(weights, !command.empty()); });
  if (parts.empty()) return refuse.finish();
  const auto weighs = [&](RewardPart part) {
    return std::ranges::find(parts, part, &WeightedPart::part) != parts.end();
  };
  if (weighs(RewardPart::command) && command.empty()) {
    refuse("reward.weights names command, but reward.command is empty: say which program scores");
  }
  if (!weighs(RewardPart::command) && !command.empty()) {
    refuse("reward.command is given, but reward.weights has no part for it: add \"command=1\"");
  }
  if (weighs(RewardPart::format) == format.empty()) {
    refuse(format.empty() ? "reward.weights names format, but reward.format is empty: say which pattern, for instance "
                            "think_answer"
                          : "reward.format is given, but reward.weights has no part for it: add \"answer=1\" and "
                            "\"format=0.2\"");
  }
  refuse.finish();
}

void TrainConfig::validate() const {
  Refusals refuse("config");
  if (data.files.empty()) refuse("data.files is empty: give --data FILE.jsonl");
  if (model.empty()) refuse("model is empty: give --model DIR, a Hugging Face checkpoint directory");
  if (method && method->needs().teacher == "")
    refuse("method.teacher is empty: give --method.teacher DIR, the checkpoint of the teacher");
  if (rollout.backend != SampledBy::native && rollout.servers.empty()) {
    refuse(str("rollout.backend = \"", word_of(rollout.backend),
               "\" but rollout.servers is empty: give --rollout.servers http://HOST:PORT"));
  }
  if (train.test_freq > 0 && data.val_files.empty()) {
    refuse(
        str("train.test_freq = ", train.test_freq, " but data.val_files is empty: give --data.val_files FILE.jsonl"));
  }
  if (!train.best_metric.empty() && train.test_freq == 0) {
    refuse("train.best_metric is given, but train.test_freq = 0: nothing is validated; set train.test_freq");
  }
  if (train.patience > 0 && train.best_metric.empty()) {
    refuse(str("train.patience = ", train.patience, " needs train.best_metric, such as \"val-core/*/acc/mean@1\""));
  }
  if (train.val_n == 1) refuse("train.val_n = 1: mean@1 is the greedy response's; give 0, or 2 and more samples");
  refuse.attempt([&] { validate_settings(); });
  refuse.finish();
}

void TrainConfig::validate_settings() const {
  Refusals refuse("config");
  if (update.mini_batch_size > data.train_batch_size) {
    refuse(str("update.mini_batch_size = ", update.mini_batch_size, " is larger than data.train_batch_size = ",
               data.train_batch_size, ": lower the one or raise the other"));
  }
  if (rollout.lag > 0 && rollout.surplus == Surplus::carry) {
    refuse("rollout.lag = 1 with rollout.surplus = \"carry\": prompts would be two steps old; choose one of them");
  }
  if (rollout.backend != SampledBy::native) {
    const std::string with = str(" with rollout.backend = \"", word_of(rollout.backend), "\"");
    if (rollout.top_p < 1 || rollout.top_k > 0 || rollout.min_p > 0) {
      refuse(str("rollout.top_p, rollout.top_k and rollout.min_p", with,
                 ": servers do not say log-probs both before and after the cut; leave them at 1, 0 and 0"));
    }
    if (lora.rank > 0) {
      refuse(str("lora.rank = ", lora.rank, with, ": whole weights are handed over, no adapters; set lora.rank = 0"));
    }
  } else if (!rollout.servers.empty()) {
    refuse("rollout.servers without rollout.backend: say sglang or vllm");
  }
  refuse.attempt([&] { reward.validate(); });
  if (reward.overlong_buffer >= rollout.response_length && reward.overlong_buffer > 0) {
    refuse(str("reward.overlong_buffer = ", reward.overlong_buffer,
               " must be smaller than rollout.response_length = ", rollout.response_length));
  }
  if (data.examples.shots > 0 && data.examples.few_shot.empty()) {
    refuse(str("data.shots = ", data.examples.shots, " needs data.few_shot, the file of the examples"));
  }
  refuse.attempt([&] { parse_source_weights(data.weights); });
  refuse.attempt([&] { parse_stop_bounds(train.stop_when); });
  if (data.draw == DrawOrder::difficulty && !data.shuffle) {
    refuse(
        "data.draw = \"difficulty\" draws by chance, and data.shuffle = false asks for the order of the files: leave "
        "out "
        "one of them");
  }
  if (reward.kl_control == KlControl::adaptive && reward.kl_coeff == 0) {
    refuse("reward.kl_control = \"adaptive\" needs reward.kl_coeff > 0 to start from, such as 0.001");
  }
  if (reward.kl_control == KlControl::adaptive && reward.kl_schedule.form != KlForm::constant) {
    refuse(
        "reward.kl_control = \"adaptive\" with reward.kl_schedule: either the KL steers the coefficient, or the "
        "steps do; leave one of them out");
  }
  if (objective.keep_mixed_groups && rollout.n == 1) {
    refuse("objective.keep_mixed_groups needs rollout.n >= 2: a group of one is never mixed");
  }
  if (objective.keep_low > objective.keep_high) {
    refuse(str("objective.keep_low = ", objective.keep_low, " is above objective.keep_high = ", objective.keep_high,
               ": no prompt can pass"));
  }
  if (objective.dual_clip != 0 && objective.dual_clip <= 1) {
    refuse(str("objective.dual_clip = ", objective.dual_clip, ": must be above 1, or 0 for off"));
  }
  refuse.attempt([&] { objective.validate(); });
  if (method) {
    refuse.attempt([&] { method->validate(); });
    refuse.finish();  // what follows reads them together
    refuse.attempt([&] { validate_combination(); });
  }
  refuse.finish();
}

// What method, objective and sizes cannot be together: each alone is fine.
void TrainConfig::validate_combination() const {
  Refusals refuse("config");
  const Needs need = needs();
  const int64_t generated = gen_batch() * data.max_num_gen_batches;
  if (generated > 0 && generated < data.train_batch_size) {
    refuse(str("data.train_batch_size = ", data.train_batch_size, " prompts are never reached with data.gen_batch_size",
               " = ", gen_batch(), " and data.max_num_gen_batches = ", data.max_num_gen_batches,
               ": raise one of these"));
  }
  if (objective.keep_low > 0 || objective.keep_high < 1) {
    bool possible = false;
    for (int64_t right = 0; right <= rollout.n; ++right) {
      const double share = static_cast<double>(right) / static_cast<double>(rollout.n);
      possible |= share >= objective.keep_low && share <= objective.keep_high;
    }
    if (!possible) {
      refuse(str("no share of rollout.n = ", rollout.n, " responses lies within objective.keep_low = ",
                 objective.keep_low, " and objective.keep_high = ", objective.keep_high,
                 ": no prompt can pass; raise rollout.n or widen the interval"));
    }
  }
  if (objective.norm_length > 0 && objective.aggregation != Aggregation::seq_mean_token_sum_norm &&
      objective.aggregation != Aggregation::row_mean_token_sum_norm) {
    refuse(str("objective.norm_length = ", objective.norm_length,
               " has no meaning for a mean over tokens: set objective.aggregation to seq_mean_token_sum_norm or "
               "row_mean_token_sum_norm, or leave it 0"));
  }
  auto is_cosine = [](const auto& part) { return part && part->optimizer.schedule == Schedule::cosine; };
  if (!steps_are_known() && (optimizer.schedule == Schedule::cosine || is_cosine(need.critic) || is_cosine(need.prm))) {
    const bool bounded = rollout.surplus == Surplus::drop;
    refuse(str("a cosine schedule needs the number of steps, and under dynamic sampling train.epochs = ", train.epochs,
               " passes over the problems may give any: set train.steps",
               bounded ? str(", or data.max_num_gen_batches = ", fewest_gen_batches()) : ""));
  }
  if (need.critic && need.critic->updates > data.train_batch_size * rollout.n) {
    refuse(str("method.critic.updates = ", need.critic->updates, " is more than the ", data.train_batch_size, " x ",
               rollout.n, " responses of a step: each update needs one at least"));
  }
  if (rollout.surplus == Surplus::carry) refuse.attempt([&] { validate_surplus(); });
  if (need.on_policy) refuse_off_policy(refuse);
  if (reference.moves() && !need.reference) {
    refuse(str("reference.sync_steps = ", reference.sync_steps,
               ", but nothing reads a reference: set "
               "objective.kl_coeff or reward.kl_coeff, or leave it out"));
  }
  if (!reference.moves() && reference.mixup_alpha != 1) {
    refuse(str("reference.mixup_alpha = ", reference.mixup_alpha, " needs reference.sync_steps: after how many steps"));
  }
  if (rollout.n < need.responses) {
    refuse(str("rollout.n = ", rollout.n, ": ", method->title(), " with these options needs at least ", need.responses,
               " responses to a prompt, or every advantage is 0; raise rollout.n, or change the [method] options"));
  }
  if (!method->needs().labels && reward.overlong_buffer > 0) {
    refuse(str("reward.overlong_buffer = ", reward.overlong_buffer, " would change nothing: ", method->title(),
               " makes its own reward; set it to 0"));
  }
  if (need.reward_parts && reward.weights.size() > 1) {
    for (auto [key, value] :
         {std::pair{"overlong_buffer", static_cast<double>(reward.overlong_buffer)}, {"kl_coeff", reward.kl_coeff}}) {
      if (value == 0) continue;
      refuse(str("reward.", key, " = ", value, " would change nothing: ", method->title(),
                 " reads the parts of reward.weights, and it is none of them; set it to 0"));
    }
  }
  for (const FieldValue& f : fields_of(*this)) {
    if (rollout.n == 1 && f.key == "method.group_of_one" && f.value == "\"zero\"") {
      refuse("rollout.n = 1 with method.group_of_one = \"zero\": every advantage would be 0; raise rollout.n");
    }
  }
  refuse.finish();
}

// Exactly on-policy: one update a step, and all of it sampled by the policy as it is.
void TrainConfig::refuse_off_policy(Refusals& refuse) const {
  const std::string instead = str("; ", method->title(), " is exactly on-policy, or set method.on_policy = false");
  if (update.mini_batch_size < data.train_batch_size) {
    refuse(str("update.mini_batch_size = ", update.mini_batch_size,
               " gives several updates a step: set it to "
               "data.train_batch_size = ",
               data.train_batch_size, instead));
  }
  if (update.epochs > 1) refuse(str("update.epochs = ", update.epochs, ": set it to 1", instead));
  if (rollout.lag > 0) refuse(str("rollout.lag = 1 trains on what an earlier policy sampled: set it to 0", instead));
  if (rollout.surplus == Surplus::carry) {
    refuse(str("rollout.surplus = \"carry\" trains on what an earlier policy sampled: set it to \"drop\"", instead));
  }
}

// What is carried keeps the sampler's figures alone, and only a rule that lets some prompts pass leaves any.
void TrainConfig::validate_surplus() const {
  const KeepRule rule = keep_rule();
  const Needs need = needs();
  if (!rule.filters() || rule.order != KeepOrder::refill) {
    throw Error("config", str("rollout.surplus = \"carry\" needs a rule that prompts must pass, such as "
                              "objective.keep_mixed_groups = true, under objective.keep_order = \"refill\": ",
                              rule.filters() ? "\"prefer\" fills up with others, and leaves nothing" : "here all pass",
                              "; set it to \"drop\""));
  }
  if (need.margin || need.tail_confidence || need.divergence) {
    throw Error("config", str("rollout.surplus = \"carry\": ", method->title(), " with these options reads ",
                              need.margin            ? "margins of the old policy"
                              : need.tail_confidence ? "its confidence after the last token"
                                                     : "the likeliest tokens of the law that was drawn from",
                              ", which the sampler does not note; set it to \"drop\""));
  }
}

std::string TrainConfig::title() const { return !label.empty() ? label : method ? method->title() : method_name; }

Needs TrainConfig::needs() const {
  Needs needs = method ? method->needs() : Needs{};
  needs.reference =
      needs.reference || objective.kl_schedule.ever(objective.kl_coeff) || reward.kl_schedule.ever(reward.kl_coeff);
  needs.labels = needs.labels || data.draw == DrawOrder::difficulty;
  needs.labels = needs.labels || keep_rule().mixed || objective.keep_low > 0 || objective.keep_high < 1;
  return needs;
}

int64_t TrainConfig::fewest_gen_batches() const {
  int64_t needed = (data.train_batch_size + gen_batch() - 1) / gen_batch();
  return data.max_num_gen_batches > 0 ? std::min(needed, data.max_num_gen_batches) : needed;
}

bool TrainConfig::steps_are_known() const { return !uses_passes() || prompts_are_known(); }

bool TrainConfig::prompts_are_known() const {
  KeepRule rule = keep_rule();
  if (!rule.filters() || rule.order == KeepOrder::prefer) return true;
  return rule.max_gen_batches == fewest_gen_batches() && rollout.surplus == Surplus::drop;
}

KeepRule TrainConfig::keep_rule() const {
  KeepRule rule;
  rule.mixed = objective.keep_mixed_groups;
  rule.low = objective.keep_low;
  rule.high = objective.keep_high;
  rule.untruncated = objective.keep_untruncated;
  rule.order = objective.keep_order;
  rule.train_short = data.train_short;
  rule.wanted = data.train_batch_size;
  rule.max_gen_batches = data.max_num_gen_batches;
  rule.response_limit = rollout.response_length;
  return rule;
}

ModelOptions TrainConfig::model_options() const {
  return {.dtype = dtype, .recompute = update.recompute, .lora = lora, .seed = static_cast<uint64_t>(seed)};
}

ModelOptions TrainConfig::companion_options() const { return {.dtype = dtype, .recompute = update.recompute}; }

Effect effect_of(const std::string& key) {
  static const std::vector<FieldValue> fields = fields_of(TrainConfig{});
  auto found = std::ranges::find(fields, key, &FieldValue::key);
  return found == fields.end() ? Effect::result : found->effect;
}

TrainConfig make_train_config(const std::vector<Setting>& settings) {
  TrainConfig first;
  try {
    apply(first, settings, false);  // finds method.name
  } catch (const Error&) {          // said below, with all else that is wrong
  }
  TrainConfig config;
  config.method_name = first.method_name;
  try {
    config.method = make_method(config.method_name, first.method_preset);
  } catch (const Error& unknown) {  // what else is wrong is said with it, but of the options that the method would have
    Refusals refuse("config");
    refuse(unknown.what());
    std::vector<Setting> others = settings;
    std::erase_if(others, [](const Setting& s) { return s.key.starts_with("method."); });
    refuse.attempt([&] { ucas::apply(config, others); });
    refuse.finish();
  }
  const std::string& default_preset = config.method->row().presets.front();
  config.objective = config.method->objective_defaults();
  apply(config, settings);
  if (config.method_preset.empty()) config.method_preset = default_preset;
  // Only a chat template leaves it to the prompts, which are not known yet.
  if (!may_be_chat(config.data.prompt_template)) {
    config.reward.extract = option_of(said(config.reward.extract).value_or(Extract::strict));
  }
  return config;
}

std::vector<Setting> read_config_file(const std::string& path_or_name) {
  if (!exists(path_or_name)) {
    if (auto text = embedded(str("configs/", path_or_name, ".toml"))) {
      return parse_toml(std::string(*text), path_or_name + ".toml");
    }
    const std::vector<std::string> names = embedded_stems("configs/");
    if (path_or_name.find('/') == std::string::npos && !path_or_name.ends_with(".toml")) {
      std::vector<std::string> own;  // of the method that was named
      for (const std::string& name : names) {
        if (name.starts_with(path_or_name + "-")) own.push_back(name);
      }
      const std::string instead = own.empty() ? str(did_you_mean(path_or_name, names),
                                                    "; `ucas train --help` lists the ", names.size(), " of them")
                                              : str("; of that method there are ", join(own, ", "), ", and --method ",
                                                    path_or_name, " takes the method alone");
      throw Error("path", str(printable(path_or_name), ": neither a file nor one of the embedded configs", instead));
    }
  }
  return read_toml(path_or_name);
}

}  // namespace ucas
