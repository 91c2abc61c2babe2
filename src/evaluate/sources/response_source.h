// Where the responses of an evaluation come from: the rollout engine, a server, a file. From each of them they end in
// the same journal and are graded and counted by the same code (records/outputs.h, score.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/verdict.h"
#include "records/eval_config.h"
#include "records/outputs.h"

namespace ucas {

// A stretch of one problem's responses that are not there yet.
struct ResponseJob {
  size_t problem = 0;                                   // index into the problems
  bool greedy = false;                                  // then there is one
  int64_t first = 0, count = 1;                         // samples first .. first + count - 1
  int64_t max_tokens = 0;                               // 0 = the configuration's
  std::span<const int32_t> stop_ids = {};               // empty = what is general
  const std::vector<std::string>* end_texts = nullptr;  // texts that end a response, too
  uint32_t key = 0;                                     // of the draws
};

struct ResponseRequest {
  std::span<const ResponseJob> jobs;
  const EvalConfig& config;
  // From the calling thread, as responses end; `Output::source`, `id` and `sample` say which it is.
  std::function<void(size_t job, Output output)> ended;
  std::function<void()> token;        // one more was made, where the source can tell
  std::function<bool()> should_stop;  // may be empty; true = give up
};

class ResponseSource {
 public:
  virtual ~ResponseSource() = default;
  // Returns when all have ended, or when told to stop. What did not end is missing, never an empty response.
  virtual void run(const ResponseRequest& request) = 0;
};

}  // namespace ucas
