#include "train/ahead.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "train/sampled_bytes.h"

namespace ucas {

namespace {

// Notes what is drawn, one run after another, each with its length before it.
class NotedRollout final : public Rollout {
 public:
  explicit NotedRollout(Rollout& own) : own_(own) {}
  std::vector<Sampled> run(const RolloutRequest& request) override {
    std::vector<Sampled> drawn = own_.run(request);
    const std::string bytes = sampled_bytes(drawn);
    const uint64_t size = bytes.size();
    noted.append(reinterpret_cast<const char*>(&size), sizeof size);
    noted += bytes;
    return drawn;
  }
  std::string noted;

 private:
  Rollout& own_;
};

// Gives back what was noted.
class KeptRollout final : public Rollout {
 public:
  explicit KeptRollout(const std::string& kept) : kept_(kept) {}
  std::vector<Sampled> run(const RolloutRequest& request) override {
    uint64_t size = 0;
    if (kept_.size() - at_ < sizeof size) refuse();
    std::memcpy(&size, kept_.data() + at_, sizeof size);
    at_ += sizeof size;
    if (size > kept_.size() - at_) refuse();
    std::vector<Sampled> drawn = read_sampled(std::string_view(kept_).substr(at_, size), kWhere);
    at_ += size;
    for (const Sampled& s : drawn) {
      if (s.job < 0 || s.job >= static_cast<int64_t>(request.jobs.size()) || s.logprob.size() != s.token.size())
        refuse();
      if (request.on_response) request.on_response(s);
    }
    return drawn;
  }

 private:
  static constexpr const char* kWhere = "state/ahead.bin of the checkpoint";
  [[noreturn]] static void refuse() {
    throw Error("truncated",
                str(kWhere, ": not the responses of the run's next step; go on from an earlier checkpoint"));
  }
  const std::string& kept_;
  size_t at_ = 0;
};

// A stop does not end it: the step after must begin with what an uninterrupted run has.
Collector drawing_from(Rollout& rollout, const Collector& like) {
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

Ahead::Drawn Ahead::collect(const Collector& from, int64_t step, DataCursor cursor) {
  NotedRollout noted(from.rollout);
  const Collector collector = drawing_from(noted, from);
  Drawn drawn;
  drawn.step.made = collector.collect(step, cursor);
  drawn.step.cursor = cursor;
  drawn.bytes = std::move(noted.noted);
  return drawn;
}

void Ahead::draw(const Collector& collector, int64_t step, const DataCursor& cursor, bool meanwhile) {
  step_ = step;
  running_ = std::async(meanwhile ? std::launch::async : std::launch::deferred,
                        [collector, step, cursor] { return collect(collector, step, cursor); });
  if (!meanwhile) wait();
}

void Ahead::wait() {
  if (!running_.valid()) return;
  Drawn drawn = running_.get();
  made_ = std::move(drawn.step);
  drawn_ = std::move(drawn.bytes);
}

Ahead::Step Ahead::take(const Collector& collector, const DataCursor& cursor) {
  wait();
  const int64_t number = std::exchange(step_, -1);
  if (!kept_.empty()) {
    const std::string kept = std::exchange(kept_, "");
    KeptRollout rollout(kept);
    Step step{{}, cursor};
    step.made = drawing_from(rollout, collector).collect(number, step.cursor);
    return step;
  }
  drawn_.clear();
  Step step = std::move(*made_);
  made_.reset();
  return step;
}

void Ahead::restore(std::string kept, int64_t step) {
  kept_ = std::move(kept);
  step_ = step;
}

}  // namespace ucas
