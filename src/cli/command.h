// The commands of the program, one row each, by groups, in each in the order in which a newcomer meets them. NAME is
// run_NAME and options_NAME (the options part of its --help), and help/NAME.txt is the rest of that text. An engine
// command has its run_NAME in cli/engine, behind a library that is loaded on demand; its options stay in
// cli/engine_options.cpp, so that --help loads nothing. A command parses its own words (base/fields.h) and returns an
// exit code; errors are thrown.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"

// name, where it runs, its group in `ucas --help`, what it is there (19 columns at most), the head of its own --help
#define UCAS_COMMANDS(X)                                                                                               \
  X(train, engine, train, "RLVR training", "reinforcement learning with verifiable rewards")                           \
  X(sft, engine, train, "fine-tuning", "supervised fine-tuning on prompts and responses")                              \
  X(demo, engine, train, "small complete run",                                                                         \
    "the main job on the embedded task: warm-up, RLVR per method, evaluation, report")                                 \
  X(study, engine, train, "runs over seeds", "several trainings over seeds, from one base, in one table")              \
  X(plan, plain, train, "memory, disk, time", "what a training will take, memory and disk, before anything is loaded") \
  X(explain, plain, train, "config to equations",                                                                      \
    "what a training config does, equation by equation, and how it departs from its papers")                           \
  X(configs, plain, train, "embedded configs", "names of the embedded training configs")                               \
  X(evaluate, engine, evaluate, "accuracy, pass@k", "greedy and sampled accuracy, pass@k, with intervals")             \
  X(generate, engine, evaluate, "sample responses", "responses of a checkpoint, to a prompt or to problem files")      \
  X(score, engine, evaluate, "log-probs, entropy", "per-token log-prob, entropy, confidence of given responses")       \
  X(verify, plain, evaluate, "grade answers", "grade answers against the right ones")                                  \
  X(verify_run, plain, evaluate, "audit evaluation", "grade and count an evaluation again, against its run card")      \
  X(compare, plain, evaluate, "runs, significance", "runs side by side, and which differences are significant")        \
  X(report, plain, inspect, "runs as HTML page", "run directories to one HTML page: results, curves, responses")       \
  X(diagnose, plain, inspect, "why reward fell",                                                                       \
    "why the reward of a training went as it did; which confidence protects what is rare")                             \
  X(advantages, plain, inspect, "step, other method", "a saved step under another method: what would have changed")    \
  X(replay, engine, inspect, "step, bit by bit",                                                                       \
    "responses of a training step again, compared bit by bit with what the run kept")                                  \
  X(doctor, plain, inspect, "check this machine", "what this machine has and what ucas makes of it")                   \
  X(make_task, plain, data, "write problems",                                                                          \
    "write a task: the embedded one, or word problems, sums, countdown for real models")                               \
  X(contamination, plain, data, "train/test overlap", "evaluation problems that stand among the training's")           \
  X(check, plain, data, "validate files", "whether files can be read: weights, configs, tokenizers, problems, runs")   \
  X(tokenize, plain, data, "text to token ids", "text to token ids, or a check against known ids")                     \
  X(convert, plain, data, "GGUF to checkpoint", "a GGUF file as a Hugging Face checkpoint")                            \
  X(merge, engine, data, "adapter into base", "an adapter added to its base: a whole checkpoint")                      \
  X(export, plain, data, "model and results",                                                                          \
    "a checkpoint of a run for others: the model, a model card, evaluation results")                                   \
  X(serve, engine, serve, "OpenAI-style API", "a checkpoint behind an OpenAI-compatible API")

namespace ucas {

#define UCAS_DECLARE(name, where, group, brief, summary) \
  int run_##name(const Words& words);                    \
  std::string options_##name();
UCAS_COMMANDS(UCAS_DECLARE)
#undef UCAS_DECLARE

struct Command {
  const char* id;                  // "make_task"
  std::string name;                // as typed: "make-task"
  const char* group;               // "data": the heading in `ucas --help`
  const char* brief;               // beside the name there
  const char* summary;             // one line for `ucas NAME --help`
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

// Runs the command `id` in the engine library (loaded once). Defined in cli/engine_loader.cpp, like the next two.
int run_in_engine(const char* id, const Words& words);
// What the engine knows of this machine, as (name, value) rows; loads the engine.
std::vector<std::pair<std::string, std::string>> describe_engine();
// Tries what a training needs of a device other than the CPU; refuses one that is not there.
std::vector<DeviceCheck> check_device(const std::string& device);

}  // namespace ucas
