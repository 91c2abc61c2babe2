// Supervised fine-tuning: next-token loss on the response and its end token only, token mean over the batch.
// Fed by JSONL of prompts and responses, or by examples that are tokens already.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/observer.h"
#include "model/model.h"
#include "text/tokenizer/tokenizer.h"
#include "train/optimizer/optimizer.h"
#include "train/optimizer/skipped_updates.h"
#include "train/sft/config.h"

namespace ucas {

struct SftExample {
  std::vector<int32_t> prompt;    // not empty
  std::vector<int32_t> response;  // not empty; end token included
};

struct SftPhase {
  std::string name;  // for messages
  std::vector<SftExample> examples;
  int64_t steps = 0;  // updates planned
};

struct SftStep {      // one line of sft.jsonl
  int64_t step = 0;   // updates finished, this one included
  int64_t phase = 0;  // from 0
  double loss = 0;    // token mean before the update
  double lr = 0, grad_norm = 0;
  int64_t tokens = 0;  // response tokens of the batch
  bool applied = true;
};

struct SftResult {
  int64_t steps = 0;    // updates made
  int64_t tokens = 0;   // response tokens trained on
  int64_t skipped = 0;  // updates left out because the gradient was not finite
  double first_loss = 0;
  double last_loss = 0;  // mean of the last 20 updates of the last phase
  double seconds = 0;
};

// The progress of a training: with weights and moments all that the rest of it depends on.
struct SftProgress {
  int64_t phase = 0, update = 0;  // the next update, within its phase
  std::deque<double> recent;      // losses of the phase, for its running loss
  SkippedUpdates skipped;
  SftResult result;  // so far
};

class SftRun;  // train/sft/sft_run.h

// Rows of {"prompt": TEXT, "response": TEXT}, or "prompt_ids" / "response_ids", taken as they are; prompts go through
// config.prompt_template if there is one. `eos` is added to text responses (-1: nothing). Rows that are too long are
// dropped and counted in a warning. Errors: data_line with FILE:LINE; empty.
std::vector<SftExample> read_sft_examples(const std::string& path, const Tokenizer& tokenizer, int32_t eos,
                                          const SftConfig& config);

// Trains in place; shows no progress, writes no file but by `run` (may be null), which may put it further on. `on_step`
// (may be empty) sees every update, `on_begin` (may be empty) how many were made before. Error(ErrorKind::numeric, exit
// 70) after three gradients in a row that are not finite.
SftResult train_sft(Model& model, const std::vector<SftPhase>& phases, const SftConfig& config,
                    const std::function<void(const SftStep&)>& on_step, SftRun* run = nullptr,
                    const std::function<void(int64_t done)>& on_begin = nullptr);

// Whether a process of the same command had put `out` in place and was killed then; its OUT.run is removed.
bool ended_already(const SftConfig& config, const std::string& out);

// Reads config.data, trains under the eyes of `observer`, and puts a Hugging Face directory with the tokenizer's
// files and sft.jsonl at `out`, all or nothing. Goes on where an interrupted one of the same command stopped; a stop
// signal is Error(ErrorKind::interrupted, exit 75).
SftResult run_sft(Model& model, const Tokenizer& tokenizer, const SftConfig& config, const std::string& out,
                  TrainObserver& observer);

}  // namespace ucas
