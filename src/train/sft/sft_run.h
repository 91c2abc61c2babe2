// OUT.run: where a fine-tuning keeps its checkpoints and its log until OUT is there. A command that was stopped, or
// killed, is given again and goes on from the newest checkpoint that verifies (train/state/checkpoint.h), bit for bit
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

class SftRun final : public SftKeeper {
 public:
  // Begins `directory` or goes on in it. Error(ErrorKind::config) naming what is another: an option, the data, the
  // weights.
  SftRun(const std::string& directory, Model& model, const SftConfig& config, const std::vector<SftPhase>& phases);

  void begin(Optimizer& optimizer, SftProgress& progress) override;
  void step(const std::string& line) override { run_.append_step(line); }
  void after_update(const Optimizer& optimizer, const SftProgress& progress) override;

  std::string log() const;  // sft.jsonl so far
  const std::string& path() const { return run_.path(); }

 private:
  Model& model_;
  const SftConfig& config_;
  std::string fingerprint_;
  RunDirectory run_;
  FailedSaves failed_saves_;
};

}  // namespace ucas
