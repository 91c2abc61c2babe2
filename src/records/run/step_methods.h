// The advantages that several methods give to one saved step: RUN/signals/step-NNNNNNN.methods.json, beside the step's
// data (docs/formats.md). Written by `ucas advantages --save`, read by the report, which knows no method itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "records/run/step_data.h"

namespace ucas {

struct MethodAdvantages {
  std::string name, preset, title;
  std::vector<std::pair<std::string, std::string>> settings;  // all its options, values as in config.toml
  std::vector<float> advantage;                               // [N] of StepData::batch
};

// "x/step-0000012.jsonl" -> "x/step-0000012.methods.json"
std::string step_methods_file(const std::string& step_file);

// `source` is the hash of the step's file (base/files/file.h): advantages of other data are not mistaken for these.
std::string step_methods_json(const StepData& data, const std::string& source,
                              std::span<const MethodAdvantages> methods);
// Throws Error: path, limit, or header_json naming the file: wrong form, or of another step's data.
std::vector<MethodAdvantages> read_step_methods(const std::string& path, const StepData& data,
                                                const std::string& source);

// What every method asks of the tokens of saved steps, next to DAPO: of `ucas advantages --table`.

// Over all tokens of the steps; a DAPO's, b the method's.
struct AgainstDapo {
  std::string name, variant;             // "ucas", "placebo permuted_confidence"
  double correlation = 0;                // of a and b; NaN if either is constant
  double size = 0;                       // mean |b| over mean |a|
  double net = 0;                        // mean b
  int64_t tokens = 0, turned = 0;        // a b < 0
  int64_t silenced = 0, woken = 0;       // b = 0 only; a = 0 only
  int64_t rare = 0, rare_lowered = 0;    // rare right responses, and those whose mean b is below their mean a
  int64_t other = 0, other_lowered = 0;  // the other right responses of groups with a difference
};

struct MethodsTable {
  int64_t steps = 0, groups = 0, responses = 0;
  double rare = 0;                    // a right response is rare where at most this share of its group is right
  std::vector<AgainstDapo> rows;      // DAPO first
  std::vector<std::string> left_out;  // "ppo: the values of a critic (..)"
};

}  // namespace ucas
