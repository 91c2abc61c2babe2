// What can be evaluated, as data: benchmarks/NAME.toml (one set of problems) and suites/NAME.toml (a list of benchmarks
// and how they are put to a model), in the binary or files of the user's own with the same keys. LibTorch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/problem.h"
#include "verify/verifier.h"

namespace ucas {

// Names of columns where a file has others than data/problems.h knows; "" = those.
struct BenchmarkColumns {
  std::string id, problem, answer, choices, subject;
  void fields(Fields& f);
};

struct Benchmark {
  enum class Grader {
    math,    // the verifier
    letter,  // the choice letter in the response
    choice   // nothing is generated: the choice of greatest log-prob, as the letter after the prompt
  };
  std::string name, title;
  std::string path;      // below --data
  int64_t problems = 0;  // how many there must be; 0 = any number
  BenchmarkColumns columns;
  Grader grader = Grader::math;
  Extract extract = Extract::strict;
  // What the model's own settings do not say (model > benchmark > suite > options of the command).
  std::string prompt_template;    // "" = not said
  std::vector<std::string> stop;  // token texts that end a response, beside those of the model's files and template
  int64_t max_tokens = 0;         // 0 = not said
  std::string note;               // shown under the table: what a reader must know of this set
  void fields(Fields& f);
};

struct Suite {
  std::string name, title;
  std::vector<Benchmark> benchmarks;  // in order of the table
  std::string prompt_template;
  int64_t max_tokens = 0;
  std::string note;
};

// A file, or the name of an embedded suite ("math5") or of a single embedded benchmark ("aime24"). Reads no problems.
Suite load_suite(const std::string& name_or_path);

// The benchmark's problems; source is its name. Errors: path (says what --data must hold), limit (another number of
// problems than it must have), data_line.
std::vector<Problem> read_benchmark(const Benchmark& benchmark, const std::string& data_directory);

}  // namespace ucas
