#include "train/loop/step_record.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "core/metrics.h"
#include "model/tensor/stream.h"
#include "records/run/rollouts.h"
#include "records/run/step_data.h"
#include "rollout/policy.h"
#include "verify/audit/verify_rows.h"
#include "verify/registry.h"

namespace ucas {

namespace {

// What the model wrote and read after the prompt, in order; "" where no environment spoke.
std::string transcript_of(const Response& o, const Batch& batch, const Tokenizer& tokenizer) {
  if (o.inserts.empty()) return "";
  std::span<const int32_t> own = Batch::tokens(batch.token, o);
  if (o.finished && std::ranges::find(batch.stop_ids, own.back()) != batch.stop_ids.end()) {
    own = own.first(own.size() - 1);
  }
  std::string text;
  size_t next = 0;
  for (const Insert& insert : o.inserts) {
    const auto at = static_cast<size_t>(insert.at);
    text += response_text(tokenizer, own.subspan(next, at - next)) + insert.text;
    next = at;
  }
  return text + response_text(tokenizer, own.subspan(next));
}

// Rows of the first groups, the first responses of each, as JSON lines: RUN/rollouts/step-0000012.jsonl.
std::string response_rows(const Collected& made, const Training& t, std::span<const float> advantage, int64_t step) {
  const Batch& batch = made.batch;
  std::string lines;
  const RunConfig& keep = t.config.train;
  for (const Group& group : std::span(batch.groups).first(std::min<size_t>(keep.stored_prompts, batch.groups.size()))) {
    const Problem& problem = t.data.problems[group.problem];
    for (int64_t i = group.first; i < group.first + std::min(group.count, keep.stored_responses); ++i) {
      const Response& o = batch.responses[i];
      double sum = 0;
      for (float a : advantage.subspan(o.first, o.length)) sum += a;
      lines += rollout_line({.step = step,
                             .sample = o.sample,
                             .tokens = o.length,
                             .problem = problem.id,
                             .source = problem.source,
                             .prompt = problem.text,
                             .response = made.text[i],
                             .answer = o.verdict.answer,
                             .reason = o.verdict.reason,
                             .gold = problem.gold,
                             .verdict = o.verdict.kind,
                             .finished = o.finished,
                             .inserts = o.inserts,
                             .transcript = transcript_of(o, batch, t.policy.tokenizer),
                             .score = o.score,
                             .reward = o.reward,
                             .advantage = o.length == 0 ? 0 : sum / static_cast<double>(o.length)});
    }
  }
  return lines;
}

// The leading groups with all their signals, the advantages, what the method recorded and what the updates made of the
// tokens, as records/run/step_data writes them: RUN/signals/step-0000012.jsonl.
std::string signal_rows(const Collected& made, const Training& t, const Advantages& computed,
                        const TokenUpdates& updates, int64_t step) {
  const TrainConfig& config = t.config;
  StepData kept;
  kept.step = step;
  kept.method = config.method_name;
  kept.preset = config.method_preset;
  auto list = [](Fields& f, void* method) { static_cast<Method*>(method)->fields(f); };
  for (const FieldValue& field : list_fields(list, config.method.get())) {
    kept.settings.emplace_back(field.key, field.value);
  }
  kept.answer_classes = config.needs().answer_classes;
  kept.groups_of_step = static_cast<int64_t>(made.batch.groups.size());
  kept.batch = leading_groups(made.batch, kStoredSignalTokens);
  const std::map<std::string, GraderKind> of_source = parse_graders(config.reward.graders, "reward.graders");
  for (const Group& group : kept.batch.groups) {
    const Problem& problem = t.data.problems[group.problem];
    const auto own = of_source.find(problem.source);
    kept.grader.push_back(own == of_source.end() ? config.reward.grader : own->second);
    kept.problem.push_back(problem.id);
    kept.question.push_back(problem.text);
    kept.gold.push_back(problem.gold);
  }
  size_t N = kept.batch.token.size(), B = kept.batch.responses.size();
  for (int32_t id : kept.batch.token) kept.piece.push_back(t.policy.tokenizer.token_text(id));
  auto leading = [&](const auto& values, auto& to) {
    to.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(N));
  };
  leading(computed.advantage, kept.advantage);
  leading(updates.ratio, kept.ratio);
  leading(updates.clipped, kept.clipped);
  for (const Recording::Row& row : computed.recording.rows) {
    auto end = row.values.begin() + static_cast<std::ptrdiff_t>(row.per_token ? N : B);
    kept.trace.push_back({row.name, row.per_token, std::vector<float>(row.values.begin(), end)});
  }
  return step_data_lines(kept);
}

}  // namespace

