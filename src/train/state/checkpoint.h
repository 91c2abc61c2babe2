// Checkpoints that survive a kill, a power cut or a full disk at any instant: a directory is written under a temporary
// name, synced, sealed by manifest.json (size and XXH3-128 of every file, and of itself), renamed into place, read
// back, and only then are old ones pruned. There is no "latest" pointer: the newest directory whose manifest verifies
// is it. A checkpoint is a Hugging Face directory with a folder state/ in it: optimizer.{safetensors,json}, state.json
// and manifest.json, and for every auxiliary model that is trained NAME.safetensors and
// NAME-optimizer.{safetensors,json}. Of several ranks each writes NAME-RANK-of-SIZE.safetensors instead, with what it
// keeps (train/state/state_files.h): nothing is gathered, and any number of ranks reads it. Programs that load every
// *.safetensors of a directory (vLLM) so find the model alone. Older runs have these files next to the model; they are
// still read. Owned by the holder of the run directory's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "model/model.h"
#include "records/run/run_directory.h"
#include "sharding/ranks.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/optimizer/optimizer.h"
#include "train/state/state_files.h"

namespace ucas {

struct FoundCheckpoint {
  std::string path;  // a directory that load_model and transformers can read
  int64_t step = 0;
};

// Returns the directory. `state_json` is the caller's own state, given back by load_checkpoint; what else a Hugging
// Face directory needs comes from `model_files` (records/run/run_directory.h) unless it is "". Keeps the newest `keep`
// checkpoints (at least 1), and that of step `best`. A step that is saved already, and good, is not saved again: the
// same step of a run is the same state. A failure throws
// Error(ErrorKind::io, exit 74), weights or moments that are not finite Error(ErrorKind::numeric, exit 70): nothing of
// this save stays, earlier checkpoints are untouched.
// Of several ranks (Optimizer::ranks()) all call; rank 0 writes the model, what `state_json` and `model_files` say,
// and the seal. An error is the same on all.
std::string save_checkpoint(const RunDirectory& run, int64_t step, Model& model, const Optimizer& optimizer,
                            const AuxiliaryModels& auxiliary_models, const std::string& state_json,
                            const std::string& model_files, int64_t keep, int64_t best = 0);

// Saves that failed on the disk. A disk that is full for a while costs a checkpoint, not the run: the third in a row,
// and one without which nothing would be kept (`needed`), is an error all the same. So is one of this rank alone.
class FailedSaves {
 public:
  void attempt(bool needed, const Ranks& ranks, const std::function<void()>& save);
  // Error(ErrorKind::io, exit 74) if the last attempt failed, and nothing is to come after it.
  void check_last() const;

 private:
  int64_t in_a_row_ = 0;
};

// The newest checkpoint that verifies, whose numbers are finite and whose state `check_state` accepts (it throws Error
// otherwise); a warning with the reason for each one passed over. nullopt only if the run never saved any; if there are
// some and none is good, Error(ErrorKind::io): never a fresh start; exit 74 if it was the machine that could not
// read one.
using StateCheck = std::function<void(const std::string& state_json, const FoundCheckpoint&)>;
std::optional<FoundCheckpoint> newest_checkpoint(const RunDirectory& run, const StateCheck& check_state = {});

// Of a checkpoint that newest_checkpoint() has found in another process: its manifest, by which it is known, read here.
// `manifest` is manifest_of() there. Error(ErrorKind::io) where it is not the same, or files are missing or of other
// sizes.
std::string manifest_of(const FoundCheckpoint& found);
void check_found_elsewhere(const FoundCheckpoint& found, const std::string& manifest);

// Weights (the f32 masters), moments and the step count, bit for bit, of the policy and of its auxiliary models.
// Returns the caller's state_json. Moments of another optimizer.kind or optimizer.moments are an Error: none are
// converted.
std::string load_checkpoint(const FoundCheckpoint& found, Model& model, Optimizer& optimizer,
                            const AuxiliaryModels& auxiliary_models);

}  // namespace ucas
