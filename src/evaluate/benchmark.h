// What can be evaluated, as data: benchmarks/NAME.toml (one set of problems) and suites/NAME.toml (a list of benchmarks
// and how they are put to a model), in the binary or files of the user's own with the same keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "config/policy_options.h"
#include "core/verdict.h"
#include "data/problems.h"
#include "verify/registry.h"

namespace ucas {

using BenchmarkColumns = ProblemColumns;

struct Benchmark {
  std::string name, title;
  std::string path;      // below --data, or hf://ORG/SET..
  int64_t problems = 0;  // how many there must be; 0 = any number
  int64_t unanswered =
      0;  // how many of them come without a right answer: never right, as other tables count them; -1 = any
  BenchmarkColumns columns;
  GraderKind grader = GraderKind::math;
  ExtractOption extract = ExtractOption::automatic;
  // What the command line does not say (prompt_settings below has the order).
  std::string prompt_template;    // "" = default
  std::vector<std::string> stop;  // tokens or texts that end a response, with those of the model's files and template
  int64_t max_tokens = 0;         // 0 = default
  std::string note;               // shown under the table: what a reader must know of this set
  void fields(Fields& f);
};

struct Suite {
  std::string name, title;
  std::vector<std::string> named = {};     // as the file has them
  std::vector<Benchmark> benchmarks = {};  // in order of the table
  std::string prompt_template;             // "" = default
  int64_t max_tokens = 0;                  // 0 = default
  int64_t samples = -1;                    // per problem, added to the greedy response; -1 = default
  std::string note;
  void fields(Fields& f);
};

// A file, or the name of an embedded suite ("math5") or of a single embedded benchmark ("aime24"). Reads no problems.
// A suite's `benchmarks` are names of embedded ones, of its own [benchmark.NAME] tables (which also change keys of
// embedded ones), or files next to it. Errors: config, path.
Suite load_suite(const std::string& name_or_path);

// Its files: `path` below the directory as given, else its last part there; of a set of the hub NAME.jsonl, .parquet or
// .csv there, else those in the hub's cache.
std::vector<std::string> benchmark_files(const Benchmark& benchmark, const std::string& data_directory);
// The benchmark's problems; source is its name. Errors: path (says what --data must hold), limit (another number of
// problems than it must have), data_line (also for a duplicate id: stored responses are found by it).
std::vector<Problem> read_benchmark(const Benchmark& benchmark, const std::string& data_directory);

// A checkpoint that runs here, or a file of responses.
struct EvaluatedModel {
  std::string label;  // "" = from the path
  std::string path;
  bool is_responses = false;
};
// "LABEL=DIR" is a label if no slash precedes the "=" and there is no directory of the whole name.
// Without a label it comes from the path: its last part, or the run and the step of a checkpoint of a run.
// `responses`: files of responses, PATH or LABEL=PATH, after the checkpoints.
// Errors: usage (no model), config (a duplicate label, or one that is no file name).
std::vector<EvaluatedModel> read_models(const std::vector<std::string>& positionals,
                                        const std::vector<std::string>& responses);

// What the command line says; nullopt = left at its default.
struct CommandSettings {
  std::vector<std::string> stop;
  std::optional<std::string> prompt_template;
  std::optional<int64_t> max_tokens;
  std::optional<Extract> extract;
  std::string default_template = "auto";
  int64_t default_max_tokens = 1024;
};
// What was typed, and the defaults where nothing was.
CommandSettings command_settings(const EvaluateOptions& options, const std::vector<Setting>& typed);

// How one benchmark is put to a model.
struct PromptSettings {
  std::string prompt_template;
  std::vector<std::string> stop;  // tokens or texts, added to those of the model's files and the template
  int64_t max_tokens = 0;
  ExtractOption extract = ExtractOption::automatic;
  bool operator==(const PromptSettings&) const = default;
};
// The nearest word counts: what was typed, else the benchmark's, else the suite's, else the command's default; stops
// add up.
PromptSettings prompt_settings(const CommandSettings& command, const Benchmark& benchmark, const Suite& suite);

}  // namespace ucas
