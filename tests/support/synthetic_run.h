// Run directories with invented, clearly synthetic content: the same bytes every time. For tests of whatever reads
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ucas {

struct SyntheticRun {
  std::string label;   // "base" without a method; "" lets the method's name stand
  std::string method;  // "" = an evaluation of an untrained model: no config, no steps
  int64_t seed = 0;
  int64_t steps = 24;
  double final_accuracy = 0.99;  // of the greedy response; 0.067 is where every run begins
  int64_t problems = 64;
  std::string response;                              // replaces every model text, if not empty
  std::vector<std::string> sources = {"synthetic"};  // of the problems in turn; with several: figures of each, too
  bool troubled = false;                             // numbers that must raise every alarm
};

// Writes the directory; returns `path`.
std::string write_synthetic_run(const std::string& path, const SyntheticRun& run);

// base, DAPO and UCAS under `root`, one directory a seed: "base-seed0", "dapo-seed0" ...
std::vector<std::string> write_synthetic_demo(const std::string& root, int64_t seeds);

}  // namespace ucas
