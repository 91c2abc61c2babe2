// Options of `ucas sft`, shared by the command (engine) and its --help (plain).
#pragma once

#include <cstdint>
#include <string>

#include "base/text/fields.h"
#include "core/model_options.h"
#include "hf/model_config.h"
#include "train/sft/config.h"

namespace ucas {

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
