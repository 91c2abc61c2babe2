// OUT.run: where a fine-tuning keeps its checkpoints and its log until OUT is there. A command that was stopped, or
// killed, is given again and goes on from the newest checkpoint that verifies (train/state/checkpoint.h), bit for bit
// as if it had never been interrupted. Owned by the holder of the directory's lock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run/run_directory.h"
#include "sharding/ranks.h"
#include "train/sft/sft.h"
#include "train/state/checkpoint.h"

namespace ucas {

std::string sft_run_path(const std::string& out);

// Its config.toml last: one who is killed meanwhile leaves what ended_already() (train/sft/sft.h) knows.
void remove_sft_run(const std::string& path);

// What the result depends on, as lines "name = value": options, data, initial weights, program.
std::string sft_fingerprint(Model& model, const SftConfig& config, const std::vector<SftPhase>& phases);

// Of several ranks rank 0 alone has the directory; it chooses where all go on, and any that is told to stop stops all.
class SftRun final : public SftKeeper {
 public:
  // Begins `directory` or goes on in it. Error(ErrorKind::config) naming what is another: an option, the data, the
  // weights. `fingerprint` is sft_fingerprint()'s. Borrows all but the texts.
  SftRun(std::string directory, Model& model, const SftConfig& config, std::string fingerprint, Ranks& ranks);

  void begin(Optimizer& optimizer, SftProgress& progress) override;
  void step(const std::string& line) override {
    if (run_) run_->append_step(line);
  }
  void after_update(Optimizer& optimizer, const SftProgress& progress) override;

  std::string log() const;  // sft.jsonl so far, at rank 0
  const std::string& path() const { return path_; }

 private:
  std::optional<FoundCheckpoint> chosen_checkpoint();

  Model& model_;
  const SftConfig& config_;
  const std::string fingerprint_, path_;
  Ranks& ranks_;
  std::optional<RunDirectory> run_;  // of rank 0
  FailedSaves failed_saves_;
};

}  // namespace ucas
