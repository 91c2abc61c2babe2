#include "config/train_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "config/policy_options.h"

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

namespace {

// What of a section cannot be together with what, and the line that says so; a table for each section.
struct Refusal {
  bool when;
  std::string line;
};
using RefusalTable = std::vector<Refusal>;

RefusalTable of_files(const TrainConfig& c) {
  return {{c.data.files.empty(), "data.files is empty: give --data FILE.jsonl"},
          {c.model.empty(), "model is empty: give --model DIR, a Hugging Face checkpoint directory"},
          {c.method && c.method->needs().teacher == "",
           "method.teacher is empty: give --method.teacher DIR, the checkpoint of the teacher"}};
}

RefusalTable of_validation(const TrainConfig& c) {
  return {{c.train.test_freq > 0 && c.data.val_files.empty(),
           str("train.test_freq = ", c.train.test_freq,
               " but data.val_files is empty: give --data.val_files FILE.jsonl, or --train.test_freq 0")},
          {!c.train.best_metric.empty() && c.train.test_freq == 0,
           "train.best_metric is given, but train.test_freq = 0: nothing is validated; set train.test_freq"},
          {c.train.val_n == 1, "train.val_n = 1: mean@1 is the greedy response's; give 0, or 2 and more samples"}};
}

// Who samples, and what they cannot do.
RefusalTable of_rollout(const TrainConfig& c) {
  const TrainRolloutConfig& r = c.rollout;
  const std::string environment = str("rollout.", r.environment.name(), " with ");
  return {{c.update.mini_batch_size > c.data.train_batch_size,
           str("update.mini_batch_size = ", c.update.mini_batch_size, " is larger than data.train_batch_size = ",
               c.data.train_batch_size, ": lower the one or raise the other")},
          {r.served() && r.top_p < 1,
           "rollout.top_p with rollout.servers: servers do not say log-probs both before and after the cut; leave it "
           "at 1"},
          {r.served() && c.lora.rank > 0,
           str("lora.rank = ", c.lora.rank,
               " with rollout.servers: whole weights are handed over, no adapters; set lora.rank = 0")},
          {r.environment.some() && r.served(),
           environment + "rollout.servers: servers know of no inserts; leave rollout.servers empty"}};
}

RefusalTable of_reward(const TrainConfig& c) {
  return {{c.reward.overlong_buffer >= c.rollout.response_length && c.reward.overlong_buffer > 0,
           str("reward.overlong_buffer = ", c.reward.overlong_buffer,
               " must be smaller than rollout.response_length = ", c.rollout.response_length)},
          {c.data.examples.shots > 0 && c.data.examples.few_shot.empty(),
           str("data.shots = ", c.data.examples.shots, " needs data.few_shot, the file of the examples")}};
}

// Which prompts count, and how the loss is weighed.
RefusalTable of_objective(const TrainConfig& c) {
  const ObjectiveConfig& o = c.objective;
  return {{o.keep_mixed_groups && c.rollout.n == 1,
           "objective.keep_mixed_groups needs rollout.n >= 2: a group of one is never mixed"},
          {o.keep_low > o.keep_high, str("objective.keep_low = ", o.keep_low,
                                         " is above objective.keep_high = ", o.keep_high, ": no prompt can pass")},
          {o.dual_clip != 0 && o.dual_clip <= 1,
           str("objective.dual_clip = ", o.dual_clip, ": must be above 1, or 0 for off")},
          {o.entropy_target > 0 && o.entropy_coeff < 0,
           str("objective.entropy_coeff = ", o.entropy_coeff, " with objective.entropy_target = ", o.entropy_target,
               ": the bonus starts there and is never negative; set it to 0 or above")}};
}

// A reference that moves reads the masters where the update leaves them.
RefusalTable of_update(const TrainConfig& c) {
  return {
      {c.update.offload != Offload::none && c.dtype == Dtype::bf16 && c.reference.moves(),
       str("update.offload = \"", word_of(c.update.offload), "\" with reference.sync_steps = ", c.reference.sync_steps,
           ": a reference that moves reads master weights on the device; set update.offload = \"none\"")}};
}

// Whether some share of the responses to a prompt is within objective.keep_low and objective.keep_high.
bool some_prompt_can_pass(const TrainConfig& c) {
  if (c.objective.keep_low <= 0 && c.objective.keep_high >= 1) return true;
  for (int64_t right = 0; right <= c.rollout.n; ++right) {
    const double share = static_cast<double>(right) / static_cast<double>(c.rollout.n);
    if (share >= c.objective.keep_low && share <= c.objective.keep_high) return true;
  }
  return false;
}

// Prompts that can never make up a step.
RefusalTable of_filter(const TrainConfig& c) {
  const int64_t generated = c.gen_batch() * c.data.max_num_gen_batches;
  return {{generated > 0 && generated < c.data.train_batch_size,
           str("data.train_batch_size = ", c.data.train_batch_size,
               " prompts are never reached with data.gen_batch_size = ", c.gen_batch(),
               " and data.max_num_gen_batches = ", c.data.max_num_gen_batches, ": raise one of these")},
          {!some_prompt_can_pass(c), str("no share of rollout.n = ", c.rollout.n,
                                         " responses is within objective.keep_low = ", c.objective.keep_low,
                                         " and objective.keep_high = ", c.objective.keep_high,
                                         ": no prompt can pass; raise rollout.n or widen the interval")}};
}

// Exactly on-policy: one update a step, and all of it sampled by the policy as it is.
RefusalTable of_updates_of_method(const TrainConfig& c, const Needs& need) {
  const std::string instead = str("; ", c.method->title(), " is exactly on-policy, or take method.preset = \"verl\"");
  const int64_t updates = need.critic ? need.critic->updates : 0;
  return {{updates > c.data.train_batch_size * c.rollout.n,
           str("method.critic.updates = ", updates, " is more than the ", c.data.train_batch_size, " x ", c.rollout.n,
               " responses of a step: each update needs one at least")},
          {need.on_policy && c.update.mini_batch_size < c.data.train_batch_size,
           str("update.mini_batch_size = ", c.update.mini_batch_size,
               " gives several updates a step: set it to data.train_batch_size = ", c.data.train_batch_size, instead)},
          {need.on_policy && c.update.epochs > 1, str("update.epochs = ", c.update.epochs, ": set it to 1", instead)}};
}

// What the method does not read, or what leaves it no advantage.
RefusalTable of_method(const TrainConfig& c, const Needs& need) {
  const std::string title = c.method->title();
  const bool parts = need.reward_parts && c.reward.weights.size() > 1;
  const auto unread = [&](const char* key, double value) {
    return Refusal{parts && value != 0, str("reward.", key, " = ", value, " would change nothing: ", title,
                                            " reads the parts of reward.weights, and it is none of them; set it to 0")};
  };
  const bool zero = std::ranges::any_of(
      fields_of(c), [](const FieldValue& f) { return f.key == "method.group_of_one" && f.value == "\"zero\""; });
  return {{c.reference.moves() && !need.reference,
           str("reference.sync_steps = ", c.reference.sync_steps,
               ", but nothing reads a reference: set objective.kl_coeff or reward.kl_coeff, or leave it out")},
          {c.rollout.n < need.responses,
           str("rollout.n = ", c.rollout.n, ": ", title, " with these options needs at least ", need.responses,
               " responses to a prompt, or every advantage is 0; raise rollout.n, or change the [method] options")},
          {!c.method->needs().labels && c.reward.overlong_buffer > 0,
           str("reward.overlong_buffer = ", c.reward.overlong_buffer, " would change nothing: ", title,
               " makes its own reward; set it to 0")},
          unread("overlong_buffer", static_cast<double>(c.reward.overlong_buffer)),
          unread("kl_coeff", c.reward.kl_coeff),
          {c.rollout.n == 1 && zero,
           "rollout.n = 1 with method.group_of_one = \"zero\": every advantage would be 0; raise rollout.n"}};
}

void check(const RefusalTable& table, Refusals& refuse) {
  for (const Refusal& row : table)
    if (row.when) refuse(row.line);
}

}  // namespace

void TrainConfig::validate() const {
  Refusals refuse(ErrorKind::config);
  for (const auto table : {of_files, of_validation}) check(table(*this), refuse);
  refuse.attempt([&] { validate_settings(); });
  refuse.finish();
}

void TrainConfig::validate_settings() const {
  Refusals refuse(ErrorKind::config);
  check(of_rollout(*this), refuse);
  refuse.attempt([&] { reward.validate(); });
  for (const auto table : {of_reward, of_objective, of_update}) check(table(*this), refuse);
  if (method) {
    refuse.attempt([&] { method->validate(); });
    refuse.finish();  // what follows reads them together
    check(of_filter(*this), refuse);
    check(of_updates_of_method(*this, needs()), refuse);
    check(of_method(*this, needs()), refuse);
  }
  refuse.finish();
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
  return rule.max_gen_batches == fewest_gen_batches();
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
