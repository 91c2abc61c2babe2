#include "train/trainer.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "evaluate/engine/evaluator.h"
#include "objective/rollout_correction.h"
#include "train/checkpoint.h"
#include "train/logprobs.h"
#include "train/objective.h"
#include "train/response_log.h"
#include "train/schedule.h"

namespace ucas {

namespace {

// `count` items in ceil(count / size) runs whose sizes differ by at most one.
std::vector<std::pair<int64_t, int64_t>> even_ranges(int64_t count, int64_t size) {
  int64_t parts = (count + size - 1) / size;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t p = 0; p < parts; ++p) ranges.emplace_back(count * p / parts, count * (p + 1) / parts);
  return ranges;
}

// One response of the step for whoever watches: of the first prompt, another one each step.
TrainSample sample_of(const Collected& collected, const TrainingSet& data, int64_t step) {
  const Group& group = collected.batch.groups[0];
  auto index = static_cast<size_t>(group.first + step % group.count);
  const Response& o = collected.batch.responses[index];
  return {step,
          data.problems[static_cast<size_t>(group.problem)].text,
          collected.text[index],
          name_of(o.verdict.kind),
          o.verdict.answer,
          o.reward,
          o.length,
          o.finished};
}

}  // namespace

Trainer::Trainer(Training& training)
    : t_(training),
      collector_{t_.config,
                 t_.data,
                 *t_.rollout,
                 t_.policy.tokenizer,
                 *t_.verifier,
                 t_.stop_ids,
                 t_.config.needs().answer_classes,
                 [this] { return should_stop(); },
                 nullptr},
      began_(now_seconds()) {
  const TrainConfig& c = t_.config;
  int64_t prompts = problems() * c.train.epochs, of_step = c.gen_batch() * c.fewest_gen_batches();
  total_steps_ = c.uses_passes() ? (prompts + of_step - 1) / of_step : c.train.steps;
  saved_step_ = t_.state.step > 0 ? t_.state.step : -1;
}

bool Trainer::finished() const {
  return t_.config.uses_passes() ? prompts_left(t_.config, problems(), t_.state.cursor) == 0
                                 : t_.state.step >= total_steps_;
}

bool Trainer::should_stop() const {
  return stop_requested() ||
         (t_.config.train.max_hours > 0 && now_seconds() - began_ > t_.config.train.max_hours * 3600);
}

// One step of Sec. 2: o_i ~ pi_old, R_i, A_it, then Eq. 11 on each mini-batch.
Trainer::Outcome Trainer::step() {
  double began = now_seconds();
  TrainState before = t_.state;
  observer_->phase("generating");
  Collected collected = collector_.collect(t_.state.step + 1, t_.state.cursor);
  if (collected.stopped || collected.out_of_prompts) {
    t_.state = before;  // an abandoned step leaves no trace
    if (collected.stopped) return Outcome::stopped;
    log(str("the passes over the problems ended with ", collected.stats.groups_kept, " of data.train_batch_size = ",
            t_.config.data.train_batch_size, " prompts kept; they are dropped (data.train_short = false)"));
    return Outcome::out_of_prompts;
  }
  ++t_.state.step;
  StepMetrics m;
  m.set("training/global_step", static_cast<double>(t_.state.step));
  record_passes(m);
  record_collection(m, collected.stats);
  Batch& batch = collected.batch;
  Outcome outcome = Outcome::trained;
  std::optional<TrainSample> sample;
  if (batch.groups.empty()) {
    warn(str("step ", t_.state.step, ": none of ", collected.stats.groups_generated, " groups had ",
             t_.config.keep_rule().words(), "; nothing to learn from, step skipped"));
    ++t_.state.empty_steps;
    outcome = Outcome::empty;
  } else {
    sample = sample_of(collected, t_.data, t_.state.step);
    observer_->phase("scoring");
    double began_signals = now_seconds();
    bool tail = t_.config.needs().tail_confidence || stores_signals();  // a saved step serves methods of all needs
    compute_signals(*t_.policy.model, batch, t_.config.rollout.temperature, t_.config.update.micro_batch_tokens,
                    tail ? t_.config.rollout.response_length : 0);
    record_mismatch(m, mismatch(batch));
    for (const auto& [name, value] : correction_metrics(t_.config.objective, batch)) m.set(name, value);
    m.set("timing_s/old_log_prob", now_seconds() - began_signals);
    for (auto& companion : t_.companions) companion->prepare(batch, context(), m);
    double shaping = now_seconds();
    std::vector<float> advantage(static_cast<size_t>(batch.token_count()));
    Recording recording;
    t_.config.method->advantages(batch, advantage, recording);
    double shaped = now_seconds();
    for (auto& companion : t_.companions) companion->learn(batch, context(), m);
    double updating = now_seconds();
    observer_->phase("updating");
    record_batch(m, batch, advantage, t_.config.rollout.response_length, t_.policy.model->config().vocab_size);
    for (const auto& [name, value] : recording.metrics) m.set(name, value);
    TokenUpdates updates;  // only of a step that is saved
    if (stores_signals()) updates = {std::vector<float>(advantage.size()), std::vector<uint8_t>(advantage.size())};
    update(batch, advantage, stores_signals() ? &updates : nullptr, m);
    m.set("timing_s/adv", shaped - shaping);
    m.set("timing_s/update_actor", now_seconds() - updating);
    store_responses(collected, advantage, recording, updates);
  }
  m.set("train/skipped_steps", static_cast<double>(t_.state.skipped.total));
  m.set("train/empty_steps", static_cast<double>(t_.state.empty_steps));
  m.set("timing_s/gen", collected.stats.seconds_gen);
  m.set("timing_s/reward", collected.stats.seconds_reward);
  if (t_.config.train.test_freq > 0 && (t_.state.step % t_.config.train.test_freq == 0 || finished())) validate(m);
  finish_row(m, began, sample ? &*sample : nullptr);
  return outcome;
}

