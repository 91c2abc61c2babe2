#include "hf/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it is in memory");

constexpr int64_t kMetadataLimit = int64_t{512} << 20;  // bytes before the tensors' data
constexpr int64_t kMostEntries = 65'536, kMostElements = int64_t{8} << 20;
constexpr int64_t kKeyBytes = 1024, kTextBytes = int64_t{16} << 20, kAllTextBytes = int64_t{64} << 20;
constexpr int64_t kNameBytes = 256, kMostDimensions = 4;
constexpr int64_t kLargestAlignment = 65'536;
constexpr int64_t kWindow = int64_t{64} << 10;
constexpr GgufKind kLastKind = GgufKind::f64;

constexpr const char* kKindNames[] = {"uint8",   "int8", "uint16", "int16",  "uint32", "int32",  "float32",
                                      "boolean", "text", "array",  "uint64", "int64",  "float64"};
constexpr int64_t kKindBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
const char* name_of(GgufKind kind) { return kKindNames[static_cast<size_t>(kind)]; }
int64_t bytes_of(GgufKind kind) { return kKindBytes[static_cast<size_t>(kind)]; }

// The head of the file from front to end, through a small window.
class HeadReader {
 public:
  HeadReader(const std::string& path, int64_t at) : path_(path), size_(file_size(path)), at_(at) {}

  int64_t at() const { return at_; }
  int64_t left() const { return size_ - at_; }

  void take(void* out, int64_t bytes, const std::string& what) {
    claim(bytes, what);
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
      if (at_ < from_ || at_ >= from_ + static_cast<int64_t>(window_.size())) fill();
      const int64_t inside = at_ - from_, n = std::min(bytes, static_cast<int64_t>(window_.size()) - inside);
      std::memcpy(to, window_.data() + inside, static_cast<size_t>(n));
      at_ += n, to += n, bytes -= n;
    }
  }
  template <class T>
  T one(const std::string& what) {
    T value;
    take(&value, sizeof(T), what);
    return value;
  }
  void skip(int64_t bytes, const std::string& what) {
    claim(bytes, what);
    at_ += bytes;
  }
  // The length that stands before a text: within the limit, and in the file.
  int64_t length(int64_t most, const std::string& what) {
    const auto bytes = one<uint64_t>(what);
    if (bytes > static_cast<uint64_t>(left()))
      throw Error(ErrorKind::truncated, str(path_, ": ", what, ": ", bytes, " bytes, the file has ", left(), " left"));
    if (bytes > static_cast<uint64_t>(most))
      throw Error(ErrorKind::limit, str(path_, ": ", what, ": ", bytes, " bytes; at most ", most));
    return static_cast<int64_t>(bytes);
  }
  std::string text(int64_t most, const std::string& what) {
    std::string value(static_cast<size_t>(length(most, what)), '\0');
    take(value.data(), static_cast<int64_t>(value.size()), what);
    if (!valid_utf8(value)) throw Error(ErrorKind::utf8, str(path_, ": ", what, ": not UTF-8: ", printable(value)));
    return value;
  }

 private:
  void claim(int64_t bytes, const std::string& what) const {
    if (bytes > left())
      throw Error(ErrorKind::truncated, str(path_, ": the file ends at byte ", size_, ", within ", what));
    if (at_ + bytes > kMetadataLimit)
      throw Error(ErrorKind::limit, str(path_, ": ", what, ": metadata of more than ", human_bytes(kMetadataLimit)));
  }
  void fill() {
    from_ = at_;
    window_.resize(static_cast<size_t>(std::min(kWindow, size_ - at_)));
    read_at(path_, from_, window_.data(), static_cast<int64_t>(window_.size()));
  }

  const std::string& path_;
  int64_t size_, at_, from_ = 0;
  std::string window_;
};

GgufKind read_kind(HeadReader& head, const std::string& path, const std::string& what) {
  const auto kind = head.one<uint32_t>(what);
  if (kind > static_cast<uint32_t>(kLastKind))
    throw Error(ErrorKind::gguf,
                str(path, ": ", what, ": type ", kind, "; expected 0 .. ", static_cast<uint32_t>(kLastKind)));
  return static_cast<GgufKind>(kind);
}

