#include "train/collect/prefetched_step.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "rollout/sampled_bytes.h"

namespace ucas {

namespace {

// Records sampled responses, one run after another, each with its length before it.
class RecordingRollout final : public Rollout {
 public:
  explicit RecordingRollout(Rollout& own) : own_(own) {}
  std::vector<Sampled> run(const RolloutRequest& request) override {
    std::vector<Sampled> sampled = own_.run(request);
    const std::string bytes = sampled_bytes(sampled);
    const uint64_t size = bytes.size();
    noted.append(reinterpret_cast<const char*>(&size), sizeof size);
    noted += bytes;
    return sampled;
  }
  std::string noted;

 private:
  Rollout& own_;
};

// Gives back what was noted.
class ReplayedRollout final : public Rollout {
 public:
  explicit ReplayedRollout(const std::string& kept) : kept_(kept) {}
  std::vector<Sampled> run(const RolloutRequest& request) override {
    uint64_t size = 0;
    if (kept_.size() - at_ < sizeof size) refuse();
    std::memcpy(&size, kept_.data() + at_, sizeof size);
    at_ += sizeof size;
    if (size > kept_.size() - at_) refuse();
    std::vector<Sampled> sampled = read_sampled(std::string_view(kept_).substr(at_, size), kWhere);
    at_ += size;
    for (const Sampled& s : sampled) {
      if (s.job < 0 || s.job >= static_cast<int64_t>(request.jobs.size()) || s.logprob.size() != s.token.size())
        refuse();
      if (request.on_response) request.on_response(s);
    }
    return sampled;
  }

 private:
  static constexpr const char* kWhere = "state/ahead.bin of the checkpoint";
  [[noreturn]] static void refuse() {
    throw Error(ErrorKind::truncated,
                str(kWhere, ": not the responses of the run's next step; go on from an earlier checkpoint"));
  }
  const std::string& kept_;
  size_t at_ = 0;
};

// A stop does not end it: the step after must begin with what an uninterrupted run has.
Collector collector_with(Rollout& rollout, const Collector& like) {
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
  sampled.bytes = std::move(noted.noted);
  return sampled;
}

void PrefetchedStep::begin(const Collector& collector, int64_t step, const DataCursor& cursor, bool meanwhile) {
  step_ = step;
  running_ = std::async(meanwhile ? std::launch::async : std::launch::deferred,
                        [collector, step, cursor] { return collect(collector, step, cursor); });
  if (!meanwhile) wait();
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
    ReplayedRollout rollout(kept);
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
