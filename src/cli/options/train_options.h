// The words of `ucas train CONFIG --key value`, read the same way by every command that takes a training config.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "hf/model_config.h"
#include "train/sft/config.h"

namespace ucas {

// Short forms of the options that everyone types: --data, --val, --method, --preset, --max-hours, --bad_rows.
void expand_short_forms(std::vector<Setting>& settings);

// Takes a command's own options out of settings that are a training's, too.
template <class Options>
void take_own(Options& options, std::vector<Setting>& settings) {
  const std::vector<FieldValue> known = fields_of(options);
  const auto others = std::ranges::stable_partition(
      settings, [&](const Setting& s) { return std::ranges::find(known, s.key, &FieldValue::key) != known.end(); });
  ucas::apply(options, {settings.begin(), others.begin()});
  settings.erase(settings.begin(), others.begin());
}

// Removes option `key` from the settings and returns its value; "" where it is not there.
std::string take_option(std::vector<Setting>& settings, const std::string& key);

// Options of `ucas sft`, shared by the command (engine) and its --help (plain).

struct ModelShape : ModelConfig {  // for --init
  void fields(Fields& f);
};

struct SftOptions {
  std::string model, init, tokenizer, out;
  std::string device = "cpu";
  Dtype dtype = Dtype::automatic;
  Recompute recompute = Recompute::none;
  LoraConfig lora;
  int64_t threads = 0;
  ModelShape shape;
  SftConfig sft;

  void fields(Fields& f);
  void validate() const;  // Error(ErrorKind::config)
  ModelOptions model_options() const;
};

}  // namespace ucas
