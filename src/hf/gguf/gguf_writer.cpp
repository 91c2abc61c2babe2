#include "hf/gguf/gguf_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "hf/gguf/gguf.h"
#include "hf/safetensors.h"

namespace ucas {

namespace {

constexpr uint32_t kWrittenVersion = 3;
constexpr int64_t kAlignment = 32;
constexpr int64_t kQ8Values = 32, kQ8Bytes = 34;  // of Q8_0: a scale of F16, then a byte for each value

struct StorageRow {
  uint32_t type, file_type;  // as GGML numbers them
  const char* name;
};
constexpr StorageRow kStorages[] = {{0, 0, "F32"}, {1, 1, "F16"}, {30, 32, "BF16"}, {8, 7, "Q8_0"}};
const StorageRow& row_of(GgufStorage storage) { return kStorages[static_cast<size_t>(storage)]; }

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void put_kind(std::string& out, GgufKind kind) { put(out, static_cast<uint32_t>(kind)); }

struct PutValue {
  std::string& out;
  void operator()(uint32_t value) const { put_kind(out, GgufKind::u32), put(out, value); }
  void operator()(float value) const { put_kind(out, GgufKind::f32), put(out, value); }
  void operator()(bool value) const { put_kind(out, GgufKind::boolean), put(out, static_cast<uint8_t>(value)); }
  void operator()(const std::string& value) const { put_kind(out, GgufKind::text), put_text(out, value); }
  void operator()(const std::vector<std::string>& values) const {
    put_kind(out, GgufKind::array), put_kind(out, GgufKind::text);
    put(out, static_cast<uint64_t>(values.size()));
    for (const std::string& value : values) put_text(out, value);
  }
  void operator()(const std::vector<int32_t>& values) const {
    put_kind(out, GgufKind::array), put_kind(out, GgufKind::i32);
    put(out, static_cast<uint64_t>(values.size()));
    for (int32_t value : values) put(out, value);
  }
};

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  return n;
}

int64_t bytes_of_values(int64_t count, GgufStorage storage) {
  if (storage == GgufStorage::f32) return count * 4;
  return storage == GgufStorage::q8_0 ? count / kQ8Values * kQ8Bytes : count * 2;
}

int64_t padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

[[noreturn]] void refuse_value(const std::string& name, float value, const std::string& why) {
  throw Error(ErrorKind::numeric, str("tensor ", printable(name), " holds a value of ", value, why), kNumeric);
}

// As gguf-py: the scale in f32 divides, the same rounded to F16 is stored; halves are rounded away from zero.
void put_q8_0(std::string& out, const float* values, int64_t count, const std::string& name) {
  for (int64_t at = 0; at < count; at += kQ8Values) {
    float most = 0;
    for (int64_t i = 0; i < kQ8Values; ++i) most = std::max(most, std::fabs(values[at + i]));
    const float d = most / 127.0f, inverse = d == 0 ? 0 : 1.0f / d;
    const uint16_t scale = f16_of_f32(d);
    if (!std::isfinite(f32_of_f16(scale)))
      refuse_value(name, most, ", whose scale Q8_0 cannot hold; --gguf_type bf16 can");
    put(out, scale);
    for (int64_t i = 0; i < kQ8Values; ++i) put(out, static_cast<int8_t>(std::round(values[at + i] * inverse)));
  }
}

std::string head_of(const std::vector<GgufEntry>& entries, const std::vector<GgufTensorToWrite>& tensors,
                    GgufStorage asked) {
  std::string head(kGgufMagic);
  put(head, kWrittenVersion);
  put(head, static_cast<uint64_t>(tensors.size()));
  put(head, static_cast<uint64_t>(entries.size()));
  for (const auto& [key, value] : entries) {
    put_text(head, key);
    std::visit(PutValue{head}, value);
  }
  int64_t offset = 0;
  for (const GgufTensorToWrite& tensor : tensors) {
    const GgufStorage storage = storage_of(tensor.shape, asked);
    put_text(head, tensor.name);
    put(head, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      put(head, static_cast<uint64_t>(*size));
    put(head, row_of(storage).type);
    put(head, static_cast<uint64_t>(offset));
    offset += padded(bytes_of_values(elements_of(tensor.shape), storage));
  }
  head.resize(static_cast<size_t>(padded(std::ssize(head))), '\0');
  return head;
}

}  // namespace

GgufStorage storage_of(const std::vector<int64_t>& shape, GgufStorage asked) {
  if (shape.size() < 2) return GgufStorage::f32;
  return asked == GgufStorage::q8_0 && shape.back() % kQ8Values != 0 ? GgufStorage::f16 : asked;
}

uint32_t gguf_file_type(GgufStorage storage) { return row_of(storage).file_type; }

std::string gguf_bytes(const float* values, int64_t count, GgufStorage storage, const std::string& name) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) refuse_value(name, values[i], "; the checkpoint is broken");
  }
  std::string out;
  out.reserve(static_cast<size_t>(bytes_of_values(count, storage)));
  if (storage == GgufStorage::f32) {
    out.assign(reinterpret_cast<const char*>(values), static_cast<size_t>(count) * 4);
  } else if (storage == GgufStorage::q8_0) {
    put_q8_0(out, values, count, name);
  } else if (storage == GgufStorage::bf16) {
    for (int64_t i = 0; i < count; ++i) put(out, bf16_of_f32(values[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t half = f16_of_f32(values[i]);
      if (!std::isfinite(f32_of_f16(half)))
        refuse_value(name, values[i], ", beyond what F16 holds; --gguf_type bf16 holds it");
      put(out, half);
    }
  }
  return out;
}

void write_gguf(const std::string& path, const std::vector<GgufEntry>& entries,
                const std::vector<GgufTensorToWrite>& tensors, GgufStorage asked) {
  FileWriter file(path);
  file.write(head_of(entries, tensors, asked));
  std::vector<float> values;
  for (const GgufTensorToWrite& tensor : tensors) {
    values.resize(static_cast<size_t>(elements_of(tensor.shape)));
    tensor.values(values.data());
    std::string bytes = gguf_bytes(values.data(), std::ssize(values), storage_of(tensor.shape, asked), tensor.name);
    bytes.resize(static_cast<size_t>(padded(std::ssize(bytes))), '\0');
    file.write(bytes);
  }
  file.close();
}

}  // namespace ucas
