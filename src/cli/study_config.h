// A study: several trainings from one base, each over several seeds, evaluated on the same problems, in one table.
// LibTorch-free, for --help and for reading study files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "evaluate/config.h"

namespace ucas {

// Where all runs of a study begin: the embedded task with its warmed-up model, or a checkpoint with problem files.
struct StudyBase {
  enum class Task { none, register_chains, length_generalisation };
  Task task = Task::none;
  int64_t sft_seed = 0;
  int64_t sft_worked_steps = 608;
  int64_t sft_mixed_steps = 152;
  int64_t test_problems = 512;
  std::string model;                    // task = none: a Hugging Face checkpoint directory ...
  std::vector<std::string> train, val;  // ... and problem files
  std::vector<std::string> test;
  void fields(Fields& f);
};

struct StudyConfig {
  std::string title;
  std::string out;                // default: runs/NAME-OF-THE-STUDY
  std::string table;              // markdown of the result also goes here; "" = only to OUT
  int64_t seeds = 1;              // 0, 1 ... for every run
  std::vector<std::string> runs;  // in the order of the table: names of [run.NAME] tables, or of configs
  std::string device = "cpu";
  int64_t threads = 0;
  StudyBase base;
  EvalConfig evaluate;
  void fields(Fields& f);
  void validate() const;
};

// One row of the study's table: a config and what is set on top of it.
struct StudyRun {
  std::string name;    // "stage1"
  std::string config;  // "ucas-tiny": an embedded config or a file
  std::vector<Setting> settings;
};

struct Study {
  std::string name;  // of the file, without folder and .toml
  StudyConfig config;
  std::vector<StudyRun> runs;
};

// A file, or the name of an embedded study ("tiny-methods"). [run.NAME] holds `config` and settings of `ucas train`,
// [all] settings of every run; [run.NAME] without `config` refers to the config NAME.
Study read_study(const std::string& path_or_name, const std::vector<Setting>& overrides);

}  // namespace ucas