StepRecord::StepRecord(Training& training, const StepContext& step, TrainObserver& observer)
    : context(step),
      t_(training),
      observer_(observer),
      work_(work()),
      moved_(training.ranks->bytes()),
      began_(now_seconds()) {
  metrics.set(metric::training_global_step, static_cast<double>(context.step));
  if (context.step == 0) passes();
}

StepRecord::Clock StepRecord::time(const Metric& seconds, const char* phase, const MachineShare& share) {
  if (phase != nullptr) observer_.phase(phase);
  return {*this, seconds, share};
}

Work StepRecord::work() const { return t_.policy.model->work(); }

void StepRecord::set_shares(const MachineShare& share, const Work& before, double seconds) {
  const Work now = work();
  const auto set = [&](const Metric* of, double done, double limit) {
    // Above 1 the limit was measured while others worked here.
    if (of != nullptr && done > 0 && done <= seconds * limit) metrics.set(*of, done / (seconds * limit));
  };
  set(share.operations, now.operations - before.operations, t_.limits.operations);
  set(share.bandwidth, now.bytes - before.bytes, t_.limits.bandwidth);
}

bool StepRecord::keeps_tokens() const {
  const int64_t every = t_.config.train.stored_signals;
  return every > 0 && (context.step == 1 || context.step % every == 0);
}

void StepRecord::passes() {
  const auto sampled = static_cast<double>(t_.state.cursor.selected(t_.data.size()));
  metrics.set(metric::training_epoch, static_cast<double>(t_.state.cursor.epoch));
  metrics.set(metric::training_prompts, sampled);
  metrics.set(metric::training_passes, sampled / static_cast<double>(t_.data.size()));
}

void StepRecord::collected(const Collected& made) {
  passes();
  record_collection(metrics, made.stats);
  metrics.set(metric::timing_gen, made.stats.seconds_gen);
  metrics.set(metric::timing_reward, made.stats.seconds_reward);
  set_shares({&metric::perf_mfu_rollout, &metric::perf_mbu_rollout}, work_, made.stats.seconds_gen);
  if (t_.served != nullptr) metrics.set(metric::rollout_retries, static_cast<double>(t_.served->tried_again()));
  if (context.step == 1) warn_of_unreadable(t_, made.stats);
  if (made.batch.groups.empty()) {
    warn(str("step ", context.step, ": none of ", made.stats.groups_generated, " groups had ",
             t_.config.keep_rule().words(), "; nothing to learn from, step skipped"));
    ++t_.state.empty_steps;
    count_warning(Warning::empty_step);
    return;
  }
  const size_t N = made.batch.token.size();
  if (keeps_tokens()) updates = {std::vector<float>(N), std::vector<uint8_t>(N)};
}

void StepRecord::computed(const Batch& batch, const Advantages& computed) {
  record_batch(metrics, batch, computed.advantage, t_.config.rollout.response_length,
               t_.policy.model->config().vocab_size);
  metrics.add(computed.recording.metrics);
  double taught = 0;  // tokens
  for (const Response& o : batch.responses) {
    if (!o.trained) continue;
    const auto advantage = std::span<const float>(computed.advantage).subspan(o.first, o.length);
    taught += static_cast<double>(o.length - std::ranges::count(advantage, 0.0f));
  }
  metrics.set(metric::train_taught_token_share, taught / std::max(1.0, metrics.get(metric::train_generated_tokens)));
}

