#include "hf/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr int64_t kHeaderLimit = 100'000'000;  // the format's own
constexpr int64_t kIndexLimit = int64_t{64} << 20;
constexpr size_t kTensorLimit = 1'000'000, kRankLimit = 8, kNameLimit = 4096;
constexpr int64_t kBlock = int64_t{1} << 20;  // elements converted at a time

struct TypeRow {
  const char* name;
  int64_t bits;
  StoredType type = StoredType::other;
};
constexpr TypeRow kTypes[] = {{"F32", 32, StoredType::f32},
                              {"F16", 16, StoredType::f16},
                              {"BF16", 16, StoredType::bf16},
                              {"I8", 8, StoredType::i8},
                              {"U8", 8, StoredType::u8},
                              {"F64", 64},
                              {"I64", 64},
                              {"I32", 32},
                              {"I16", 16},
                              {"U64", 64},
                              {"U32", 32},
                              {"U16", 16},
                              {"BOOL", 8},
                              {"F8_E4M3", 8},
                              {"F8_E5M2", 8},
                              {"F8_E8M0", 8},
                              {"C64", 64}};

// The row of a type that we write.
const TypeRow& row_of(StoredType type) {
  const TypeRow* row = std::ranges::find(kTypes, type, &TypeRow::type);
  UCAS_CHECK(type != StoredType::other && row != std::end(kTypes), "the dtype must be one that can be written");
  return *row;
}
int64_t width_of(StoredType type) { return row_of(type).bits / 8; }

std::string where_of(const std::string& path, const std::string& name) {
  return str(path, ": tensor ", printable(name));
}

uint64_t natural(const Json& value, ErrorKind kind, const std::string& where, const char* what) {
  if (!value.is_number_unsigned())
    throw Error(kind, str(where, ": ", what, " must be a natural number, got ", printable(json_text(value), 40)));
  return value.get<uint64_t>();
}

// Product of the shape, times the width, without overflow; `limit` bounds it (no file is larger).
int64_t byte_count(const std::vector<int64_t>& shape, int64_t bits, const std::string& where) {
  uint64_t count = 1;
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t size : shape) {
    if (empty) break;
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(size), &count) || count > (uint64_t{1} << 56))
      throw Error(ErrorKind::shape, str(where, ": the product of its shape overflows"));
  }
  return empty ? 0 : static_cast<int64_t>(count * static_cast<uint64_t>(bits) / 8);
}

StoredTensor read_entry(const std::string& path, const std::string& name, const Json& entry, int64_t data_begin,
                        int64_t data_size) {
  std::string where = where_of(path, name);
  if (name.size() > kNameLimit)
    throw Error(ErrorKind::limit, str(where, ": a name longer than ", kNameLimit, " bytes"));
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    throw Error(ErrorKind::header_json, str(where, ": expected an object of dtype, shape and data_offsets"));
  StoredTensor t;
  t.name = name;
  t.file = path;
  const Json &dtype = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
  if (!dtype.is_string()) throw Error(ErrorKind::dtype, str(where, ": dtype must be a string"));
  t.dtype = dtype.get<std::string>();
  const TypeRow* row = std::ranges::find_if(kTypes, [&](const TypeRow& r) { return t.dtype == r.name; });
  if (row == std::end(kTypes))
    throw Error(ErrorKind::dtype, str(where, ": unknown dtype \"", printable(t.dtype, 20), "\""));
  t.type = row->type;
  if (!shape.is_array()) throw Error(ErrorKind::shape, str(where, ": shape must be a list"));
  if (shape.size() > kRankLimit)
    throw Error(ErrorKind::limit, str(where, ": rank ", shape.size(), " is above ", kRankLimit));
  for (const Json& size : shape) {
    uint64_t value = natural(size, ErrorKind::shape, where, "a size in its shape");
    if (value > (uint64_t{1} << 56)) throw Error(ErrorKind::shape, str(where, ": size ", value, " in its shape"));
    t.shape.push_back(static_cast<int64_t>(value));
  }
  if (!offsets.is_array() || offsets.size() != 2)
    throw Error(ErrorKind::offset, str(where, ": data_offsets must be a pair"));
  uint64_t begin = natural(offsets[0], ErrorKind::offset, where, "an offset");
  uint64_t end = natural(offsets[1], ErrorKind::offset, where, "an offset");
  if (begin > end) throw Error(ErrorKind::offset, str(where, ": data_offsets [", begin, ", ", end, "] run backwards"));
  if (end > static_cast<uint64_t>(data_size))
    throw Error(ErrorKind::truncated,
                str(where, ": its data ends at byte ", end, " of a data section of ", data_size, " bytes"));
  t.offset = data_begin + static_cast<int64_t>(begin);
  t.bytes = static_cast<int64_t>(end - begin);
  if (int64_t expected = byte_count(t.shape, row->bits, where); expected != t.bytes)
    throw Error(ErrorKind::shape,
                str(where, ": shape and dtype ask for ", expected, " bytes, data_offsets give ", t.bytes));
  return t;
}

