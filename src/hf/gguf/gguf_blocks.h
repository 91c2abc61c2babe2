// The tensor types of a GGUF file. A quantised tensor is a sequence of blocks, each a scale (and an offset, or scales
// of parts) and small integers; a row holds whole blocks. Values come out in f32, bit by bit those of the reference
// (gguf-py, and GGML behind it).
#pragma once

#include <cstdint>
#include <string>

namespace ucas {

struct GgufType {
  uint32_t id;       // in the file
  const char* name;  // "Q4_K"
  int64_t block_values, block_bytes;
  void (*widen)(const uint8_t* block, int64_t blocks, float* out);
};

const GgufType* find_gguf_type(uint32_t id);  // nullptr: one that is not read
std::string gguf_types();                     // "F32, F16, ..": those that are
std::string gguf_type_name(uint32_t id);      // of any, read or not; "99" where it has none

}  // namespace ucas
