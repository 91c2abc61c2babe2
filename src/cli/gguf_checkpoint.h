// A GGUF file as the parts of a checkpoint: for `ucas convert`, and for `ucas check`, which goes as far but writes
// nothing.
#pragma once

#include <string>
#include <vector>

#include "hf/gguf/gguf_model.h"
#include "text/tokenizer/tokenizer_writer.h"

namespace ucas {

struct GgufCheckpoint {
  GgufCheckpoint(const std::string& path, const std::string& torch_dtype);
  GgufCheckpoint(const GgufCheckpoint&) = delete;
  GgufCheckpoint& operator=(const GgufCheckpoint&) = delete;

  GgufFile file;
  ModelConfig config;
  std::vector<TensorToStore> weights;  // read from `file`
  TokenizerTexts tokenizer;
};

bool is_gguf(const std::string& path);  // by the file's first bytes

}  // namespace ucas