// The tensors must tile the data section from its first to its last byte.
void check_tiling(const std::string& path, std::vector<StoredTensor>& tensors, int64_t data_begin, int64_t file_end) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  int64_t at = data_begin;
  for (const StoredTensor& t : tensors) {
    if (t.offset != at)
      throw Error(ErrorKind::offset, str(where_of(path, t.name), ": its data begins at byte ", t.offset, ", expected ",
                                         at, t.offset < at ? " (overlap)" : " (hole)"));
    at += t.bytes;
  }
  if (at != file_end) throw Error(ErrorKind::size, str(path, ": ", file_end - at, " bytes after the last tensor"));
}

std::map<std::string, std::string> read_index(const std::string& path) {
  Json json = read_json(path, kIndexLimit);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    throw Error(ErrorKind::header_json, str(path, ": expected an object with weight_map"));
  std::map<std::string, std::string> shard_of;
  for (const auto& [name, file] : json["weight_map"].items()) {
    if (!file.is_string())
      throw Error(ErrorKind::header_json, str(where_of(path, name), ": the shard's name must be a string"));
    std::string shard = file.get<std::string>();
    bool plain = !shard.empty() && shard[0] != '.' && shard.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
    if (!plain)
      throw Error(ErrorKind::path, str(where_of(path, name), ": shard \"", printable(shard),
                                       "\" must be a plain file name in the same directory"));
    shard_of[name] = shard;
  }
  return shard_of;
}

float bits_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
uint32_t float_as_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

int64_t count_of(const TensorToStore& tensor) {
  int64_t n = 1;
  for (int64_t size : tensor.shape) n *= size;
  return n;
}

struct WeightFile {
  std::string file;
  size_t first, count;
};

// Shards in order of the tensors; each holds at least one.
std::vector<WeightFile> plan_shards(const std::vector<TensorToStore>& tensors, int64_t width, int64_t shard_bytes) {
  std::vector<WeightFile> shards;
  int64_t filled = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t bytes = width * count_of(tensors[i]);
    if (shards.empty() || filled + bytes > shard_bytes) {
      shards.push_back({"", i, 0});
      filled = 0;
    }
    ++shards.back().count;
    filled += bytes;
  }
  auto five = [](size_t n) { return std::string(5 - std::min<size_t>(5, str(n).size()), '0') + str(n); };
  for (size_t s = 0; s < shards.size(); ++s)
    shards[s].file = shards.size() == 1 ? "model.safetensors"
                                        : str("model-", five(s + 1), "-of-", five(shards.size()), ".safetensors");
  return shards;
}

bool is_float(StoredType type) {
  return type == StoredType::f32 || type == StoredType::f16 || type == StoredType::bf16;
}

// n values of f32, f16 or bf16 from `at` on.
void widen(const void* data, StoredType type, int64_t at, int64_t n, float* out) {
  if (type == StoredType::f32) {
    std::copy_n(static_cast<const float*>(data) + at, n, out);
    return;
  }
  const auto* bits = static_cast<const uint16_t*>(data) + at;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = type == StoredType::f16 ? f32_of_f16(bits[i]) : bits_as_float(static_cast<uint32_t>(bits[i]) << 16);
  }
}