void Trainer::record_passes(StepMetrics& m) const {
  auto drawn = static_cast<double>(t_.state.cursor.drawn(problems()));
  m.set("training/epoch", static_cast<double>(t_.state.cursor.epoch));
  m.set("training/prompts", drawn);
  m.set("training/passes", drawn / static_cast<double>(problems()));
}

StepContext Trainer::context() const {
  uint64_t seed = static_cast<uint64_t>(t_.config.seed) + (static_cast<uint64_t>(t_.state.step) << 20);
  return {t_.state.step, total_steps_, seed};
}

void Trainer::update(const Batch& batch, std::span<const float> advantage, TokenUpdates* record, StepMetrics& m) {
  const TrainConfig& c = t_.config;
  double lr = rollout_lr(c.optimizer, t_.state.step - 1, total_steps_);
  std::vector<LossMetrics> losses;
  double norm_sum = 0;
  int64_t updates = 0;
  std::vector<uint8_t> step_mark = select_in_step(*c.method, c.objective, batch, advantage, context().seed);
  for (int64_t epoch = 0; epoch < c.update.epochs; ++epoch) {
    for (auto [first, last] : even_ranges(static_cast<int64_t>(batch.groups.size()), c.update.mini_batch_size)) {
      const Group& from = batch.groups[static_cast<size_t>(first)];
      const Group& to = batch.groups[static_cast<size_t>(last - 1)];
      std::vector<int64_t> responses(static_cast<size_t>(to.first + to.count - from.first));
      std::iota(responses.begin(), responses.end(), from.first);
      uint64_t seed = context().seed + static_cast<uint64_t>(updates);
      losses.push_back(accumulate_gradients(
          *t_.policy.model,
          {batch, advantage, responses, *c.method, c.objective, c.rollout.temperature, c.rollout.response_length,
           c.update.micro_batch_tokens, seed, step_mark, record, updates == 0}));
      StepResult result = t_.optimizer->step(lr);
      norm_sum += result.grad_norm;
      ++updates;
      auto id = [&](const Group& group) { return printable(t_.data.problems[static_cast<size_t>(group.problem)].id); };
      t_.state.skipped.note(result.applied, str("step ", t_.state.step), "the gradient",
                            str("lower optimizer.lr or look at the data (problems ", id(from), " .. ", id(to),
                                ", seed ", c.seed, "); the last checkpoint stands"));
    }
  }
  record_losses(m, losses, c.objective);
  m.set("actor/grad_norm", norm_sum / static_cast<double>(std::max<int64_t>(1, updates)));
  m.set("actor/lr", lr);
  m.set("train/updates", static_cast<double>(updates));
}

