// The commands of the program, one row each, in the order in which a newcomer meets them. NAME is run_NAME and
// options_NAME (the options part of its --help), and help/NAME.txt is the rest of that text. An engine command has its
// run_NAME in cli/engine, behind a library that is loaded on demand; its options stay in cli/engine_options.cpp, so
// that
// --help loads nothing. A command parses its own words (base/fields.h) and returns an exit code; errors are thrown.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

// name, where it runs, one line for `ucas --help`
#define UCAS_COMMANDS(X)                                                                                     \
  X(demo, engine, "the main job on the embedded task: warm-up, RLVR per method, evaluation, report")         \
  X(train, engine, "reinforcement learning with verifiable rewards")                                         \
  X(explain, plain, "what a training config does, equation by equation, and how it departs from its papers") \
  X(plan, plain, "what a training will take, memory and disk, before anything is loaded")                    \
  X(make_task, plain, "write a task: the embedded one, or word problems, sums, countdown for real models")   \
  X(contamination, plain, "evaluation problems that stand among the training's")                             \
  X(sft, engine, "supervised fine-tuning on prompts and responses")                                          \
  X(verify, plain, "grade answers against the right ones")                                                   \
  X(tokenize, plain, "text to token ids, or a check against known ids")                                      \
  X(check, plain, "whether files can be read: weights, configs, tokenizers, problems, runs")                 \
  X(convert, plain, "a GGUF file as a Hugging Face checkpoint")                                              \
  X(merge, engine, "an adapter added to its base: a whole checkpoint")                                       \
  X(export, plain, "a checkpoint of a run for others: the model, a model card, evaluation results")          \
  X(generate, engine, "responses of a checkpoint, to a prompt or to problem files")                          \
  X(score, engine, "per-token log-prob, entropy, confidence of given responses")                             \
  X(evaluate, engine, "greedy and sampled accuracy, pass@k, with intervals")                                 \
  X(serve, engine, "a checkpoint behind an OpenAI-compatible API")                                           \
  X(compare, plain, "runs side by side, and which differences are significant")                              \
  X(verify_run, plain, "grade and count an evaluation again, against its run card")                          \
  X(study, engine, "several trainings over seeds, from one base, in one table")                              \
  X(advantages, plain, "a saved step under another method: what would have changed")                         \
  X(replay, engine, "responses of a training step again, compared bit by bit with what the run kept")        \
  X(diagnose, plain, "why the reward of a training went as it did; which confidence protects what is rare")  \
  X(report, plain, "run directories to one HTML page: results, curves, responses")                           \
  X(doctor, plain, "what this machine has and what ucas makes of it")

namespace ucas {

#define UCAS_DECLARE(name, where, summary) \
  int run_##name(const Words& words);      \
  std::string options_##name();
UCAS_COMMANDS(UCAS_DECLARE)
#undef UCAS_DECLARE

struct Command {
  const char* id;                  // "make_task"
  std::string name;                // as typed: "make-task"
  const char* summary;             // one line for `ucas --help`
  int (*run)(const Words& words);  // nullptr: in the engine
  std::string (*options)();
};

std::span<const Command> commands();
// The whole text of `ucas NAME --help`.
std::string help_of(const Command& command);
// The whole program behind main(): picks the command, answers --help and --version.
int run_program(const Words& words);

// A device against the CPU (train/gpu_check.h): a kernel, or a part of the whole.
struct DeviceCheck {
  std::string what;
  double difference, bound, share;  // share: of `limit`; below 0: not measured
  std::string limit;
  bool ok;
};

// Runs the command `id` in the engine library (loaded once). Defined in cli/engine_loader.cpp, like the next three.
int run_in_engine(const char* id, const Words& words);
// What the engine knows of this machine, as (name, value) rows; loads the engine.
std::vector<std::pair<std::string, std::string>> describe_engine();
// Tries what a training needs of a device other than the CPU; refuses one that is not there.
std::vector<DeviceCheck> check_device(const std::string& device);
std::string engine_path();

}  // namespace ucas
