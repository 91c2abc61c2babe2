// What a study comes to: its base, every run with its settings and its place in the pool, the evaluation of all.
// Fed by a study file; read by the runner and by `ucas study --check`.
#pragma once

#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/str.h"
#include "config/train_config.h"
#include "study/config.h"
#include "study/engine/runs.h"

namespace ucas {

// A model that runs begin with.
struct StudyStart {
  std::string label;                    // "base 3"; "" where there is one for all
  std::string hash, path, model, view;  // path: POOL/base-HASH; view: OUT/runs/base or base-N
  int64_t seed = 0;                     // of initial weights and warm-up, on the embedded task
};

// An untrained base as a row: as it is, then with other prompts.
struct StudyBaseRow {
  std::string row, path, view;  // "base, plain"; POOL/base-HASH-plain; OUT/runs/base-plain
  size_t start = 0;             // its base among the plan's
  EvaluationPlan evaluation;
};

// One training: a row and a seed.
struct StudyTask {
  std::string row, title;  // of the study
  int64_t seed = 0;
  size_t start = 0;  // its base among the plan's
  std::string path;  // POOL/CONFIG-HASH-seedN: nothing in it depends on how this study calls the row
  std::string view;  // OUT/runs/ROW-seedN, crossed ROW-baseB-seedN
  TrainConfig train;
  EvaluationPlan evaluation;  // with the template that it was trained with
  std::string id;             // "ROW/SEED", crossed "ROW/BASE/SEED"
};

class StudyPlan {
 public:
  // Reads and checks every config; data files must be there for hashes, unless the task is embedded.
  explicit StudyPlan(Study study);

  const Study& study() const { return study_; }
  const StudyConfig& config() const { return study_.config; }
  std::string views() const { return path_join(config().out, "runs"); }  // a folder per row and seed, named by the row
  const std::vector<StudyTask>& tasks() const { return tasks_; }
  const std::vector<StudyStart>& starts() const { return starts_; }
  EmbeddedBase embedded_base(const StudyStart& start) const;
  // Of the embedded task: POOL/base-HASH that holds its files, whatever bases there are.
  std::string task_home() const { return path_join(config().pool, "base-" + task_hash_); }
  const EvaluationPlan& base_evaluation() const { return base_evaluation_; }
  const std::vector<StudyBaseRow>& base_rows() const { return base_rows_; }
  // Of base.tasks: the folder of their files, once made.
  std::string text_tasks_home() const { return path_join(config().pool, "tasks-" + data_hash_.substr(0, 8)); }
  int64_t threads() const;  // of one run

 private:
  std::string hash_of_base(int64_t seed) const;
  std::string path_of(const StudyRun& run, const TrainConfig& train, const StudyStart& start, int64_t seed) const;
  void find_starts();
  void add_base_rows(const EvaluationPlan& further);
  void add_task(const StudyRun& run, size_t start, int64_t seed);
  std::string hash_of_test() const;
  EvaluationPlan evaluation_of(const TrainConfig& train, int64_t samples) const;
  std::string name_of(const EvaluationPlan& plan) const;
  std::string as_graded(const EvaluationPlan& plan) const;
  TrainConfig train_config(const StudyRun& run, int64_t seed, const StudyStart& start) const;

  Study study_;
  std::string task_hash_, data_hash_, test_hash_;
  std::vector<StudyStart> starts_;
  std::vector<StudyTask> tasks_;
  EvaluationPlan base_evaluation_;
  std::vector<StudyBaseRow> base_rows_;
};

// Its runs and their states; nothing is started or written.
std::string check_study(const StudyPlan& plan);

// Runs a study: base, every run over every seed (in a pool that studies share), evaluation, tables, figures, report.
// `words`: what `ucas study` was called with, for the table. Returns an exit code.
int run_study(Study study, const Words& words);
// One run alone, `id` = ROW/SEED or base-SEED.
int run_one_of(Study study, const Words& words, const std::string& id);

}  // namespace ucas
