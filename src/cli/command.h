// The commands of the program: one row each, grouped, in the order in which a newcomer meets them.
// clang-format off
//   run_NAME           runs the command. It parses its own words (base/text/fields.h) and returns an exit code; errors are
//                      thrown. Of an engine command it is in cli/engine, behind a library that is loaded on demand.
//   options_NAME       the options part of --help; of engine commands in cli/engine_options.cpp, so that --help loads
//                      nothing
//   help/NAME.txt      the rest of that text
// clang-format on
#pragma once

// name, where it runs, its group in `ucas --help`, what it is there (19 columns at most), the head of its own --help
#define UCAS_COMMANDS(X)                                                                                               \
  X(train, engine, train, "RLVR training", "reinforcement learning with verifiable rewards")                           \
  X(sft, engine, train, "fine-tuning", "supervised fine-tuning on prompts and responses")                              \
  X(demo, engine, train, "small complete run",                                                                         \
    "the main job on the embedded task: warm-up, RLVR per method, evaluation, report")                                 \
  X(run, plain, train, "all of it", "a training, its evaluation and the report, by one command")                       \
  X(study, engine, train, "runs over seeds", "several trainings over seeds, from one base, in one table")              \
  X(plan, plain, train, "memory, disk, time", "estimate memory, disk and time without loading the model")              \
  X(explain, plain, train, "config to equations",                                                                      \
    "show a training config as equations, with departures from the papers")                                            \
  X(config, plain, train, "configs by name", "list or print training configs, or write one for a model and a machine") \
  X(evaluate, engine, evaluate, "accuracy, pass@k", "greedy and sampled accuracy, pass@k, with intervals")             \
  X(generate, engine, evaluate, "sample responses",                                                                    \
    "sample responses of a checkpoint to a prompt or to problem files")                                                \
  X(score, engine, evaluate, "log-probs, entropy", "compute per-token log-prob, entropy and confidence of responses")  \
  X(verify, plain, evaluate, "grade answers", "grade answers, or a run's stored responses again")                      \
  X(compare, plain, evaluate, "runs, significance", "compare runs, with significance tests")                           \
  X(report, plain, inspect, "runs as HTML page", "write run directories as one HTML page: results, curves, responses") \
  X(diagnose, plain, inspect, "why reward fell", "find common failure modes; compare confidence measures for UCAS")    \
  X(advantages, plain, inspect, "step, other method", "recompute advantages of a saved step under another method")     \
  X(replay, engine, inspect, "step, bit by bit",                                                                       \
    "regenerate the responses of a training step and check that they are bit-identical")                               \
  X(doctor, plain, inspect, "check this machine", "show hardware, build and backends")                                 \
  X(make_task, plain, data, "write problems",                                                                          \
    "write a task: the embedded one, or word problems, sums, countdown for real models")                               \
  X(check, plain, data, "validate files", "validate any file, summarize data, compare token ids")                      \
  X(export, plain, data, "model and results", "export a checkpoint as a Hugging Face repo with a model card")

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

#define UCAS_DECLARE(name, where, group, brief, summary) \
  int run_##name(const Words& words);                    \
  std::string options_##name();
UCAS_COMMANDS(UCAS_DECLARE)
int run_merge(const Words& words);  // in the engine, for `ucas export`
#undef UCAS_DECLARE

struct Command {
  const char* id;                  // "make_task"
  std::string name;                // as typed: "make-task"
  const char* group;               // "data": the heading in `ucas --help`
  const char* brief;               // next to the name there
  const char* summary;             // one line for `ucas NAME --help`
  int (*run)(const Words& words);  // nullptr: in the engine
  std::string (*options)();
};

std::span<const Command> commands();
// The whole text of `ucas NAME --help`.
std::string help_of(const Command& command);
// The whole program behind main(): picks the command, answers --help and --version.
int run_program(const Words& words);

// A device against the CPU, part by part (train/update/self_check.h).
struct DeviceCheck {
  std::string what;
  double difference, bound;
  bool ok;
};

// Runs the command `id` in the engine library (loaded once). Defined in cli/engine_loader.cpp, like the next two.
int run_in_engine(const char* id, const Words& words);
// What the engine knows of this machine, as (name, value) rows; loads the engine.
std::vector<std::pair<std::string, std::string>> describe_engine();
// Tries what a training needs of a device other than the CPU; refuses one that is not there.
std::vector<DeviceCheck> check_device(const std::string& device);

// A long --help by topics: what a page says first, and what each of its sections says. Text in, text out.

// `page` is the whole text of `ucas NAME --help`. Without a topic, a page that is long: its head, the options to know
// first and the names of its topics. A topic is a section ("rollout"), "general" (options of no section), a method
// ("ucas"), or "all". Error(ErrorKind::usage) for any other. A line "{first KEY KEY ...}" of the head names the options
// to know first; without one these are the general ones.
std::string help_on(std::string page, const std::string& name, const std::string& topic);

// Takes --ranks and --gpus out of the words of `command`. The exit code of all ranks where they ask for several;
// nullopt where there is to be one process. Error(ErrorKind::usage) for a number that cannot be.
//   0 where all ended with 0; 75 where they were stopped and saved; else that of the rank that failed first by itself,
//   70 where a signal ended it.
std::optional<int> launch_ranks(const std::string& command, Words& words);

}  // namespace ucas
