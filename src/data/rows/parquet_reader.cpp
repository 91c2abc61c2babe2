// libucas_parquet.so: what src/data/rows/jsonl.h says, by Arrow. A file is read by batches of rows; what Arrow
// allocates is bounded, so that a page or a footer that claims to be large ends with an error.
#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr int64_t kMemoryLimit = int64_t{384} << 20;     // bytes that Arrow may hold at once, and as many more as
constexpr int64_t kPerByte = 2;                          // this times the file
constexpr int32_t kFooterTextLimit = int32_t{64} << 20;  // bytes
constexpr int32_t kFooterListLimit = 100'000;            // columns, row groups ...
constexpr int64_t kRowLimit = 100'000'000;
constexpr int64_t kBatchRows = 256;
constexpr int64_t kTextLimit = int64_t{16} << 20;  // bytes of one text
constexpr int64_t kValue = 8;                      // bytes that a value counts for, besides its text
constexpr int kDepthLimit = 32;                    // types within one another

[[noreturn]] void refuse_status(const std::string& shown, const arrow::Status& status) {
  ErrorKind kind = status.IsOutOfMemory() || status.IsCapacityError() ? ErrorKind::limit : ErrorKind::parquet;
  throw Error(kind, str(shown, ": not a Parquet file that can be read: ", printable(status.ToString(), 300)));
}

template <class T>
T value_or_refuse(const std::string& shown, arrow::Result<T> result) {
  if (!result.ok()) refuse_status(shown, result.status());
  return std::move(result).ValueUnsafe();
}

bool is_read(const arrow::DataType& type, int depth = 0) {
  if (depth > kDepthLimit) return false;
  using enum arrow::Type::type;
  const auto id = type.id();
  constexpr arrow::Type::type kPlain[] = {NA, BOOL, FLOAT, DOUBLE, STRING, LARGE_STRING, STRING_VIEW};
  constexpr arrow::Type::type kNested[] = {LIST, LARGE_LIST, FIXED_SIZE_LIST, STRUCT, MAP, DICTIONARY};
  if (arrow::is_integer(id) || std::ranges::find(kPlain, id) != std::end(kPlain)) return true;
  if (std::ranges::find(kNested, id) == std::end(kNested)) return false;
  if (type.id() == arrow::Type::DICTIONARY) {
    return is_read(*static_cast<const arrow::DictionaryType&>(type).value_type(), depth + 1);
  }
  if (type.id() == arrow::Type::MAP) {
    const auto& map = static_cast<const arrow::MapType&>(type);
    return map.key_type()->id() == arrow::Type::STRING && is_read(*map.item_type(), depth + 1);
  }
  for (const auto& field : type.fields()) {
    if (!is_read(*field->type(), depth + 1)) return false;
  }
  return true;
}

template <class Array>
auto plain_value(const arrow::Array& array, int64_t i) {
  return static_cast<const Array&>(array).Value(i);
}

// What rows come to: one row as values of JSON, all together as bytes.
struct Bounds {
  const std::string& shown;
  const std::string& where;
  JsonMemory memory;
  int64_t& left;

  void value() {
    memory.take(JsonMemory::kKey);
    count(kValue);
  }
  Json text(std::string_view value) {
    if (std::ssize(value) > kTextLimit) {
      throw Error(ErrorKind::limit, str(where, ": a text of ", human_bytes(static_cast<double>(value.size())),
                                        ", the limit is ", human_bytes(static_cast<double>(kTextLimit))));
    }
    count(std::ssize(value));
    return std::string(value);
  }
  void count(int64_t bytes) {
    left -= bytes;
    if (left >= 0) return;
    throw Error(ErrorKind::limit,
                str(shown, ": rows that come to more than a hundred times the file; write them as plain JSON ",
                    "Lines if they are meant"));
  }
};