GgufArray read_array(HeadReader& head, const std::string& path, const std::string& what) {
  GgufArray array;
  array.of = read_kind(head, path, what);
  if (array.of == GgufKind::array)
    throw Error(ErrorKind::gguf, str(path, ": ", what, ": an array of arrays is not read"));
  const auto count = head.one<uint64_t>(what);
  const uint64_t least = array.of == GgufKind::text ? 8 : static_cast<uint64_t>(bytes_of(array.of));
  if (count > static_cast<uint64_t>(head.left()) / least)
    throw Error(ErrorKind::truncated,
                str(path, ": ", what, ": ", count, " elements, the file has ", head.left(), " bytes left"));
  if (count > static_cast<uint64_t>(kMostElements))
    throw Error(ErrorKind::limit, str(path, ": ", what, ": ", count, " elements; at most ", kMostElements));
  array.count = static_cast<int64_t>(count);
  array.offset = head.at();
  if (array.of != GgufKind::text) {
    head.skip(array.count * bytes_of(array.of), what);
    return array;
  }
  for (int64_t i = 0; i < array.count; ++i) head.skip(head.length(kTextBytes, what), what);
  return array;
}

bool read_truth(HeadReader& head, const std::string& path, const std::string& what) {
  const auto byte = head.one<uint8_t>(what);
  if (byte > 1) throw Error(ErrorKind::gguf, str(path, ": ", what, ": a boolean of ", byte, "; expected 0 or 1"));
  return byte == 1;
}

template <class Int>
GgufValue whole(Int value) {
  if (value < 0) return static_cast<int64_t>(value);
  return static_cast<uint64_t>(value);
}

GgufValue read_value(HeadReader& head, const std::string& path, const std::string& what) {
  switch (read_kind(head, path, what)) {
    case GgufKind::u8:
      return whole(head.one<uint8_t>(what));
    case GgufKind::i8:
      return whole(head.one<int8_t>(what));
    case GgufKind::u16:
      return whole(head.one<uint16_t>(what));
    case GgufKind::i16:
      return whole(head.one<int16_t>(what));
    case GgufKind::u32:
      return whole(head.one<uint32_t>(what));
    case GgufKind::i32:
      return whole(head.one<int32_t>(what));
    case GgufKind::u64:
      return whole(head.one<uint64_t>(what));
    case GgufKind::i64:
      return whole(head.one<int64_t>(what));
    case GgufKind::f32:
      return head.one<float>(what);
    case GgufKind::f64:
      return head.one<double>(what);
    case GgufKind::boolean:
      return read_truth(head, path, what);
    case GgufKind::text:
      return head.text(kTextBytes, what);
    case GgufKind::array:
      return read_array(head, path, what);
  }
  UCAS_CHECK(false, "the GGUF kind must be one that read_kind accepts");
}

// The shortest text that reads back as the same float, as a double: 1e-5 where f32 holds 9.99999975e-06.
double as_written(float value) {
  char text[48];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double wide = value;
  std::from_chars(text, end, wide);
  return wide;
}

// How many entries there can be in the rest of the file, if each takes `least` bytes.
int64_t read_count(HeadReader& head, const std::string& path, const char* what, uint64_t least) {
  const auto count = head.one<uint64_t>(str("the number of ", what));
  if (count > static_cast<uint64_t>(head.left()) / least)
    throw Error(ErrorKind::truncated,
                str(path, ": ", count, " ", what, " in a file with ", head.left(), " bytes left"));
  if (count > static_cast<uint64_t>(kMostEntries))
    throw Error(ErrorKind::limit, str(path, ": ", count, " ", what, "; at most ", kMostEntries));
  return static_cast<int64_t>(count);
}

void check_version(HeadReader& head, const std::string& path) {
  char magic[4];
  head.take(magic, 4, "its first four bytes");
  if (std::string_view(magic, 4) != kGgufMagic)
    throw Error(ErrorKind::gguf, str(path, ": begins with \"", printable(std::string_view(magic, 4)),
                                     "\"; a GGUF file with \"", kGgufMagic, "\""));
  const auto version = head.one<uint32_t>("the version");
  if (version == 2 || version == 3) return;
  const bool swapped = version != 0 && (version & 0xffffu) == 0;
  throw Error(ErrorKind::unsupported,
              str(path, swapped ? ": a big-endian file; ucas reads little-endian ones (gguf-convert-endian FILE little)"
                                : str(": GGUF version ", version, "; ucas reads 2 and 3")));
}

std::string tensor_place(const std::string& path, const std::string& name) {
  return str(path, ": tensor ", printable(name));
}

