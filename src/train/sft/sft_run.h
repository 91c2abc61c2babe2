// OUT.run: where a fine-tuning keeps its checkpoints and its log until OUT is there. A command that was stopped, or
// killed, is given again and resumes from the newest checkpoint that verifies (train/state/checkpoint.h), bit for bit
// as if it had never been interrupted. Owned by the holder of the directory's lock.
#pragma once

#include <string>
#include <vector>

#include "records/run/run_directory.h"
#include "train/sft/sft.h"
#include "train/state/checkpoint.h"

namespace ucas {

std::string sft_run_path(const std::string& out);

// Its config.toml last: one who is killed meanwhile leaves what ended_already() (train/sft/sft.h) knows.
void remove_sft_run(const std::string& path);

// What the result depends on, as lines "name = value": options, data, initial weights, program.
std::string sft_fingerprint(Model& model, const SftConfig& config, const std::vector<SftPhase>& phases);

class SftRun {
 public:
  // Begins `directory` or resumes it. Error(ErrorKind::config) naming what is another: an option, the data, the
  // weights. `fingerprint` is sft_fingerprint()'s. Borrows all but the texts.
  SftRun(std::string directory, Model& model, const SftConfig& config, std::string fingerprint);

  void begin(Optimizer& optimizer, SftProgress& progress);        // may put all of it further on
  void step(const std::string& line) { run_.append_step(line); }  // of sft.jsonl
  void after_update(Optimizer& optimizer, const SftProgress& progress);

  std::string log() const;  // sft.jsonl so far
  const std::string& path() const { return path_; }

 private:
  Model& model_;
  const SftConfig& config_;
  const std::string fingerprint_, path_;
  RunDirectory run_;
  FailedSaves failed_saves_;
};

}  // namespace ucas