Json real_value(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// 3.14, not 3.140000104904175: the shortest text that is the same number of its width.
Json real_value(float value) {
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  double read = 0;
  std::from_chars(digits, written.ptr, read);
  return real_value(std::isfinite(value) ? read : static_cast<double>(value));
}

Json json_value(const arrow::Array& array, int64_t i, Bounds& bounds);

Json list_of_values(const arrow::Array& values, int64_t begin, int64_t end, Bounds& bounds) {
  Json list = Json::array();
  for (int64_t i = begin; i < end; ++i) list.push_back(json_value(values, i, bounds));
  return list;
}

template <class Array>
Json list_value(const arrow::Array& array, int64_t i, Bounds& bounds) {
  const auto& list = static_cast<const Array&>(array);
  return list_of_values(*list.values(), list.value_offset(i), list.value_offset(i) + list.value_length(i), bounds);
}

Json struct_value(const arrow::StructArray& array, int64_t i, Bounds& bounds) {
  Json out = Json::object();
  for (int field = 0; field < array.num_fields(); ++field) {
    out[array.struct_type()->field(field)->name()] = json_value(*array.field(field), i, bounds);
  }
  return out;
}

Json map_value(const arrow::MapArray& array, int64_t i, Bounds& bounds) {
  Json out = Json::object();
  const auto& keys = static_cast<const arrow::StringArray&>(*array.keys());
  for (int64_t at = array.value_offset(i); at < array.value_offset(i) + array.value_length(i); ++at) {
    out[keys.GetString(at)] = json_value(*array.items(), at, bounds);
  }
  return out;
}

// A list of nulls takes a bit of memory for each in Arrow, and sixteen bytes here.
Json json_value(const arrow::Array& array, int64_t i, Bounds& bounds) {
  bounds.value();
  if (array.IsNull(i)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return plain_value<arrow::BooleanArray>(array, i);
    case arrow::Type::INT8:
      return plain_value<arrow::Int8Array>(array, i);
    case arrow::Type::INT16:
      return plain_value<arrow::Int16Array>(array, i);
    case arrow::Type::INT32:
      return plain_value<arrow::Int32Array>(array, i);
    case arrow::Type::INT64:
      return plain_value<arrow::Int64Array>(array, i);
    case arrow::Type::UINT8:
      return plain_value<arrow::UInt8Array>(array, i);
    case arrow::Type::UINT16:
      return plain_value<arrow::UInt16Array>(array, i);
    case arrow::Type::UINT32:
      return plain_value<arrow::UInt32Array>(array, i);
    case arrow::Type::UINT64:
      return plain_value<arrow::UInt64Array>(array, i);
    case arrow::Type::FLOAT:
      return real_value(plain_value<arrow::FloatArray>(array, i));
    case arrow::Type::DOUBLE:
      return real_value(plain_value<arrow::DoubleArray>(array, i));
    case arrow::Type::STRING:
      return bounds.text(static_cast<const arrow::StringArray&>(array).GetView(i));
    case arrow::Type::LARGE_STRING:
      return bounds.text(static_cast<const arrow::LargeStringArray&>(array).GetView(i));
    case arrow::Type::STRING_VIEW:
      return bounds.text(static_cast<const arrow::StringViewArray&>(array).GetView(i));
    case arrow::Type::LIST:
      return list_value<arrow::ListArray>(array, i, bounds);
    case arrow::Type::LARGE_LIST:
      return list_value<arrow::LargeListArray>(array, i, bounds);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_value<arrow::FixedSizeListArray>(array, i, bounds);
    case arrow::Type::STRUCT:
      return struct_value(static_cast<const arrow::StructArray&>(array), i, bounds);
    case arrow::Type::MAP:
      return map_value(static_cast<const arrow::MapArray&>(array), i, bounds);
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return json_value(*coded.dictionary(), coded.GetValueIndex(i), bounds);
    }
    default:
      return nullptr;
  }
}