void StepRecord::updated(std::span<const LossMetrics> losses, const ObjectiveConfig& objective, double grad_norm,
                         double lr) {
  record_losses(metrics, losses, objective);
  metrics.set(metric::actor_grad_norm, grad_norm);
  metrics.set(metric::actor_lr, lr);
  metrics.set(metric::train_updates, static_cast<double>(losses.size()));
}

void StepRecord::store(const Collected& made, const Advantages& computed, UnstoredSteps& unstored) const {
  if (!t_.run.writes()) return;
  constexpr int64_t kMostInARow = 3;
  const int64_t step = context.step;
  try {
    const std::string rows = response_rows(made, t_, computed.advantage, step);
    if (!rows.empty()) write_file(t_.run.rollout_file(step), rows);
    if (keeps_tokens()) write_file(t_.run.signals_file(step), signal_rows(made, t_, computed, updates, step));
    unstored.in_a_row = 0;
  } catch (const Error& failure) {
    if (failure.exit_code() != kIoFailure) throw;
    count_warning(Warning::unstored_step);
    const std::string what = str("step ", step, ": its responses are not stored: ", failure.what());
    if (++unstored.in_a_row >= kMostInARow) {
      throw Error(failure.kind(), str(what, " (", kMostInARow, " steps in a row; make room and resume with --resume)"),
                  kIoFailure);
    }
    warn(what);
  }
}

void StepRecord::write() {
  if (context.step > 0) {
    metrics.set(metric::train_skipped_steps, static_cast<double>(t_.state.skipped.total));
    metrics.set(metric::train_empty_steps, static_cast<double>(t_.state.empty_steps));
    const double seconds = now_seconds() - began_, tokens = metrics.get(metric::train_generated_tokens);
    metrics.set(metric::timing_step, seconds);
    metrics.set(metric::perf_time_per_step, seconds);
    metrics.set(metric::perf_total_num_tokens, tokens);
    metrics.set(metric::perf_throughput, tokens / seconds);
    if (!t_.ranks->alone()) metrics.set(metric::perf_ranks_bytes, static_cast<double>(t_.ranks->bytes() - moved_));
    metrics.set(metric::perf_cpu_memory_used_gb, resident_gb());
    metrics.set(metric::perf_cpu_memory_peak_gb, peak_resident_gb());
    if (const at::Device device = t_.policy.model->device(); !device.is_cpu()) {
      metrics.set(metric::perf_max_memory_allocated_gb, static_cast<double>(peak_memory(device)) * 0x1p-30);
    }
  }
  t_.run.append_step(metrics.json());
  observer_.step(context.step, metrics.values());
}

void warn_of_unreadable(const Training& t, const CollectStats& stats) {
  if (!t.config.reward.command.empty() || stats.graded == 0) return;  // a program's score may need no answer
  const int64_t unreadable = stats.verdicts[static_cast<size_t>(VerdictKind::unparseable)];
  const double share = static_cast<double>(unreadable) / static_cast<double>(stats.graded);
  if (share <= kManyUnreadable) return;
  const std::vector<std::string_view> texts(stats.unreadable.begin(), stats.unreadable.end());
  warn(str("step ", t.state.step, ": ",
           unreadable_in_words(share, stats.graded, texts, t.config.reward.grader, t.config.reward.setup().extract,
                               "--reward.extract")));
}

std::string share_words(const StepMetrics& m) {
  constexpr std::pair<const Metric*, const char*> kShares[] = {{&metric::perf_mfu_rollout, "sampling "},
                                                               {&metric::perf_mbu_rollout, "sampling, of bandwidth "},
                                                               {&metric::perf_mfu_actor_infer, "old log-probs "},
                                                               {&metric::perf_mfu_actor, "update "}};
  std::vector<std::string> parts;
  for (const auto& [metric, words] : kShares)
    if (const double share = m.get(*metric); std::isfinite(share)) parts.push_back(words + percent(share, 0));
  return join(parts, ", ");
}

}  // namespace ucas