// Through f32 where `to` is another type than the data's.
void write_values(FileWriter& file, const TensorToStore& tensor, StoredType to) {
  const void* data = tensor.pieces ? nullptr : tensor.data();
  const int64_t count = count_of(tensor);
  UCAS_CHECK(data != nullptr || count == 0 || (tensor.pieces && tensor.type == StoredType::f32),
             "a tensor to write must have values");
  if (tensor.type == to && data != nullptr) return file.write(data, static_cast<size_t>(count * width_of(to)));
  UCAS_CHECK(is_float(tensor.type) && is_float(to), "only floating-point values are converted");
  std::vector<float> wide(static_cast<size_t>(std::min(count, kBlock)));
  std::vector<uint16_t> narrow(wide.size());
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t n = std::min(kBlock, count - at);
    data == nullptr ? tensor.pieces(at, n, wide.data()) : widen(data, tensor.type, at, n, wide.data());
    if (to == StoredType::f32) {
      file.write(wide.data(), static_cast<size_t>(n) * 4);
      continue;
    }
    for (int64_t i = 0; i < n; ++i) {
      const float value = wide[static_cast<size_t>(i)];
      narrow[static_cast<size_t>(i)] = to == StoredType::f16 ? f16_of_f32(value) : bf16_of_f32(value);
    }
    file.write(narrow.data(), static_cast<size_t>(n) * 2);
  }
}

StoredType stored_type(const std::string& torch_dtype) {
  StoredType type = torch_dtype == "float32"   ? StoredType::f32
                    : torch_dtype == "float16" ? StoredType::f16
                                               : StoredType::bf16;
  UCAS_CHECK(type != StoredType::bf16 || torch_dtype == "bfloat16",
             "the dtype must be one that read_model_config allows");
  return type;
}

// In `type`, or each tensor in its own where it is `other`.
void write_shard(const std::string& path, std::span<const TensorToStore> tensors, StoredType type) {
  const auto written = [type](const TensorToStore& t) { return type == StoredType::other ? t.type : type; };
  OrderedJson header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t at = 0;
  for (const TensorToStore& tensor : tensors) {
    const TypeRow& row = row_of(written(tensor));
    const int64_t end = at + count_of(tensor) * row.bits / 8;
    header[tensor.name] = {{"dtype", row.name}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data aligned to 8 bytes, as the reference writes it
  uint64_t length = text.size();
  FileWriter file(path);
  file.write(&length, 8);
  file.write(text);
  for (const TensorToStore& tensor : tensors) write_values(file, tensor, written(tensor));
  file.close();
}

}  // namespace

const char* dtype_of(StoredType type) { return row_of(type).name; }

int64_t StoredTensor::elements() const {
  int64_t n = 1;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;  // [2^56, 2^56, 0] must not overflow
  for (int64_t size : shape) n *= size;
  return n;
}

std::vector<StoredTensor> read_safetensors_header(const std::string& path) {
  refuse_lfs_pointer(path);
  int64_t size = file_size(path);
  if (size < 8) throw Error(ErrorKind::truncated, str(path, ": ", size, " bytes; a safetensors file begins with 8"));
  uint64_t length = 0;
  read_at(path, 0, &length, 8);
  if (length > static_cast<uint64_t>(kHeaderLimit))
    throw Error(ErrorKind::header_size, str(path, ": header of ", length, " bytes; at most ", kHeaderLimit));
  if (static_cast<int64_t>(length) > size - 8)
    throw Error(ErrorKind::header_size, str(path, ": header of ", length, " bytes in a file of ", size));
  std::string text(static_cast<size_t>(length), '\0');
  read_at(path, 8, text.data(), static_cast<int64_t>(length));
  Json header = parse_json(text, str(path, ": header"));
  if (!header.is_object()) throw Error(ErrorKind::header_json, str(path, ": the header must be an object"));
  if (header.size() > kTensorLimit) throw Error(ErrorKind::limit, str(path, ": ", header.size(), " tensors"));
  int64_t data_begin = 8 + static_cast<int64_t>(length);
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      bool strings = entry.is_null() || entry.is_object();
      strings = strings && std::all_of(entry.begin(), entry.end(), [](const Json& value) { return value.is_string(); });
      if (!strings) throw Error(ErrorKind::header_json, str(path, ": __metadata__ must map strings to strings"));
      continue;
    }
    tensors.push_back(read_entry(path, name, entry, data_begin, size - data_begin));
  }
  check_tiling(path, tensors, data_begin, size);
  return tensors;
}