std::unique_ptr<parquet::arrow::FileReader> open_parquet(const std::string& path, const std::string& shown,
                                                         arrow::MemoryPool& pool) {
  parquet::ReaderProperties properties(&pool);
  properties.set_thrift_string_size_limit(kFooterTextLimit);
  properties.set_thrift_container_size_limit(kFooterListLimit);
  properties.set_schema_depth_limit(kDepthLimit * 3);  // a list is three levels
  properties.set_page_checksum_verification(true);
  parquet::ArrowReaderProperties rows(false);  // no threads of Arrow's
  rows.set_batch_size(kBatchRows);
  rows.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  const auto file = value_or_refuse(shown, arrow::io::ReadableFile::Open(path, &pool));
  if (const arrow::Status status = builder.Open(file, properties); !status.ok()) refuse_status(shown, status);
  return value_or_refuse(shown, builder.memory_pool(&pool)->properties(rows)->Build());
}

// The columns that are read, by their places in the file.
std::vector<int> columns_of(const std::string& shown, parquet::arrow::FileReader& reader) {
  std::shared_ptr<arrow::Schema> schema;
  if (const arrow::Status status = reader.GetSchema(&schema); !status.ok()) refuse_status(shown, status);
  std::vector<int> columns;
  std::vector<std::string> left_out;
  const parquet::SchemaDescriptor& leaves = *reader.parquet_reader()->metadata()->schema();
  for (int leaf = 0; leaf < leaves.num_columns(); ++leaf) {
    const std::string& name = leaves.GetColumnRoot(leaf)->name();
    const std::vector<int> found = schema->GetAllFieldIndices(name);
    if (found.size() > 1) throw Error(ErrorKind::schema, str(shown, ": duplicate column \"", printable(name), "\""));
    const bool read = found.size() == 1 && is_read(*schema->field(found[0])->type());
    if (read) {
      columns.push_back(leaf);
    } else if (left_out.empty() || left_out.back() != printable(name)) {
      left_out.push_back(printable(name));
    }
  }
  if (!left_out.empty()) {
    warn(str(shown, ": columns of types that are not read (only texts, numbers, booleans, lists and structs are): ",
             printable(join(left_out, ", "), 300)));
  }
  if (columns.empty()) throw Error(ErrorKind::schema, str(shown, ": no column of a type that is read"));
  return columns;
}

void read_rows(const std::string& path, int64_t most, const std::function<void(int64_t, Json)>& take) {
  const std::string shown = printable(path, 400);
  arrow::MemoryPool* all = arrow::default_memory_pool();
  arrow::CappedMemoryPool pool(all, all->bytes_allocated() + kMemoryLimit + kPerByte * file_size(path));
  const auto reader = open_parquet(path, shown, pool);
  const std::vector<int> columns = columns_of(shown, *reader);
  const int64_t rows = reader->parquet_reader()->metadata()->num_rows();
  if (rows < 0 || rows > kRowLimit) {
    throw Error(ErrorKind::limit, str(shown, ": ", grouped(rows), " rows, the limit is ", grouped(kRowLimit)));
  }
  std::vector<int> groups(static_cast<size_t>(reader->num_row_groups()));
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
  const auto batches = value_or_refuse(shown, reader->GetRecordBatchReader(groups, columns));
  int64_t row = 0;
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (const arrow::Status status = batches->ReadNext(&batch); !status.ok()) refuse_status(shown, status);
    if (!batch) break;
    // Offsets and lengths that a broken file could set are checked before they are followed; texts must be UTF-8.
    if (const arrow::Status status = batch->ValidateFull(); !status.ok()) refuse_status(shown, status);
    for (int64_t i = 0; i < batch->num_rows(); ++i) {
      const std::string where = str(shown, ":", row + 1);
      Bounds bounds{shown, where, JsonMemory(0, where), most};
      Json value = Json::object();
      for (int column = 0; column < batch->num_columns(); ++column) {
        value[batch->column_name(column)] = json_value(*batch->column(column), i, bounds);
      }
      take(++row, std::move(value));
    }
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void ucas_read_parquet(
    const std::string* path, int64_t most, const std::function<void(int64_t, Json)>* take) {
  try {
    read_rows(*path, most, *take);
  } catch (const parquet::ParquetException& error) {
    throw Error(ErrorKind::parquet,
                str(printable(*path, 400), ": not a Parquet file that can be read: ", printable(error.what(), 300)));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::limit, str(printable(*path, 400), ": more memory than there is"));
  }
}

}  // namespace ucas
