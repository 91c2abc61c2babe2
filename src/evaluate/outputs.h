// Generated responses as they are kept: NAME.outputs.jsonl, one line a response, appended as responses end, so that a
// killed evaluation loses none of them (docs/formats.md). Everything else that an evaluation says is computed from
// these lines, the problems and the settings: evaluate/score.h. LibTorch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

constexpr int64_t kGreedySample = -1;

struct Output {
  std::string source, id;  // of the problem
  int64_t sample = 0;      // kGreedySample, or 0 .. n-1
  std::string text;  // valid UTF-8 (other bytes replaced before grading): what is graded now and at any later time
  std::vector<int32_t> ids;            // token ids, end token included
  bool finished = false;               // ended by a stop token; false: cut at the length limit
  double logprob = 0;                  // sum over the tokens, of the distribution drawn from
  double entropy = 0, confidence = 0;  // means over the tokens: H, and C(o|q) of Eq. 6
  std::vector<double> choice_logprob;  // log-prob of each choice, where choices are compared instead of generated
};

}  // namespace ucas
