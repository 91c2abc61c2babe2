// A run directory is the contract between train, evaluate and report. The report can be rebuilt from it alone, on
// another machine.
// clang-format off
//   config.toml                        all settings, resolved
//   env.json                           version, machine, start
//   .lock                              held while a trainer runs, with a lock of the directory itself
//   steps.jsonl                        one JSON line a step
//   rollouts/step-0000012.jsonl        stored responses
//   signals/step-0000012.jsonl         see records/run/step_data.h
//   tensorboard/                       of the tracker (python/ucas/track.py)
//   checkpoints/step-0000012/          see train/state/checkpoint.h
//   model_files/                       the base's tokenizer, config.json ..: all of its directory but the weights
//                                      (below)
// clang-format on
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file.h"

namespace ucas {

// env.json of a run directory: version, machine, start, and what befell the run. Written by trainings, evaluations of
// other models and studies; any other keys of it are kept.

std::string utc_now();  // "2026-01-31T12:00:00Z"

// A text that is empty is not written.
struct RunEnvironment {
  std::string label;    // of a model that was not trained here
  std::string version;  // of ucas
  std::string torch;    // of LibTorch
  std::string isa, isa_reason;
  std::string device;
  int64_t threads = 0;                         // 0: not written
  std::string started;                         // UTC, ISO 8601; see utc_now()
  std::string model, data;                     // as given by the user
  std::string method;                          // its title: "PPO (Open-Reasoner-Zero)"
  std::string command;                         // as it was typed
  std::string initial_weights, training_data;  // their hashes: runs that agree in both are seeds of one experiment
  std::string about;                           // what the model is, for people
  int64_t parameters = 0;                      // of the model; 0: not written
  int64_t planned_memory = 0;                  // bytes at the peak of a training (config/plan/plan.h); 0: not written
  int64_t rollout_slots = 0;                   // of a GPU: responses decoded at once; 0: not written
  int64_t rollout_cache_tokens = 0;            // that its key-value cache holds
  std::string checkpoint_saved;                // "no" at the start of a training, "yes" from its first checkpoint on
};

void write_environment(const std::string& file, const RunEnvironment& environment);

// Every key of the file as text (a list of texts joined by "; ").
std::map<std::string, std::string> read_environment(const std::string& file);

// What befell the run and must not be forgotten: the list `remarks`, each once, for every report to show.
std::vector<std::string> read_remarks(const std::string& file);
void add_remark(const std::string& file, const std::string& text);
void set_in_environment(const std::string& file, const std::string& key, const std::string& text);

std::string step_name(int64_t step);               // 12 -> "step-0000012"
int64_t parse_step_name(const std::string& name);  // -1 unless it is exactly such a name (".jsonl" allowed)

class RunDirectory {
 public:
  RunDirectory() = default;  // of no run yet
  // Before anything is loaded: Error(ErrorKind::path) where no fresh run can begin, as a run or a file is there.
  static void check_free(const std::string& path);
  // A fresh run. Refuses a directory that already holds one: Error(ErrorKind::path) naming --resume. config.toml comes
  // last: a directory without it, left by a kill, is taken over.
  static RunDirectory create(const std::string& path, const std::string& config_toml,
                             const RunEnvironment& environment);
  // An existing run, to resume. Error(ErrorKind::path) if there is none, or another ucas is using it.
  static RunDirectory open(const std::string& path);
  // A run that another process writes: what would be written through this one is not.
  static RunDirectory watch(const std::string& path);
  bool writes() const { return lock_ != nullptr; }
  // Error(ErrorKind::path) unless there is a run at `path`.
  static void check_started(const std::string& path);

  const std::string& path() const { return path_; }
  std::string config_file() const { return path_join(path_, "config.toml"); }
  std::string env_file() const { return path_join(path_, "env.json"); }
  std::string steps_file() const { return path_join(path_, "steps.jsonl"); }
  std::string checkpoints() const { return path_join(path_, "checkpoints"); }
  std::string checkpoint(int64_t step) const { return path_join(checkpoints(), step_name(step)); }
  std::string model_files() const { return path_join(path_, "model_files"); }
  std::string rollout_file(int64_t step) const {
    return path_join(path_join(path_, "rollouts"), step_name(step) + ".jsonl");
  }

  std::string signals_file(int64_t step) const {
    return path_join(path_join(path_, "signals"), step_name(step) + ".jsonl");
  }

  // One line of JSON (no newline in it) with an integer "training/global_step" or "step"; written at once, made durable
  // by sync(), which save_checkpoint calls before it seals a checkpoint. A log that was moved, replaced or
  // deleted is written anew with all its lines, and a warning says so.
  void append_step(const std::string& json_line);
  void sync() const;
  // For resume: removes steps.jsonl lines, eval, rollout and signals files of steps after `step`, so none
  // appears twice. A torn last line (a crash while writing) goes too.
  void cut_after(int64_t step);
  // Steps from 1 to `step` that steps.jsonl lacks, as "4" or "4 to 6, 9 to 12"; "" if it has them all.
  std::string missing_steps(int64_t step) const;
  int64_t last_step() const;  // of steps.jsonl; -1 if it has no line

  std::string environment(const std::string& key) const;  // a text of env.json; "" if it is not there
  std::vector<std::string> remarks() const { return read_remarks(env_file()); }
  // Whether a checkpoint has ever been saved: "no" or "yes"; "" of runs of earlier versions, which did not keep it.
  std::string has_saved() const { return environment("checkpoint_saved"); }
  void note_saved();
  void remark(const std::string& text) const {
    if (writes()) add_remark(env_file(), text);
  }

 private:
  struct LogLines {
    int64_t bytes = 0;           // of the lines up to a step
    int64_t size = 0;            // of the file
    std::vector<int64_t> steps;  // of these lines
  };
  LogLines read_log(int64_t step) const;
  void keep_log_in_place() const;
  RunDirectory(std::string path, std::unique_ptr<FileLock> lock);
  std::string path_;
  std::unique_ptr<FileLock> lock_;
  mutable std::unique_ptr<FileWriter> steps_;  // opened at the first append, and again where the file was moved
  mutable bool said_cut_ = false;
  bool noted_saved_ = false;
};

// RUN/model_files: the run's own copy of all that makes weights a Hugging Face directory (the tokenizer's files,
// config.json with the keys that ucas does not know, generation_config.json, a chat template), sealed. Every checkpoint
// is written from it, so that neither the base nor an older checkpoint has to stay. Owned by the holder of the run
// directory's lock.

// The directory that the run's tokenizer is read from: the copy if it is whole, else `from` if it has one, else
// `otherwise`. (Runs of earlier versions have no copy, and may have lost the tokenizer from their checkpoints.)
std::string tokenizer_directory(const RunDirectory& run, const std::string& from, const std::string& otherwise);

// Makes the copy from a checkpoint directory: `from`, its tokenizer as above. A copy that is there and whole is kept;
// a damaged one is restored, with a warning.
void keep_model_files(const RunDirectory& run, const std::string& from, const std::string& otherwise);

// Error(ErrorKind::io, exit 74) naming the file if the copy is not whole.
void check_model_files(const std::string& directory);

}  // namespace ucas
