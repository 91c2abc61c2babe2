// A study: trainings from one base over several seeds, evaluated on the same problems; its kinds say which table and
// figures of a paper come out of it. LibTorch-free, for --help and for reading study files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "data/tasks/register_chains.h"
#include "data/tasks/task.h"
#include "records/evaluation.h"
#include "report/study_figures.h"
#include "results/compare/answers.h"
#include "study/protocol.h"

namespace ucas {

// Where all runs of a study begin: the embedded task with its warmed-up model, or a checkpoint with problem files.
struct StudyBase {
  enum class Task { none, register_chains, length_generalisation, hidden_rule, hidden_steps };
  Task task = Task::none;
  int64_t sft_seed = 0;
  std::vector<int64_t> sft_seeds;  // several bases; empty = one for all, of sft_seed
  bool crossed = false;            // every base with every seed of the runs; else a base for each seed, in turn
  int64_t sft_worked_steps = 608;
  int64_t sft_mixed_steps = 152;
  int64_t test_problems = 512;
  HiddenRule hidden;  // of task = hidden_rule and hidden_steps, whose own it is unless something else is asked for
  std::string model;  // task = none: a Hugging Face checkpoint directory ...
  std::vector<std::string> train, val;  // ... and problem files, below the study's `data`
  std::vector<std::string> test;
  std::vector<std::string> tasks;  // instead of files: tasks for pretrained models (data/tasks/task.h), all together
  TextTaskOptions task_options;    // of these
  int64_t warm_up = 0;             // supervised updates on demonstrations of `tasks`, before any run: one for all
  int64_t samples = 0;             // of each problem from the base, more than `evaluate` asks; 0 = the same
  std::string suite;               // instead of `test`: benchmarks (evaluate/benchmark.h)
  std::vector<std::string> templates;  // the base once more with each of these prompts, a row each
  void fields(Fields& f);
  bool embedded() const { return task != Task::none; }
  TaskKind kind() const;  // of an embedded task
};

// [column.NAME]: metrics, each over each of these sources; what `columns`, `compare` and gates call NAME. A name
// without a table is that of a metric.
struct StudyColumn {
  std::vector<std::string> metric, source;
  double accuracy = 0;
  void fields(Fields& f);
  std::vector<Quantity> quantities() const;  // a source "each" is expanded by the table
};

struct StudyConfig {
  std::string title;
  std::vector<std::string> kind = {"methods"};
  std::string out;                    // default: runs/NAME-OF-THE-STUDY
  std::string pool;                   // run directories, shared with other studies; default: OUT/pool
  std::string data;                   // relative paths of `base` are below it
  int64_t seeds = 1;                  // of every run, from 0 on
  std::vector<std::string> runs;      // in the order of the table: names of [run.NAME] tables, or of configs
  std::string reference;              // the row that the others are compared with; default: the first trained
  std::vector<std::string> columns;   // of the table; default: what the evaluation has
  std::vector<std::string> compare;   // columns that are compared; default: greedy and mean@n
  std::string metric = "greedy";      // of bars
  std::vector<std::string> problems;  // case: ids; default: two that the rows answer differently
  std::vector<std::string> sources;   // confidence, passk: sets of problems in the figures; default: all
  std::string device = "cpu";
  int64_t threads = 0;  // of a run; 0 = all cores
  StudyDecision decide;
  StudyBase base;
  EvalConfig evaluate;
  void fields(Fields& f);
  void validate(bool trains) const;
  bool is(const std::string& name) const;  // one of its kinds
  // In the views; in the pool its hash follows.
  std::string eval_name() const { return base.suite.empty() ? "test" : base.suite; }
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
  std::vector<Quantity> columns, compare;  // of the config's names
  std::vector<StudyGate> gates;
};

// A file, or the name of an embedded study ("tiny-methods"). `extends`: another one, whose settings hold where this
// file has none. [run.NAME] holds `config` and settings of `ucas train`, [all] settings of every run; [run.NAME]
// without `config` refers to the config NAME.
// `trains`: what is trained on and asked must be there, too.
Study read_study(const std::string& path_or_name, const std::vector<Setting>& overrides, bool trains = true);

// The figures of finished runs.
std::vector<FigureRequest> figure_requests(const Study& study, const std::vector<std::string>& runs,
                                           const std::string& data);

}  // namespace ucas
