// Resuming a run: what may change, from which checkpoint, and what is restored. Called by
// train/loop/start alone; of several ranks all call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run/run_directory.h"
#include "rollout/sampling/config.h"
#include "train/loop/start.h"
#include "train/state/checkpoint.h"

namespace ucas {

inline constexpr const char *kAllowChanges = "allow-changes", *kOverPlan = "allow-over-plan";

// Settings of the run with those of the command line, where these may change. Error(ErrorKind::config) else.
std::vector<Setting> with_overrides(std::vector<Setting> settings, const std::vector<Setting>& overrides,
                                    const TrainConfig& before);

// What keeps a resumed run from equalling an uninterrupted one is refused; under --allow-changes it is logged, and kept
// in env.json, where every report shows it.
struct Consent {
  const RunDirectory& run;
  bool given = false;

  void ask(const std::string& problem, const std::string& remedy) const;
};

// Where rank 0 resumes the run: it alone reads every byte of every candidate and clears up. nullopt: the run
// starts over. `had_folder`: checkpoints/ was there.
std::optional<FoundCheckpoint> choose_checkpoint(const RunDirectory& run, const TrainConfig& before, bool had_folder,
                                                 const Consent& consent, Ranks& ranks);

// What the run was begun with against what this program is, and what this device gives. Of two commits of one version
// the results may differ.
void check_program(const RunDirectory& run);
void check_engine(const EngineConfig& engine, const RunDirectory& run);

// Weights, moments and state of the checkpoint, if it belongs to the same run.
void restore(Training& t, const FoundCheckpoint& found, const Consent& consent);

}  // namespace ucas
