// Options of supervised fine-tuning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "data/rows/jsonl.h"

namespace ucas {

struct SftOptimizer : OptimizerConfig {
  void fields(Fields& f);
};

struct SftConfig {
  SftConfig();  // optimizer defaults differ from RL's

  std::vector<std::string> data;  // files of {"prompt", "response"} rows, one phase each, in this order
  std::vector<int64_t> steps;     // updates per phase; empty: `epochs` over each file
  int64_t epochs = 1;
  std::string prompt_template = "auto";  // "" = prompts as they are
  int64_t batch_size = 32;               // sequences per update
  int64_t max_tokens = 16384;            // per micro-batch; bounds memory, does not change the result
  int64_t max_length = 4096;             // longer sequences are dropped, with a count
  int64_t seed = 0;
  int64_t save_freq = 100;  // updates between checkpoints; 0 = none
  BadRows bad_rows = BadRows::stop;
  bool append_eos = true;
  SftOptimizer optimizer;

  void fields(Fields& f);
  void validate() const;  // cross-field checks; Error(ErrorKind::config)
};

}  // namespace ucas
