// One model on problem files or a suite, kept in a run directory: what `ucas evaluate`, the demo and studies share. The
// model is a checkpoint, or where plan.model.is_responses, known by its responses in a file.
//   RUN/eval/NAME.outputs.jsonl   the responses, as they come; an interrupted evaluation resumes from here
//   RUN/eval/NAME.jsonl, .json    problems and figures
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/problems.h"
#include "data/prompts/templates.h"
#include "evaluate/benchmark.h"
#include "records/evaluation.h"
#include "rollout/config.h"
#include "rollout/sampling/config.h"

namespace ucas {

// On which problems, and how, every model is evaluated.
struct EvaluationPlan {
  std::vector<std::string> files;     // problem files,
  std::string suite, data_directory;  // or a suite (or benchmark) and where its files are
  std::string prompt_template;        // where the suite, the benchmark and `typed` say nothing
  CommandSettings typed;              // what the command line says; its defaults are not read
  EvaluatedModel model;
  FewShot examples;                  // before every question, where nothing is chosen among
  int64_t max_prompt_length = 1024;  // longer prompts are left out; 0 = what the model has positions for
  int64_t limit = 0;                 // only the first problems, of each benchmark; 0 = all
  bool keyed_by_position = false;    // evaluate/engine/evaluator.h
  EvalConfig config;
  ProblemOptions problems;
  GraderKind grader = GraderKind::math;       // of files; a suite's benchmarks name their own
  std::map<std::string, GraderKind> graders;  // of files' data sources with one of their own
  code::CodeOptions code;
  EngineConfig engine;
  EnvironmentConfig environment;  // answers checkpoints, sampled by this process alone, on the CPU
  std::string device = "cpu";
  int64_t threads = 0;
  std::string name = "test";  // RUN/eval/NAME.json
};

// Generates what is not there yet, scores, and leaves the files in RUN, with an env.json unless it has one (`run`
// empty: keeps nothing). Throws Error(ErrorKind::interrupted) on interrupt; the same call resumes.
EvalRecord evaluate_model(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                          const std::string& label, int64_t step = -1);

// The same as evaluate_model, unless RUN holds the evaluation complete.
void evaluate_or_reuse(const EvaluationPlan& plan, const std::string& model, const std::string& run,
                       const std::string& label, int64_t step);

}  // namespace ucas
