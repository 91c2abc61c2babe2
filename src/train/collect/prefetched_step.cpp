#include "train/collect/prefetched_step.h"

#include <utility>

#include "rollout/recorded_rollout.h"

namespace ucas {

namespace {

// A stop does not end it: the step after must begin with what an uninterrupted run has.
Collector collector_with(Rollouter& rollout, const Collector& like) {
  return {.config = like.config,
          .data = like.data,
          .rollout = rollout,
          .tokenizer = like.tokenizer,
          .graders = like.graders,
          .rewards = like.rewards,
          .stop_ids = like.stop_ids,
          .answer_classes = like.answer_classes,
          .should_stop = [] { return false; },
          .on_batch = nullptr,
          .ends = like.ends,
          .agree = like.agree};
}

}  // namespace

PrefetchedStep::Recorded PrefetchedStep::collect(const Collector& from, int64_t step, DataCursor cursor) {
  RecordingRollout noted(from.rollout);
  const Collector collector = collector_with(noted, from);
  Recorded sampled;
  sampled.step.made = collector.collect(step, cursor);
  sampled.step.cursor = cursor;
  sampled.bytes = std::move(noted.bytes);
  return sampled;
}

void PrefetchedStep::begin(const Collector& collector, int64_t step, const DataCursor& cursor) {
  step_ = step;
  running_ = std::async(std::launch::async, [collector, step, cursor] { return collect(collector, step, cursor); });
}

void PrefetchedStep::wait() {
  if (!running_.valid()) return;
  Recorded sampled = running_.get();
  made_ = std::move(sampled.step);
  sampled_ = std::move(sampled.bytes);
}

PrefetchedStep::Step PrefetchedStep::take(const Collector& collector, const DataCursor& cursor) {
  wait();
  const int64_t number = std::exchange(step_, -1);
  if (!kept_.empty()) {
    const std::string kept = std::exchange(kept_, "");
    ReplayedRollout rollout(kept, "state/ahead.bin of the checkpoint");
    Step step{{}, cursor};
    step.made = collector_with(rollout, collector).collect(number, step.cursor);
    return step;
  }
  sampled_.clear();
  Step step = std::move(*made_);
  made_.reset();
  return step;
}

void PrefetchedStep::restore(std::string kept, int64_t step) {
  kept_ = std::move(kept);
  step_ = step;
}

}  // namespace ucas