// All but where its data lies in the file: `offset` counts from the end of the head.
GgufTensor read_tensor(HeadReader& head, const std::string& path) {
  GgufTensor t;
  t.name = head.text(kNameBytes, "the name of a tensor");
  const std::string where = tensor_place(path, t.name), what = str("tensor ", printable(t.name));
  const auto dimensions = head.one<uint32_t>(what);
  if (dimensions < 1 || dimensions > kMostDimensions)
    throw Error(ErrorKind::shape, str(where, ": ", dimensions, " dimensions; expected 1 .. ", kMostDimensions));
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = head.one<uint64_t>(what);
    if (size == 0 || __builtin_mul_overflow(elements, size, &elements) || elements > (uint64_t{1} << 56))
      throw Error(ErrorKind::shape,
                  str(where, ": size ", size, size == 0 ? "" : ": the product of its shape overflows"));
    t.shape.insert(t.shape.begin(), static_cast<int64_t>(size));
  }
  const auto type = head.one<uint32_t>(what);
  t.type = find_gguf_type(type);
  if (t.type == nullptr) {
    const std::string name = gguf_type_name(type);
    throw Error(name == str(type) ? ErrorKind::dtype : ErrorKind::unsupported,
                str(where, ": type ", name, "; ucas reads ", gguf_types()));
  }
  if (t.shape.back() % t.type->block_values != 0)
    throw Error(ErrorKind::shape, str(where, ": rows of ", t.shape.back(), " values; ", t.type->name, " has blocks of ",
                                      t.type->block_values));
  t.bytes = static_cast<int64_t>(elements) / t.type->block_values * t.type->block_bytes;
  const auto offset = head.one<uint64_t>(what);
  if (offset > (uint64_t{1} << 62)) throw Error(ErrorKind::offset, str(where, ": its data begins at byte ", offset));
  t.offset = static_cast<int64_t>(offset);
  return t;
}

int64_t aligned(int64_t at, int64_t alignment) { return (at + alignment - 1) / alignment * alignment; }

// As GGML demands it: each tensor begins where the one before ends, rounded up to the alignment.
void place_tensors(const std::string& path, int64_t data, int64_t alignment, std::vector<GgufTensor>& tensors) {
  std::ranges::sort(tensors, [](const GgufTensor& a, const GgufTensor& b) {
    return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
  });
  const int64_t size = file_size(path);
  int64_t next = 0;
  for (GgufTensor& t : tensors) {
    if (t.offset != next)
      throw Error(ErrorKind::offset,
                  str(tensor_place(path, t.name), ": its data begins at byte ", t.offset,
                      " of the data section, expected ", next, t.offset < next ? " (overlap)" : " (hole)"));
    t.offset += data;
    if (t.bytes > size - t.offset)
      throw Error(ErrorKind::truncated, str(tensor_place(path, t.name), ": its data ends at byte ", t.offset + t.bytes,
                                            " of a file of ", size, " bytes"));
    next = aligned(next + t.bytes, alignment);
  }
}

std::string value_text(const GgufValue& value) {
  return std::visit(
      [](const auto& v) {
        using Value = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<Value, std::string>)
          return str("\"", printable(v, 80), "\"");
        else if constexpr (std::is_same_v<Value, GgufArray>)
          return str("an array of ", v.count, " ", name_of(v.of));
        else
          return str(v);
      },
      value);
}

}  // namespace

int64_t GgufTensor::elements() const {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  return n;
}

GgufFile::GgufFile(const std::string& path) : path_(path) {
  HeadReader head(path_, 0);
  check_version(head, path);
  const int64_t tensors = read_count(head, path, "tensors", 32), entries = read_count(head, path, "keys", 13);
  int64_t text_bytes = 0;
  for (int64_t i = 0; i < entries; ++i) {
    const std::string key = head.text(kKeyBytes, str("key ", i + 1, " of ", entries));
    GgufValue value = read_value(head, path, str("the value of ", printable(key)));
    if (const auto* text = std::get_if<std::string>(&value)) text_bytes += static_cast<int64_t>(text->size());
    if (text_bytes > kAllTextBytes)
      throw Error(ErrorKind::limit, str(path, ": texts of more than ", human_bytes(kAllTextBytes), " in its metadata"));
    if (!values_.emplace(key, std::move(value)).second)
      throw Error(ErrorKind::dup_key, str(path, ": the key \"", printable(key), "\" stands twice"));
  }
  const int64_t alignment = integer("general.alignment", 1, kLargestAlignment).value_or(32);
  if (!std::has_single_bit(static_cast<uint64_t>(alignment)))
    refuse(ErrorKind::gguf, "general.alignment", "expected a power of two");
  for (int64_t i = 0; i < tensors; ++i) tensors_.push_back(read_tensor(head, path));
  place_tensors(path, aligned(head.at(), alignment), alignment, tensors_);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!by_name_.emplace(tensors_[i].name, i).second)
      throw Error(ErrorKind::dup_key, str(path, ": tensor ", printable(tensors_[i].name), " stands twice"));
  }
}

