#include "train/loop/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "methods/apply.h"
#include "model/tensor/stream.h"
#include "objective/loss/kl.h"
#include "objective/loss/rollout_correction.h"
#include "rollout/environment/environment.h"
#include "train/loop/step_record.h"
#include "train/loop/validation.h"
#include "train/optimizer/schedule.h"
#include "train/signals/logprobs.h"
#include "train/state/checkpoint.h"

namespace ucas {

namespace {

// Passes a training on to its observer, and the phase of the step to the watchdog (base/process/activity). Threads: one
// caller, and the watchdog's own.
class WatchedTraining final : public TrainObserver {
 public:
  WatchedTraining(TrainObserver& observer, const RunConfig& config) : observer_(observer), dog_(config.watchdog) {}
  void begin(const TrainStart& start) override {
    step_ = start.step;
    observer_.begin(start);
  }
  void phase(const std::string& what, const std::string& detail) override {
    set_phase(str("step ", step_ + 1, ", ", what));
    observer_.phase(what, detail);
  }
  void step(int64_t step, StepRow metrics) override {
    step_ = step;
    progressed();
    observer_.step(step, metrics);
  }
  void end() override { observer_.end(); }

 private:
  TrainObserver& observer_;
  int64_t step_ = 0;
  Watchdog dog_;
};

// lp, H, C and l of the old policy, which everything after sees.
void read_old_policy(const Training& t, Batch& batch, StepRecord& record) {
  auto clock = record.time(metric::timing_old_log_prob, "scoring", {.operations = &metric::perf_mfu_actor_infer});
  const TrainConfig& c = t.config;
  const Needs needs = c.needs();
  const bool tail = needs.reads("tail_confidence") || record.keeps_tokens();  // a stored step serves all methods
  const int64_t budget = c.update.micro_batch_tokens;
  const bool said = c.rollout.old_log_prob == OldPolicy::sampler && !c.rollout.served() && c.device == "cpu" && !tail &&
                    needs.sampler_knows();
  int64_t checked = said ? accept_sampled(*t.policy.model, batch, c.rollout.temperature, budget, t.state.step) : 0;
  if (said && t.ranks->any("whether the sampler's log-probs are the trainer's", checked < 0)) checked = -1;
  if (checked < 0) {
    count_warning(Warning::rescored_step);
    warn(str("step ", t.state.step, ": sampler and trainer log-probs differ in some tokens; using the trainer's"));
  }
  if (checked <= 0) {
    compute_signals(*t.policy.model, batch, c.rollout.temperature, budget, tail ? c.rollout.response_length : 0,
                    needs.signals, t.ranks.get());
    checked = batch.token_count();
  }
  record.metrics.set(metric::rollout_checked_share,
                     static_cast<double>(checked) / static_cast<double>(std::max<int64_t>(1, batch.token_count())));
  record_mismatch(record.metrics, mismatch(batch));
  record.metrics.add(correction_metrics(c.objective, batch));
}

// A_it, Eq. 3 to 10 or whatever the method has.
Advantages compute_advantages(const Training& t, const Batch& batch, StepRecord& record) {
  Advantages computed;
  {
    auto clock = record.time(metric::timing_adv);
    computed = ucas::compute_advantages(*t.config.method, batch);
    if (t.advantages)
      computed.advantage = t.advantages->ask(record.context.step, batch, t.data.problems, computed.advantage);
  }
  record.computed(batch, computed);
  return computed;
}

// The objective with the KL's weight and the entropy bonus of this step. The old policy's entropy decides the bonus,
// and that of the next.
ObjectiveConfig objective_of_step(Training& t, StepMetrics& m) {
  ObjectiveConfig objective = t.config.objective;
  if (objective.entropy_target == 0) return objective;
  const double c = t.state.entropy_coeff.value_or(objective.entropy_coeff);
  const EntropyBonus bonus = entropy_bonus(objective, c, m.get(metric::actor_entropy));
  m.set(metric::actor_entropy_coeff, bonus.now);
  t.state.entropy_coeff = bonus.next;
  objective.entropy_coeff = bonus.now;
  return objective;
}

// The last link of the chain of samplers: it borrows the tokenizer, which stays where it is from here on.
Rollouter& let_environment_speak(Training& t) {
  if (t.config.rollout.environment.some()) {
    t.engine = std::move(t.rollout);
    t.rollout = with_environment(*t.engine, t.config.rollout.environment, t.config.reward.code, t.policy.tokenizer);
  }
  return *t.rollout;
}

// Neighbouring prompts of the step with their responses.
struct MiniBatch {
  const Group &first, &last;
  std::vector<int64_t> responses;
};

// The step's prompts in ceil(count / size) mini-batches whose sizes differ by at most one. Responses that are masked
// are in none of them: no loss, and no share in any mean.
std::vector<MiniBatch> mini_batches(const Batch& batch, int64_t size) {
  const auto count = static_cast<int64_t>(batch.groups.size()), parts = (count + size - 1) / size;
  std::vector<MiniBatch> minis;
  for (int64_t p = 0; p < parts; ++p) {
    const Group &first = batch.groups[count * p / parts], &last = batch.groups[count * (p + 1) / parts - 1];
    MiniBatch mini{first, last, indices(first.first, last.first + last.count)};
    std::erase_if(mini.responses, [&](int64_t i) { return !batch.responses[i].trained; });
    if (!mini.responses.empty()) minis.push_back(std::move(mini));
  }
  return minis;
}

}  // namespace

Trainer::Trainer(Training& training)
    : t_(training),
      rewards_(t_.config, t_.graders, *t_.ranks, t_.external.get()),
      collector_{.config = t_.config,
                 .data = t_.data,
                 .rollout = let_environment_speak(t_),
                 .tokenizer = t_.policy.tokenizer,
                 .graders = t_.graders,
                 .rewards = rewards_,
                 .stop_ids = t_.stop_ids,
                 .answer_classes = t_.config.needs().answer_classes,
                 .should_stop = [this] { return should_stop(); },
                 .on_batch = nullptr,
                 .ends = ends_at(t_.policy.tokenizer, t_.stop_texts),
                 .agree = [this](bool mine) { return t_.ranks->any("whether to stop", mine); }},
      began_(now_seconds()) {
  const TrainConfig& c = t_.config;
  t_.limits = measure_limits(*t_.policy.model);
  const int64_t prompts = t_.data.size() * c.train.epochs, of_step = c.gen_batch() * c.fewest_gen_batches();
  total_steps_ = c.uses_passes() ? (prompts + of_step - 1) / of_step : c.train.steps;
  saved_at_ = t_.state.step > 0 ? t_.state.step : -1;
  collector_.on_batch = [this, wanted = c.data.train_batch_size](const CollectStats& stats, int64_t kept) {
    if (kept >= wanted || stats.gen_batches < 2) return;
    observer_->phase("generating", str("collecting: ", kept, " of ", wanted, " groups after ", stats.gen_batches,
                                       " generation batches"));
  };
}

// Sec. 2: from prompts to new weights.
Trainer::Outcome Trainer::step(StepRecord& record) {
  Collected made = collect(record);  // o_i ~ pi_old, R_i, and the prompts that are kept
  if (made.stopped) return Outcome::stopped;
  if (made.out_of_prompts) return Outcome::out_of_prompts;
  Batch& batch = made.batch;
  if (batch.groups.empty()) return Outcome::done;
  batch.seed = record.context.seed;
  read_old_policy(t_, batch, record);  // lp, H, C, l of pi_old
  for (auto& auxiliary : t_.auxiliary_models) auxiliary->prepare(batch, record.context, record.metrics);
  const Advantages computed = compute_advantages(t_, batch, record);  // A_it
  for (auto& auxiliary : t_.auxiliary_models) auxiliary->learn(batch, record.context, record.metrics);
  update(batch, computed.advantage, record);  // Eq. 11 on each mini-batch
  for (auto& auxiliary : t_.auxiliary_models) auxiliary->follow(*t_.policy.model, record.context, record.metrics);
  record.store(made, computed, unstored_);
  return Outcome::done;
}

// A step with what is around it: servers before, validation and the log after. An abandoned one leaves no trace.
Trainer::Outcome Trainer::recorded_step() {
  const int64_t number = t_.state.step + 1;
  const uint64_t seed = static_cast<uint64_t>(t_.config.seed) + (static_cast<uint64_t>(number) << 20);
  StepRecord record(t_, {number, total_steps_, seed, t_.ranks.get()}, *observer_);
  hand_over(record);
  if (const Outcome outcome = step(record); outcome != Outcome::done) return outcome;
  if (decide("whether to validate", {.validate = validates(t_, finished())}).validate) {
    hand_over(record);
    validate(t_, record);
    t_.ranks->together("judging the validation", [&] {
      if (t_.ranks->leads()) judge(t_, record.metrics);
    });
  }
  record.write();
  shares_ = share_words(record.metrics);
  return Outcome::done;
}

// Where servers sample: they get the weights of now, unless they have them.
void Trainer::hand_over(StepRecord& record) {
  if (t_.served == nullptr || synced_ == t_.state.step) return;
  {
    auto clock = record.time(metric::timing_hand_over, "handing over");
    t_.optimizer->with_masters([&](const MasterValues& values) {
      t_.served->hand_over(path_join(t_.run.path(), "weights"), t_.state.step, t_.run.model_files(), values);
    });
    t_.ranks->barrier("handing weights over");
  }
  synced_ = t_.state.step;
  record.metrics.set(metric::rollout_weight_sync_diff, t_.served->known_difference());
}

// Moves the run's place in its problems, unless the step is abandoned.
Collected Trainer::collect(StepRecord& record) {
  observer_->phase("generating");
  DataCursor cursor = t_.state.cursor;
  Collected made = collector_.collect(record.context.step, cursor);
  if (made.stopped) return made;
  if (made.out_of_prompts) {
    log(str("the last epoch ended with ", made.stats.groups_kept, " of data.train_batch_size = ",
            t_.config.data.train_batch_size, " prompts kept; they are dropped (data.train_short = false)"));
    return made;
  }
  t_.state.cursor = cursor;
  t_.state.step = record.context.step;
  record.collected(made);
  return made;
}

void Trainer::update(const Batch& batch, std::span<const float> advantage, StepRecord& record) {
  auto clock = record.time(metric::timing_update_actor, "updating", {.operations = &metric::perf_mfu_actor});
  const TrainConfig& c = t_.config;
  const double lr = rollout_lr(c.optimizer, t_.state.step - 1, total_steps_);
  const ObjectiveConfig objective = objective_of_step(t_, record.metrics);
  const std::vector<uint8_t> step_mark = select_in_step(*c.method, objective, batch, advantage);
  const std::vector<MiniBatch> minis = mini_batches(batch, c.update.mini_batch_size);
  auto id = [&](const Group& group) { return printable(t_.data.problems[group.problem].id); };
  std::vector<LossMetrics> losses;
  double norms = 0;
  for (int64_t epoch = 0; epoch < c.update.epochs; ++epoch) {
    for (const MiniBatch& mini : minis) {
      losses.push_back(
          accumulate_gradients(*t_.policy.model, {.batch = batch,
                                                  .advantage = advantage,
                                                  .responses = mini.responses,
                                                  .method = *c.method,
                                                  .config = objective,
                                                  .temperature = c.rollout.temperature,
                                                  .response_limit = c.rollout.response_length,
                                                  .token_budget = c.update.micro_batch_tokens,
                                                  .seed = record.context.seed + losses.size(),
                                                  .step_mark = step_mark,
                                                  .record = record.keeps_tokens() ? &record.updates : nullptr,
                                                  .on_policy = losses.empty(),
                                                  .among = {.ranks = t_.ranks.get(),
                                                            .reduce = c.update.reduce,
                                                            .shard = c.update.shard,
                                                            .owners = t_.optimizer->owners()}}));
      const StepResult result = t_.optimizer->step(lr);
      t_.policy.model->refresh();
      norms += result.grad_norm;
      t_.state.skipped.note(result.applied, str("step ", t_.state.step), "the gradient",
                            str("lower optimizer.lr or look at the data (problems ", id(mini.first), " .. ",
                                id(mini.last), ", seed ", c.seed, "); the last checkpoint remains"));
    }
  }
  t_.optimizer->drop_gradients();
  record.updated(losses, objective, norms / static_cast<double>(std::max<size_t>(1, losses.size())), lr);
}

// Rank 0's, with what it knows of the best step.
Decision Trainer::decide(const char* what, Decision mine) {
  mine.best = t_.state.best;
  Decision decision = decided(*t_.ranks, what, mine);
  t_.state.best = decision.best;
  return decision;
}

bool Trainer::finished() const {
  return t_.config.uses_passes() ? prompts_left(t_.config, t_.data.size(), t_.state.cursor) == 0
                                 : t_.state.step >= total_steps_;
}

bool Trainer::should_stop() const {
  const double hours = t_.config.train.max_hours;
  return stop_requested() || (hours > 0 && now_seconds() - began_ > hours * 3600);
}

void Trainer::save(bool needed) {
  if (saved_at_ == t_.state.step) {
    if (needed) failed_saves_.check_last();
    return;
  }
  saved_at_ = t_.state.step;
  observer_->phase("saving");
  t_.state.auxiliary_models.clear();
  for (auto& auxiliary : t_.auxiliary_models) t_.state.auxiliary_models[auxiliary->name()] = auxiliary->state();
  failed_saves_.attempt(needed, *t_.ranks, [&] {
    save_checkpoint(t_.run, t_.state.step, *t_.policy.model, *t_.optimizer, t_.auxiliary_models, t_.state.json(),
                    t_.run.model_files(), t_.config.train.keep, t_.state.best.step);
    if (t_.run.writes()) t_.run.note_saved();
  });
}

// A step that servers fail leaves the run saved as it was before: the same command resumes it.
Trainer::Outcome Trainer::saved_step() {
  const int64_t before = t_.state.step;
  try {
    return recorded_step();
  } catch (const Error& failure) {
    if (t_.served == nullptr || failure.kind() != ErrorKind::server || !t_.ranks->alone() || t_.state.step != before)
      throw;
    save_failed_step(failure);
  }
}

void Trainer::save_failed_step(const Error& failure) {
  save(true);
  observer_->end();
  throw Error(
      failure.kind(),
      str(failure.what(), "; saved after step ", t_.state.step, ", resume with: ucas train --resume ", t_.run.path()),
      failure.exit_code());
}

int Trainer::run(TrainObserver& outside) {
  WatchedTraining watched(outside, t_.config.train);
  TrainObserver& observer = watched;
  observer_ = &observer;
  const RunConfig& c = t_.config.train;
  announce(t_, total_steps_);
  TrainStart start{t_.config.title(), t_.run.path(), t_.state.step, total_steps_};
  if (!t_.config.steps_are_known()) {
    start.prompts = t_.state.cursor.selected(t_.data.size());
    start.total_prompts = t_.data.size() * c.epochs;
  }
  observer.begin(start);
  // A run that was stopped before its first step has this line already.
  const bool first = t_.ranks->leads() && t_.state.step == 0 && t_.run.last_step() < 0;
  Decision next =
      decide("how to begin",
             {.validate = first && c.test_freq > 0 && c.val_before_train, .last = finished(), .stop = should_stop()});
  if (next.validate) {
    StepRecord before(t_, {0, total_steps_, 0}, observer);
    hand_over(before);
    validate(t_, before);
    t_.ranks->together("judging the validation", [&] {  // a name that is none is refused now
      if (t_.ranks->leads() && !c.best_metric.empty()) value_of_best(c.best_metric, before.metrics);
    });
    before.write();
  }
  while (!next.last) {
    const Outcome outcome = next.stop ? Outcome::stopped : saved_step();
    if (outcome == Outcome::out_of_prompts) break;
    if (outcome == Outcome::stopped) {
      save(true);
      observer.end();
      say_end();
      log(str("stopped after step ", t_.state.step, ", saved; resume with: ucas train --resume ", t_.run.path()));
      return kInterrupted;
    }
    const bool due = c.save_freq > 0 && t_.state.step % c.save_freq == 0;
    next = decide("what follows the step",
                  {.save = due || t_.state.best.step == t_.state.step, .last = finished(), .stop = should_stop()});
    if (next.save) save(next.last);
  }
  save(true);
  observer.end();
  say_end();
  return kDone;
}

// What a run logs at its end, also an interrupted one.
void Trainer::say_end() const {
  say_best(t_);
  const at::Device device = t_.plan.device;
  const double peak = device.is_cpu() ? peak_resident_gb() * 0x1p30 : static_cast<double>(peak_memory(device));
  log(str("memory: peak ", human_bytes(peak), ", planned ", human_bytes(static_cast<double>(t_.plan.memory))));
  if (!shares_.empty()) log(str("hardware utilization of the last step (% of measured peak): ", shares_));
}

}  // namespace ucas
