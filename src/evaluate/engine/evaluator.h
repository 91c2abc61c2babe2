// Has generated what an evaluation needs and has it scored (score.h): one run of the source over
// all problems of all benchmarks, greedy and sampled together, each response kept in a journal (outputs.h) as it ends.
// Fed by `ucas evaluate`, demo and studies, and the trainer's validation; uses any Rollouter and Grader.
// Samples are keyed with step = kEvaluationStep, so they never coincide with those of training.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/verdict.h"
#include "evaluate/score.h"
#include "records/evaluation.h"
#include "records/outputs.h"
#include "rollout/rollouter.h"
#include "text/tokenizer/tokenizer.h"
#include "verify/grader.h"

namespace ucas {

// Where the responses of an evaluation come from: the rollout engine or a file. From each of them they end in
// the same journal and are graded and counted by the same code (records/outputs.h, score.h).

// A stretch of one problem's responses that are not there yet.
struct ResponseJob {
  size_t problem = 0;                                   // index into the problems
  bool greedy = false;                                  // then there is one
  int64_t first = 0, count = 1;                         // samples first .. first + count - 1
  int64_t max_tokens = 0;                               // 0 = the configuration's
  std::span<const int32_t> stop_ids = {};               // empty = what is general
  const std::vector<std::string>* end_texts = nullptr;  // texts that end a response, too
  uint32_t key = 0;                                     // of the samples
};

struct ResponseRequest {
  std::span<const ResponseJob> jobs;
  const EvalConfig& config;
  // From the calling thread, as responses end; `Output::source`, `id` and `sample` say which it is.
  std::function<void(size_t job, Output output)> ended;
  std::function<void()> token;        // one more was made, if the source reports tokens
  std::function<bool()> should_stop;  // may be empty; true = give up
};

class ResponseSource {
 public:
  virtual ~ResponseSource() = default;
  // Returns when all have ended, or on interrupt. What did not end is missing, never an empty response.
  virtual void run(const ResponseRequest& request) = 0;
};

constexpr uint32_t kEvaluationStep = 0x80000000u;

// How the problems of one source are put to the model, where sources differ.
struct EvalSource {
  std::string name;                                   // Problem::source
  std::vector<int32_t> stop_ids;                      // empty = EvalInput::stop_ids
  std::vector<std::string> end_texts = {};            // end a response wherever its tokens complete one
  int64_t max_tokens = 0;                             // 0 = EvalConfig::max_tokens
  std::map<std::string, int64_t> max_tokens_of = {};  // by id: problems whose prompt leaves fewer positions
};

struct EvalInput {
  std::span<const Problem> problems;              // (source, id) differ where there is a journal
  std::span<const std::vector<int32_t>> prompts;  // token ids of each problem, template applied; for a Rollouter
  std::vector<int32_t> stop_ids;
  std::function<bool(const Episode&)> ends = {};  // RolloutLimits::ends
  std::span<const EvalSource> sources = {};       // those that are not here have no settings of their own
  // By place a problem's samples are keyed by its index among `problems` (validation, the embedded task); else by its
  // source and id, so that they do not depend on what else is evaluated.
  bool keyed_by_position = true;
  OutputJournal* journal = nullptr;  // responses found there are not generated again
  int64_t disk_free = 0;  // bytes where the journal is, less what it has; 0: not asked. Error(ErrorKind::limit) before
                          // the first response
  bool scored = true;     // false: by another process, here they are only sampled
  // Verdicts of items_to_grade() by something else than the graders, where it is set.
  std::function<std::vector<Verdict>(std::span<const Responses>)> judge = {};
  std::string label, model;  // for the result
  std::string suite;
  int64_t step = -1;
  std::vector<std::string> data;
  bool show_progress = true;
  std::function<bool()> should_stop;  // polled while generating; the result is then not complete
};

// Key of a problem's samples if they are keyed by its content.
uint32_t sample_key(const Problem& problem);

// Responses of our own engine, to `input.prompts`.
class RolloutSource final : public ResponseSource {
 public:
  // Borrows all three.
  RolloutSource(Rollouter& rollout, const Tokenizer& tokenizer, const EvalInput& input)
      : rollout_(rollout), tokenizer_(tokenizer), input_(input) {}
  void run(const ResponseRequest& request) override;

 private:
  std::function<bool(const Episode&)> ends_of(std::span<const ResponseJob> jobs) const;

  Rollouter& rollout_;
  const Tokenizer& tokenizer_;
  const EvalInput& input_;
};

// Error(ErrorKind::limit) where input.disk_free is less than the responses may take.
void check_room(const EvalInput& input, const EvalConfig& config);
EvalRecord evaluate(ResponseSource& source, const Graders& graders, const EvalInput& input, const EvalConfig& config);
EvalRecord evaluate(Rollouter& rollout, const Tokenizer& tokenizer, const Graders& graders, const EvalInput& input,
                    const EvalConfig& config);

}  // namespace ucas