std::vector<StoredTensor> read_sharded_headers(const std::string& index) {
  const std::string directory = std::filesystem::path(index).parent_path().string();
  std::map<std::string, std::string> shard_of = read_index(index);
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  std::vector<StoredTensor> all;
  for (const std::string& shard : shards)
    for (StoredTensor& t : read_safetensors_header(path_join(directory, shard))) {
      auto it = shard_of.find(t.name);
      if (it == shard_of.end() || it->second != shard)
        throw Error(ErrorKind::unexpected_tensor,
                    str(where_of(t.file, t.name), ": ", index, " does not place it in this shard"));
      all.push_back(std::move(t));
    }
  std::set<std::string> found;
  for (const StoredTensor& t : all) found.insert(t.name);
  for (const auto& [name, shard] : shard_of)
    if (!found.contains(name))
      throw Error(ErrorKind::missing_tensor,
                  str(where_of(path_join(directory, shard), name), ": promised by ", index, ", not in the file"));
  return all;
}

std::vector<StoredTensor> list_weights(const std::string& directory) {
  std::string single = path_join(directory, "model.safetensors");
  std::string index = path_join(directory, "model.safetensors.index.json");
  std::string adapter = path_join(directory, "adapter_model.safetensors");
  std::vector<StoredTensor> all;
  if (exists(adapter)) {
    all = read_safetensors_header(adapter);
  } else if (exists(single)) {
    all = read_safetensors_header(single);
  } else if (exists(index)) {
    all = read_sharded_headers(index);
  } else if (exists(path_join(directory, "pytorch_model.bin")) ||
             exists(path_join(directory, "pytorch_model.bin.index.json"))) {
    throw Error(ErrorKind::unsupported, str(directory,
                                            ": weights only as pytorch_model.bin (a pickle, which can run code); save "
                                            "the checkpoint as safetensors"));
  } else {
    throw Error(ErrorKind::path,
                str(printable(directory, 400), ": no model.safetensors and no model.safetensors.index.json"));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

void read_as_f32(const StoredTensor& tensor, float* out) {
  int64_t count = tensor.elements();
  if (!is_float(tensor.type))
    throw Error(ErrorKind::dtype,
                str(where_of(tensor.file, tensor.name), ": dtype ", tensor.dtype, "; ucas reads F32, F16 and BF16"));
  if (tensor.type == StoredType::f32) return read_at(tensor.file, tensor.offset, out, count * 4);
  std::vector<uint16_t> block(static_cast<size_t>(std::min(count, kBlock)));
  for (int64_t at = 0; at < count; at += kBlock) {
    int64_t n = std::min(kBlock, count - at);
    read_at(tensor.file, tensor.offset + at * 2, block.data(), n * 2);
    widen(block.data(), tensor.type, 0, n, out + at);
  }
}

void read_as_stored(const StoredTensor& tensor, void* out) { read_at(tensor.file, tensor.offset, out, tensor.bytes); }

void write_safetensors(const std::string& path, const std::vector<TensorToStore>& tensors) {
  write_shard(path, tensors, StoredType::other);
}

void write_weights(const std::string& directory, const std::vector<TensorToStore>& tensors,
                   const std::string& torch_dtype, int64_t shard_bytes) {
  StoredType type = stored_type(torch_dtype);
  const int64_t width = width_of(type);
  std::vector<WeightFile> shards = plan_shards(tensors, width, shard_bytes);
  OrderedJson map = OrderedJson::object();
  int64_t total = 0;
  for (const WeightFile& shard : shards) {
    const auto part = std::span(tensors).subspan(shard.first, shard.count);
    write_shard(path_join(directory, shard.file), part, type);
    for (const TensorToStore& tensor : part) {
      map[tensor.name] = shard.file;
      total += width * count_of(tensor);
    }
  }
  if (shards.size() == 1) return;
  OrderedJson index;
  index["metadata"] = {{"total_size", total}};
  index["weight_map"] = map;
  write_file(path_join(directory, "model.safetensors.index.json"), json_text(index, 2) + "\n");
}

float f32_of_f16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
  if (exponent == 31) return bits_as_float(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) return (sign != 0 ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
  return bits_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t f16_of_f32(float value) {
  uint32_t bits = float_as_bits(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                               // subnormal or zero
    float scaled = bits_as_float(magnitude) + 0.5f;  // ulp of 0.5 is 2^-24: the addition rounds to nearest even
    return static_cast<uint16_t>(sign | (float_as_bits(scaled) - 0x3f000000u));
  }
  uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

uint16_t bf16_of_f32(float value) {
  uint32_t bits = float_as_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);  // NaN
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace ucas