void Trainer::validate(StepMetrics& m) {
  observer_->phase("validating");
  double began = now_seconds();
  EvalInput input;
  input.problems = t_.validation.problems;
  input.prompts = t_.validation.prompt;
  input.stop_ids = t_.stop_ids;
  input.label = "validation";
  input.show_progress = false;
  EvalConfig eval;
  eval.samples = 0;
  eval.max_tokens = t_.config.rollout.response_length;
  eval.truncated = static_cast<EvalConfig::Truncated>(t_.config.reward.truncated);
  eval.bootstrap_draws = 0;
  eval.stored_responses = 0;
  EvalResult result = evaluate(*t_.rollout, t_.policy.tokenizer, *t_.verifier, input, eval);
  for (const auto& [source, figures] : result.by_source) {
    if (figures.greedy) m.set(str("val-core/", source, "/acc/mean@1"), figures.greedy->value);
    m.set(str("val-aux/", source, "/response_length/mean"), figures.length);
    m.set(str("val-aux/", source, "/truncated_share"), figures.truncated_share);
    m.set(str("val-aux/", source, "/unparseable_share"), figures.unparseable_share);
  }
  m.set("timing_s/testing", now_seconds() - began);
}

void Trainer::finish_row(StepMetrics& m, double began, const TrainSample* sample) {
  double seconds = now_seconds() - began;
  double tokens = m.get("train/generated_tokens");
  m.set("timing_s/step", seconds);
  m.set("perf/time_per_step", seconds);
  m.set("perf/total_num_tokens", tokens);
  m.set("perf/throughput", tokens / seconds);
  m.set("perf/cpu_memory_used_gb", resident_gb());
  m.set("perf/cpu_memory_peak_gb", peak_resident_gb());
  t_.run.append_step(m.json());
  observer_->step(t_.state.step, m.values(), sample);
}

bool Trainer::stores_signals() const {
  int64_t every = t_.config.train.stored_signals;
  return every > 0 && (t_.state.step == 1 || t_.state.step % every == 0);
}

// These files serve the report: one that cannot be written is no reason to lose the run, unless it goes on so.
void Trainer::store_responses(const Collected& collected, std::span<const float> advantage, const Recording& recording,
                              const TokenUpdates& updates) {
  constexpr int64_t kMostInARow = 3;
  const RunConfig& c = t_.config.train;
  try {
    std::string rows =
        response_rows(collected, t_.data, advantage, t_.state.step, c.stored_prompts, c.stored_responses);
    if (!rows.empty()) write_file(t_.run.rollout_file(t_.state.step), rows);
    if (stores_signals()) {
      write_file(t_.run.signals_file(t_.state.step), signal_rows(t_.config, collected, t_.data, t_.policy.tokenizer,
                                                                 advantage, recording, updates, t_.state.step));
    }
    unstored_in_a_row_ = 0;
  } catch (const Error& failure) {
    if (failure.exit_code() != kIoFailure) throw;
    ++unstored_;
    const std::string what = str("step ", t_.state.step, ": its responses are not stored: ", failure.what());
    if (++unstored_in_a_row_ >= kMostInARow) {
      throw Error(failure.kind(), str(what, " (", kMostInARow, " steps in a row; make room and go on with --resume)"),
                  kIoFailure);
    }
    warn(what);
  }
}

void Trainer::save() {
  if (saved_step_ == t_.state.step) return;
  observer_->phase("saving");
  t_.state.companions.clear();
  for (auto& companion : t_.companions) t_.state.companions[companion->name()] = companion->state();
  save_checkpoint(t_.run, t_.state.step, *t_.policy.model, *t_.optimizer, t_.companions, t_.state.json(),
                  t_.run.model_files(), t_.config.train.keep);
  saved_step_ = t_.state.step;
}

std::string Trainer::length_in_words() const {
  const TrainConfig& c = t_.config;
  if (c.uses_passes()) {
    return str(c.train.epochs, c.train.epochs == 1 ? " pass" : " passes", " over the problems, ",
               c.steps_are_known() ? "" : "at most ", total_steps_, " steps",
               c.steps_are_known() ? "" : ": a step takes generation batches until enough prompts are kept");
  }
  double prompts = static_cast<double>(c.train.steps * c.gen_batch() * c.fewest_gen_batches());
  double passes = prompts / static_cast<double>(problems());
  return str(c.train.steps, " steps, ", c.prompts_are_known() ? "" : "at least ", fixed(passes, passes < 10 ? 2 : 0),
             " passes over the problems");
}