const GgufTensor* GgufFile::tensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void GgufFile::read(const GgufTensor& tensor, int64_t first, int64_t count, float* out) const {
  const GgufType& type = *tensor.type;
  UCAS_CHECK(first % type.block_values == 0 && count % type.block_values == 0,
             "GGUF tensors must be read in whole blocks");
  UCAS_CHECK(first >= 0 && count >= 0 && first + count <= tensor.elements(),
             "the range read must lie inside the tensor");
  const int64_t blocks = count / type.block_values;
  std::vector<uint8_t> bytes(static_cast<size_t>(blocks * type.block_bytes));
  read_at(path_, tensor.offset + first / type.block_values * type.block_bytes, bytes.data(),
          static_cast<int64_t>(bytes.size()));
  type.widen(bytes.data(), blocks, out);
}

std::vector<std::string> GgufFile::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : values_) names.push_back(key);
  return names;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void GgufFile::refuse(ErrorKind kind, std::string_view key, const std::string& expected) const {
  const GgufValue* value = find(key);
  throw Error(
      kind, str(path_, ": ", printable(key), " = ", value == nullptr ? "nothing" : value_text(*value), ": ", expected));
}

void GgufFile::missing(std::string_view key) const {
  throw Error(ErrorKind::gguf, str(path_, ": the key ", key, " is missing"));
}

std::optional<std::string> GgufFile::text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  refuse(ErrorKind::gguf, key, "expected a text");
}

std::optional<int64_t> GgufFile::integer(std::string_view key, int64_t low, int64_t high) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<int64_t> found;
  if (const auto* number = std::get_if<int64_t>(value)) found = *number;
  if (const auto* number = std::get_if<uint64_t>(value); number != nullptr && std::in_range<int64_t>(*number))
    found = static_cast<int64_t>(*number);
  if (!found || *found < low || *found > high)
    refuse(ErrorKind::gguf, key, str("expected a whole number of ", low, " .. ", high));
  return found;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<double> found;
  if (const auto* narrow = std::get_if<float>(value)) found = as_written(*narrow);
  if (const auto* wide = std::get_if<double>(value)) found = *wide;
  if (const auto* whole = std::get_if<uint64_t>(value)) found = static_cast<double>(*whole);
  if (const auto* whole = std::get_if<int64_t>(value)) found = static_cast<double>(*whole);
  if (!found || !std::isfinite(*found)) refuse(ErrorKind::gguf, key, "expected a finite number");
  return found;
}

std::optional<bool> GgufFile::truth(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* truth = std::get_if<bool>(value)) return *truth;
  refuse(ErrorKind::gguf, key, "expected a boolean");
}

std::vector<std::string> GgufFile::texts(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->of != GgufKind::text) refuse(ErrorKind::gguf, key, "expected an array of texts");
  HeadReader head(path_, array->offset);
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(array->count));
  int64_t bytes = 0;
  for (int64_t i = 0; i < array->count; ++i) {
    texts.push_back(head.text(kTextBytes, str(key, "[", i, "]")));
    bytes += static_cast<int64_t>(texts.back().size());
    if (bytes > kAllTextBytes) refuse(ErrorKind::limit, key, str("texts of more than ", human_bytes(kAllTextBytes)));
  }
  return texts;
}

std::vector<int64_t> GgufFile::integers(std::string_view key, int64_t low, int64_t high) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || (array->of != GgufKind::i32 && array->of != GgufKind::u32))
    refuse(ErrorKind::gguf, key, "expected an array of int32 or uint32");
  std::vector<uint32_t> bits(static_cast<size_t>(array->count));
  read_at(path_, array->offset, bits.data(), array->count * 4);
  std::vector<int64_t> values;
  values.reserve(bits.size());
  for (uint32_t b : bits) {
    const int64_t n = array->of == GgufKind::i32 ? int64_t{static_cast<int32_t>(b)} : int64_t{b};
    if (n < low || n > high)
      throw Error(ErrorKind::gguf,
                  str(path_, ": ", key, "[", values.size(), "] = ", n, ": expected ", low, " .. ", high));
    values.push_back(n);
  }
  return values;
}

std::vector<float> GgufFile::floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->of != GgufKind::f32) refuse(ErrorKind::gguf, key, "expected an array of float32");
  std::vector<float> values(static_cast<size_t>(array->count));
  read_at(path_, array->offset, values.data(), array->count * 4);
  const auto bad = std::ranges::find_if(values, [](float x) { return std::isnan(x); });
  if (bad != values.end())
    throw Error(ErrorKind::gguf, str(path_, ": ", key, "[", bad - values.begin(), "] is not a number"));
  return values;
}

}  // namespace ucas
