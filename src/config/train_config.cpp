#include "config/train_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "config/prompt_choice.h"
#include "verify/registry.h"

namespace ucas {

void TrainConfig::fields(Fields& f) {
  f.field("label", label, "run name in reports; empty = the method's title", Effect::bookkeeping);
  f.field("model", model, OptionNames::checkpoint,
          "Hugging Face checkpoint directory, or PEFT adapter directory to train further", Effect::place);
  f.field("device", device, "device to train on: cpu, cuda or cuda:N", Effect::place);
  f.choice(
      "dtype", dtype,
      "dtype of matmuls, activations and KV cache; auto = bf16 on a CUDA device, f32 on a CPU; sums, master weights "
      "and moments are always f32");
  f.field("threads", threads, Range{0, 4096}, "CPU threads; 0 = all cores", Effect::place);
  f.field("seed", seed, Range{0, 9e15}, "random seed of sampling and data order", Effect::place);
  f.section("data", data);
  f.section("rollout", rollout);
  f.section("lora", lora);
  f.section("reward", reward);
  f.section("reference", reference);
  struct MethodSection {
    TrainConfig* config;
    void fields(Fields& inner) {
      inner.field("name", config->method_name, "RLVR method; `ucas train --help methods` lists all");
      inner.field("preset", config->method_preset, "preset of the method; empty = the method's first");
      inner.field(
          "python", config->method_python,
          "advantages by a Python function, FILE.py:FUNCTION, in the place of the method's; slower; empty = none");
      // Last: a method may have sections of its own.
      if (config->method) config->method->fields(inner);
    }
  } method_section{this};
  f.section("method", method_section);
  f.section("objective", objective);
  f.section("update", update);
  f.section("optimizer", optimizer);
  f.section("train", train);
}

void TrainConfig::validate() const {
  Refusals refuse(ErrorKind::config);
  if (data.files.empty()) refuse("data.files is empty: give --data FILE.jsonl");
  if (model.empty()) refuse("model is empty: give --model DIR, a Hugging Face checkpoint directory");
  if (method && method->needs().teacher == "")
    refuse("method.teacher is empty: give --method.teacher DIR, the checkpoint of the teacher");
  if (train.test_freq > 0 && data.val_files.empty()) {
    refuse(
        str("train.test_freq = ", train.test_freq, " but data.val_files is empty: give --data.val_files FILE.jsonl"));
  }
  if (!train.best_metric.empty() && train.test_freq == 0) {
    refuse("train.best_metric is given, but train.test_freq = 0: nothing is validated; set train.test_freq");
  }
  if (train.val_n == 1) refuse("train.val_n = 1: mean@1 is the greedy response's; give 0, or 2 and more samples");
  refuse.attempt([&] { validate_settings(); });
  refuse.finish();
}

void TrainConfig::validate_settings() const {
  Refusals refuse(ErrorKind::config);
  const std::vector<std::string> trackers = {"tensorboard", "wandb", "mlflow", "trackio"};
  for (const std::string& name : train.track) {
    if (std::ranges::find(trackers, name) != trackers.end()) continue;
    refuse(str("train.track = ", printable(name), ": expected some of ", join(trackers, ", "),
               did_you_mean(name, trackers)));
  }
  if (update.mini_batch_size > data.train_batch_size) {
    refuse(str("update.mini_batch_size = ", update.mini_batch_size, " is larger than data.train_batch_size = ",
               data.train_batch_size, ": lower the one or raise the other"));
  }
  refuse_sampling(refuse);
  refuse.attempt([&] { reward.validate(); });
  if (reward.overlong_buffer >= rollout.response_length && reward.overlong_buffer > 0) {
    refuse(str("reward.overlong_buffer = ", reward.overlong_buffer,
               " must be smaller than rollout.response_length = ", rollout.response_length));
  }
  if (data.examples.shots > 0 && data.examples.few_shot.empty()) {
    refuse(str("data.shots = ", data.examples.shots, " needs data.few_shot, the file of the examples"));
  }
  refuse_objective(refuse);
  refuse_offload(refuse);
  if (method) {
    refuse.attempt([&] { method->validate(); });
    refuse.finish();  // what follows reads them together
    refuse.attempt([&] { validate_combination(); });
  }
  refuse.finish();
}

// Who samples, and what they cannot do.
void TrainConfig::refuse_sampling(Refusals& refuse) const {
  if (rollout.off_policy_steps > 0 && rollout.carry_over) {
    refuse(
        "rollout.off_policy_steps = 1 with rollout.carry_over = true: prompts would be two steps old; choose one of "
        "them");
  }
  if (rollout.served()) {
    const std::string with = " with rollout.servers";
    if (rollout.top_p < 1) {
      refuse(str("rollout.top_p", with, ": servers do not say log-probs both before and after the cut; leave it at 1"));
    }
    if (lora.rank > 0) {
      refuse(str("lora.rank = ", lora.rank, with, ": whole weights are handed over, no adapters; set lora.rank = 0"));
    }
  } else {
    if (rollout.off_policy_steps > 0) {
      refuse(
          "rollout.off_policy_steps = 1 without servers would only move the sampling before the update: set it to 0, "
          "or sample with servers (rollout.servers)");
    }
  }
  if (rollout.stop_early) refuse.attempt([&] { refuse_early_stop(refuse); });
  if (rollout.environment.some()) {
    const std::string with = str("rollout.environment = \"", word_of(rollout.environment.kind), "\"");
    if (rollout.served()) {
      refuse(str(with, " with rollout.servers: servers know of no inserts; leave rollout.servers empty"));
    }
    if (device != "cpu") {
      refuse(str(with, " with device = \"", device,
                 "\": the decoder of a GPU samples several tokens at once; set device = \"cpu\""));
    }
  }
}

// A reference that moves reads the masters where the update leaves them.
void TrainConfig::refuse_offload(Refusals& refuse) const {
  if (update.offload == Offload::none || dtype != Dtype::bf16 || !reference.moves()) return;
  refuse(str("update.offload = \"", word_of(update.offload), "\" with reference.sync_steps = ", reference.sync_steps,
             ": a reference that moves reads master weights on the device; set update.offload = \"none\""));
}

// Which prompts count, and how loss and reward are weighed.
void TrainConfig::refuse_objective(Refusals& refuse) const {
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
}

// What method, objective and sizes cannot be together: each alone is fine.
void TrainConfig::validate_combination() const {
  Refusals refuse(ErrorKind::config);
  const Needs need = needs();
  refuse_filter(refuse);
  if (need.critic && need.critic->updates > data.train_batch_size * rollout.n) {
    refuse(str("method.critic.updates = ", need.critic->updates, " is more than the ", data.train_batch_size, " x ",
               rollout.n, " responses of a step: each update needs one at least"));
  }
  if (rollout.carry_over) refuse.attempt([&] { validate_carry_over(); });
  if (need.on_policy) refuse_off_policy(refuse);
  refuse_without_effect(need, refuse);
  refuse.finish();
}

// Early stopping decides by verdicts, while others are sampled.
void TrainConfig::refuse_early_stop(Refusals& refuse) const {
  const auto refuse_with = [&](const std::string& why) {
    refuse(str("rollout.stop_early = true ", why, "; set it to false"));
  };
  if (!keep_rule().filters()) {
    refuse_with(
        "needs a rule that prompts must pass, such as objective.keep_mixed_groups = true: here all pass, and "
        "data.gen_batch_size says how many are sampled");
  }
  if (rollout.served()) {
    refuse_with("with rollout.servers: requests to servers are not aborted");
  }
  if (reward.from_outside()) {
    refuse_with(str("with ", reward.scorer(), ": its scores come once all responses are sampled"));
  }
  // The number of responses decoded at once changes bits on a GPU, and a program takes now longer, now less.
  bool programs = reward.grader == GraderKind::code;
  for (const auto& [source, grader] : parse_graders(reward.graders, "reward.graders")) {
    programs = programs || grader == GraderKind::code;
  }
  if (programs && device.starts_with("cuda")) {
    refuse_with("with the grader code and device = \"cuda\": what is aborted would depend on how long programs run");
  }
}

// Prompts that can never make up a step.
void TrainConfig::refuse_filter(Refusals& refuse) const {
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
}

// What the method does not read, or what leaves it no advantage.
void TrainConfig::refuse_without_effect(const Needs& need, Refusals& refuse) const {
  if (reference.moves() && !need.reference) {
    refuse(str("reference.sync_steps = ", reference.sync_steps,
               ", but nothing reads a reference: set "
               "objective.kl_coeff or reward.kl_coeff, or leave it out"));
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
  if (rollout.off_policy_steps > 0)
    refuse(str("rollout.off_policy_steps = 1 trains on what an earlier policy sampled: set it to 0", instead));
  if (rollout.carry_over) {
    refuse(str("rollout.carry_over = true trains on what an earlier policy sampled: set it to false", instead));
  }
}

// What is carried keeps the sampler's figures alone, and only a rule that lets some prompts pass leaves any.
void TrainConfig::validate_carry_over() const {
  const KeepRule rule = keep_rule();
  const Needs need = needs();
  if (!rule.filters() || rule.order != KeepOrder::refill) {
    throw Error(
        ErrorKind::config,
        str("rollout.carry_over = true needs a rule that prompts must pass, such as "
            "objective.keep_mixed_groups = true: ",
            rule.filters() ? str(method->title(), " fills the batch with others, and leaves nothing") : "here all pass",
            "; set it to false"));
  }
  if (need.margin || need.tail_confidence || need.min_p) {
    throw Error(ErrorKind::config, str("rollout.carry_over = true: ", method->title(), " with these options reads ",
                                       need.margin            ? "margins of the old policy"
                                       : need.tail_confidence ? "its confidence after the last token"
                                       : need.min_p           ? "its distribution under min-p"
                                                              : "the likeliest tokens of the sampling distribution",
                                       ", which the sampler does not note; set it to false"));
  }
}

std::string TrainConfig::title() const { return !label.empty() ? label : method ? method->title() : method_name; }

Needs TrainConfig::needs() const {
  Needs needs = method ? method->needs() : Needs{};
  needs.reference = needs.reference || objective.kl_coeff > 0 || reward.kl_coeff > 0;
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
  return rule.max_gen_batches == fewest_gen_batches() && !rollout.carry_over;
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

ModelOptions TrainConfig::auxiliary_model_options() const { return {.dtype = dtype, .recompute = update.recompute}; }

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
    Refusals refuse(ErrorKind::config);
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
  config.dtype = decided(config.dtype, config.device);
  // Only a chat template leaves it to the prompts, which are not known yet.
  if (!may_be_chat(config.data.prompt_template)) {
    config.reward.extract = option_of(said(config.reward.extract).value_or(Extract::strict));
  }
  return config;
}

}  // namespace ucas