// What is about to happen, before it does.
void Trainer::announce() const {
  const TrainConfig& c = t_.config;
  int64_t batch = c.data.train_batch_size, updates = (batch + c.update.mini_batch_size - 1) / c.update.mini_batch_size;
  KeepRule kept = c.keep_rule();
  auto row = [](const std::string& name, const std::string& value) { log(str("  ", pad_right(name, 22), value)); };
  log(str(c.title(), " on ", c.model, " -> ", t_.run.path()));
  row("problems", str(grouped(static_cast<int64_t>(t_.data.problems.size())),
                      t_.data.dropped > 0 ? str(" (", t_.data.dropped, " over-long prompts dropped)") : ""));
  row("prompts per step",
      str(batch, ", generated ", c.gen_batch(), " at a time",
          kept.filters() && kept.order == KeepOrder::refill
              ? str(", those with ", kept.words(), " kept, ",
                    kept.max_gen_batches == 0 ? "without limit" : str("up to ", kept.max_gen_batches, " times"))
          : kept.filters() ? str(", those with ", kept.words(), " first")
                           : ""));
  row("samples per prompt",
      str(c.rollout.n, ", up to ", c.rollout.response_length, " tokens, temperature ", c.rollout.temperature));
  row("updates per step",
      str(updates * c.update.epochs, " of ", std::min(batch, c.update.mini_batch_size), " prompts (",
          std::min(batch, c.update.mini_batch_size) * c.rollout.n, " responses), lr ", c.optimizer.lr));
  row("tokens per step",
      str("at most ", grouped(c.gen_batch() * c.rollout.n * c.rollout.response_length), " a generation batch"));
  bool by_group = std::ranges::any_of(fields_of(c), [](const FieldValue& f) { return f.key == "method.group_of_one"; });
  if (c.rollout.n == 1 && by_group) {
    warn(str("rollout.n = 1: ", c.method->title(),
             " compares the responses to a prompt, and there is only one; its "
             "advantage is made of its reward alone"));
  }
  row("length", str(length_in_words(), t_.state.step > 0 ? str("; ", t_.state.step, " steps done") : ""));
  if (!t_.validation.problems.empty()) {
    row("validation", str(t_.validation.problems.size(), " problems, greedy, every ", c.train.test_freq, " steps"));
  }
}

void Trainer::validate_first() {
  StepMetrics m;
  m.set("training/global_step", 0);
  record_passes(m);
  validate(m);
  t_.run.append_step(m.json());
  observer_->step(0, m.values(), nullptr);
}

int Trainer::run(TrainObserver& observer) {
  observer_ = &observer;
  announce();
  const RunConfig& c = t_.config.train;
  TrainStart start{t_.config.title(), t_.run.path(), t_.state.step, total_steps_};
  if (!t_.config.steps_are_known()) {
    start.prompts = t_.state.cursor.drawn(problems());
    start.total_prompts = problems() * t_.config.train.epochs;
  }
  observer.begin(start);
  if (t_.state.step == 0 && c.test_freq > 0 && c.val_before_train) validate_first();
  collector_.on_batch = [&](const CollectStats& stats, int64_t kept) {
    if (kept < t_.config.data.train_batch_size && stats.gen_batches > 1) {
      observer.phase("generating", str("collecting: ", kept, " of ", t_.config.data.train_batch_size, " groups after ",
                                       stats.gen_batches, " generation batches"));
    }
  };
  while (!finished()) {
    Outcome outcome = should_stop() ? Outcome::stopped : step();
    if (outcome == Outcome::stopped) {
      save();
      observer.end();
      log(str("stopped after step ", t_.state.step, ", saved; go on with: ucas train --resume ", t_.run.path()));
      return kInterrupted;
    }
    if (outcome == Outcome::out_of_prompts) break;
    if (c.save_freq > 0 && t_.state.step % c.save_freq == 0) save();
  }
  save();
  observer.end();
  if (unstored_ > 0) warn(str("the responses of ", unstored_, " steps could not be stored"));
  return kDone;
}

}  // namespace ucas
