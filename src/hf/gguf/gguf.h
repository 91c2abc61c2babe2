// A GGUF file, version 2 or 3: metadata (keys with typed values) and tensors, in whole blocks of their types
// (hf/gguf/gguf_blocks.h). What it describes as a checkpoint is hf/gguf/gguf_model.h.
// Read with bounded memory whatever the file says: counts, lengths, types and offsets are checked against the file
// before anything is kept, arrays stay on disk until they are asked for, tensors are read in pieces.
// Errors: truncated, limit, dup_key, utf8, offset, shape, dtype, unsupported, and "gguf" for other faults of the form.
// Threads: const functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "hf/gguf/gguf_blocks.h"

namespace ucas {

constexpr std::string_view kGgufMagic = "GGUF";

enum class GgufKind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

struct GgufArray {
  GgufKind of = GgufKind::u8;  // never an array
  int64_t count = 0;
  int64_t offset = 0;  // of its first element, in the file
};

// Whole numbers below 0 as int64_t, others as uint64_t; f32 stays float, so that it prints as it was written.
using GgufValue = std::variant<int64_t, uint64_t, float, double, bool, std::string, GgufArray>;

struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;  // rows first, as in safetensors: the reverse of the file's order
  int64_t offset = 0;          // absolute, in the file
  int64_t bytes = 0;
  int64_t elements() const;
};

class GgufFile {
 public:
  explicit GgufFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the order of their data
  const GgufTensor* tensor(std::string_view name) const;               // nullptr: none
  // `count` values of a tensor from value `first` on. Both are multiples of its type's block.
  void read(const GgufTensor& tensor, int64_t first, int64_t count, float* out) const;

  std::vector<std::string> keys() const;  // sorted
  const GgufValue* find(std::string_view key) const;
  // Absent is no error; of another type or out of range is Error(ErrorKind::gguf) that names file, key and what is
  // there.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> number(std::string_view key) const;  // finite; f32 by its shortest decimal text
  std::optional<bool> truth(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key, int64_t low, int64_t high) const;
  std::vector<float> floats(std::string_view key) const;  // not NaN

  [[noreturn]] void refuse(ErrorKind kind, std::string_view key, const std::string& expected) const;
  [[noreturn]] void missing(std::string_view key) const;

 private:
  std::string path_;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace ucas
