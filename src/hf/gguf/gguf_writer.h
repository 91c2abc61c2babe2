// Writes a GGUF file, version 3, as gguf-py does: the same bytes for the same entries and tensors. What a checkpoint
// comes to as such a file is cli/gguf_export.h.
// Threads: any, on different files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ucas {

// What matrices are stored in. Vectors (norms, biases) are F32, as GGML's converter has them.
enum class GgufStorage { f32, f16, bf16, q8_0 };
constexpr std::array<const char*, 4> names(GgufStorage) { return {"f32", "f16", "bf16", "q8_0"}; }

using GgufEntryValue = std::variant<uint32_t, float, bool, std::string, std::vector<std::string>, std::vector<int32_t>>;
using GgufEntry = std::pair<std::string, GgufEntryValue>;

struct GgufTensorToWrite {
  std::string name;
  std::vector<int64_t> shape;              // rows first; written the other way round
  std::function<void(float* out)> values;  // all of them, in order; asked once
};

// The type of a tensor of this shape: of rows that are no whole number of Q8_0's blocks F16.
GgufStorage storage_of(const std::vector<int64_t>& shape, GgufStorage asked);
uint32_t gguf_file_type(GgufStorage storage);  // general.file_type
// Bytes of `count` values of whole rows. Error(ErrorKind::numeric) for a value that is not finite or beyond what the
// type holds; `name` is the tensor's.
std::string gguf_bytes(const float* values, int64_t count, GgufStorage storage, const std::string& name);

void write_gguf(const std::string& path, const std::vector<GgufEntry>& entries,
                const std::vector<GgufTensorToWrite>& tensors, GgufStorage asked);

}  // namespace ucas
