// Options of `ucas sft`, shared by the command (engine) and its --help (plain).
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"
#include "config/sft_config.h"
#include "hf/qwen2_config.h"

namespace ucas {

struct ModelShape : Qwen2Config {  // for --init
  void fields(Fields& f);
};

struct SftOptions {
  std::string model, init, tokenizer, out;
  std::string device = "cpu";
  int64_t threads = 0;
  ModelShape shape;
  SftConfig sft;

  void fields(Fields& f);
  void validate() const;  // Error("config")
};

}  // namespace ucas
