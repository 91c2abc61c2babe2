// Supervised fine-tuning: next-token loss on the response and its end token only, token mean over the batch.
// Fed by JSONL of prompts and responses, or by examples that are tokens already (the demo's).
// Threads: one caller.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "text/tokenizer.h"
#include "train/sft_config.h"

namespace ucas {

struct SftExample {
  std::vector<int32_t> prompt;
  std::vector<int32_t> response;  // end token included
};

struct SftPhase {
  std::string name;  // for messages
  std::vector<SftExample> examples;
  int64_t steps = 0;  // updates planned
};

struct SftStep {      // one line of sft.jsonl
  int64_t step = 0;   // from 1
  int64_t phase = 0;  // from 0
  double loss = 0, lr = 0, grad_norm = 0;
  int64_t tokens = 0;  // response tokens of the batch
  bool applied = true;
};

struct SftResult {
  int64_t steps = 0;                     // updates made
  int64_t planned = 0;                   // before phases ended early
  int64_t tokens = 0;                    // response tokens trained on
  int64_t skipped = 0;                   // updates left out because the gradient was not finite
  double first_loss = 0, last_loss = 0;  // last: running loss (mean of the last 20 updates of the last phase)
  double seconds = 0;
};

// Reads {"prompt": TEXT, "response": TEXT} rows; "prompt_ids" / "response_ids" are taken as they are. Adds the end
// token. Rows that are too long are dropped and counted in a warning. Errors: data_line with FILE:LINE, empty.
std::vector<SftExample> read_sft_examples(const std::string& path, const Tokenizer& tokenizer, int32_t eos,
                                          const SftConfig& config);

// Trains in place. `on_step` (may be null) sees every update, e.g. to write the log.
SftResult run_sft(Model& model, const std::vector<SftPhase>& phases, const SftConfig& config,
                  const std::function<void(const SftStep&)>& on_step);

// Reads config.data, trains, and puts a Hugging Face directory with the tokenizer's files and sft.jsonl at `out`,
// all or nothing.
SftResult run_sft(Model& model, const Tokenizer& tokenizer, const SftConfig& config, const std::string& out);

}  // namespace ucas
