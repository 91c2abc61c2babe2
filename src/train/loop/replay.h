// Responses of a step of a run, generated again alone and compared with what the run kept of them
// (records/run/step_data.h): a response depends on its key, its prompt and the weights, and on nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

struct ReplayAsk {
  int64_t step = 0;     // 0: the last one whose signals and weights are there
  std::string problem;  // id; "" = all that are kept
  int64_t sample = -1;  // its number; -1 = all
  int64_t threads = 0;  // 0 = all cores
};

struct Replayed {
  std::string problem, text, kept;  // of this generation, and of the run's
  int64_t sample = 0, tokens = 0;   // tokens of the run's
  int64_t first_other = -1;         // first token that is another; -1: all are the same
  double largest = 0;               // |log-prob - the run's| over the tokens before it
  bool same() const { return first_other < 0 && largest == 0; }
};

struct Replay {
  int64_t step = 0;
  std::string weights;  // their directory
  std::vector<Replayed> responses;
};

// Errors: path where the run kept no signals of the step or not the weights before it (the message says which there
// are), usage for a problem or sample that is none of those kept.
Replay replay(const std::string& run, const ReplayAsk& ask);

}  // namespace ucas
