// The advantages that several methods give to one saved step: RUN/signals/step-NNNNNNN.methods.json, beside the step's
// data (docs/formats.md). Written by `ucas advantages --save`, read by the report, which knows no method itself.
#pragma once

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

// `source` is the hash of the step's file (base/files/hash.h): advantages of other data are not mistaken for these.
std::string step_methods_json(const StepData& data, const std::string& source,
                              std::span<const MethodAdvantages> methods);
// Throws Error: path, limit, or header_json naming the file: wrong form, or of another step's data.
std::vector<MethodAdvantages> read_step_methods(const std::string& path, const StepData& data,
                                                const std::string& source);

}  // namespace ucas
