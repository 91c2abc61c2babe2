// Weights on disk: a directory with model.safetensors, or shards and model.safetensors.index.json. LibTorch-free.
// Every length, offset and shape is checked before anything is allocated; nothing is mapped, so a file that changes
// underneath cannot kill the process.
// Threads: any, on different files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ucas {

// F32, F16, BF16, I8 and U8 of the format; `other` is what nothing here computes with.
enum class StoredType : uint8_t { f32, f16, bf16, i8, u8, other };

const char* dtype_of(StoredType type);  // as it is written: "BF16"; not of `other`

struct StoredTensor {
  std::string name;
  std::string file;   // path of the file that holds it
  std::string dtype;  // as written: "F32"
  StoredType type = StoredType::other;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // absolute, in the file
  int64_t bytes = 0;
  int64_t elements() const;
};

// The tensors of one file, sorted by offset; its header checked completely.
std::vector<StoredTensor> read_safetensors_header(const std::string& path);
// Those of all shards that an index names, which are next to it.
std::vector<StoredTensor> read_sharded_headers(const std::string& index);
// The tensors of a checkpoint directory, sorted by name; of an adapter's directory the adapter's.
std::vector<StoredTensor> list_weights(const std::string& directory);
// Converts to f32 into out[elements()]. Error(ErrorKind::dtype) unless F32, F16 or BF16.
void read_as_f32(const StoredTensor& tensor, float* out);
// Its `bytes` as they are in the file.
void read_as_stored(const StoredTensor& tensor, void* out);

struct TensorToStore {
  std::string name;
  std::vector<int64_t> shape;
  std::function<const void*()> data;  // asked once, when its turn comes; valid until the next one is asked
  StoredType type = StoredType::f32;  // what data() points to; not `other`
  // In the place of data and in f32: writes `count` values from value `first` on to `out`. Asked from front to end in
  // pieces of 2^20 values, the last of fewer.
  std::function<void(int64_t first, int64_t count, float* out)> pieces = nullptr;
};

// One file, every tensor in its own type.
void write_safetensors(const std::string& path, const std::vector<TensorToStore>& tensors);

// Writes model.safetensors, or model-0000i-of-0000n.safetensors and the index when the whole exceeds `shard_bytes`.
// All in `torch_dtype`: "float32", "float16" or "bfloat16" (round to nearest even). Tensors of f32, f16 or bf16; one
// that has this type already is written as it is.
void write_weights(const std::string& directory, const std::vector<TensorToStore>& tensors,
                   const std::string& torch_dtype, int64_t shard_bytes);

float f32_of_f16(uint16_t bits);
uint16_t f16_of_f32(float value);
uint16_t bf16_of_f32(float value);

}  // namespace ucas
