// A training that takes a fraction of a second: the embedded task's tokenizer and problems, a random model of some ten
// thousand parameters, and a reward that differs between its responses by their lengths. Files lie in a directory of
// its own. Messages are kept instead of printed.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/terminal/log.h"
#include "core/observer.h"
#include "support/temporary_directory.h"
#include "train/loop/start.h"

namespace ucas::testing {

class TinyTraining {
 public:
  TinyTraining();
  ~TinyTraining();
  TinyTraining(const TinyTraining&) = delete;
  TinyTraining& operator=(const TinyTraining&) = delete;

  // GRPO on 4 prompts with 4 responses each, 3 steps; `more` is TOML with what differs.
  TrainConfig config(const std::string& more = "") const;
  std::string out(const std::string& name = "run") const { return path_of(name); }
  std::string path_of(const std::string& name) const;
  std::string model() const { return path_of("model"); }
  std::vector<std::string> messages() const;
  bool said(const std::string& part) const;

 private:
  TemporaryDirectory directory_;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
  LogSink before_;
};

// Trains to the end; the exit code.
int train(Training& training);
int train(const TrainConfig& config, const std::string& out, std::shared_ptr<Ranks> ranks = alone());

// All that a training computes: weights, and the log without what a clock or a memory gauge says.
struct TrainedResult {
  std::string weights;            // the file of the last checkpoint
  std::vector<std::string> rows;  // of steps.jsonl
  bool operator==(const TrainedResult&) const = default;
};
TrainedResult result_of(const std::string& run);

// What an observer was told, in order: "begin", "generating", "step 1", ..., "end".
class RecordingObserver final : public TrainObserver {
 public:
  void begin(const TrainStart&) override { calls.push_back("begin"); }
  void phase(const std::string& what, const std::string&) override { calls.push_back(what); }
  void step(int64_t step, StepRow metrics) override;
  void end() override { calls.push_back("end"); }
  std::vector<std::string> calls;
  std::vector<std::vector<std::pair<std::string, double>>> rows;
};

}  // namespace ucas::testing
