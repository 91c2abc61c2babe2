// What expressions of a chat template are worth, with Python's rules: texts are sequences of code points, True == 1, a
// missing name is undefined until something is asked of it. Values do not change once made; only a namespace does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/str.h"
#include "base/text/json.h"
#include "text/jinja/jinja.h"
#include "text/unicode/unicode.h"

namespace ucas::jinja {

struct ListValue;
struct MapValue;
struct LoopValue;
struct MethodValue;
struct SpaceValue;  // namespace(); owned by the rendering, because it may hold itself
struct MacroValue;  // likewise

struct Undefined {
  std::string name;  // what is missing, for messages
};
struct None {};
struct FunctionValue {
  std::string name;
};

using TextPtr = std::shared_ptr<const MarkedText>;
using ListPtr = std::shared_ptr<const ListValue>;
using MapPtr = std::shared_ptr<const MapValue>;
using LoopPtr = std::shared_ptr<const LoopValue>;
using MethodPtr = std::shared_ptr<const MethodValue>;

using Value = std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, MapPtr, LoopPtr, MethodPtr,
                           FunctionValue, SpaceValue*, MacroValue*>;

struct ListValue {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
};
struct MapValue {
  std::vector<std::pair<Value, Value>> items;  // in order; keys are texts, numbers, booleans or none
  int depth = 1;
};
struct LoopValue {
  ListPtr list;
  size_t at = 0;
};
struct MethodValue {
  Value of;
  std::string name;
};
struct SpaceValue {
  std::vector<std::pair<std::string, Value>> items;
};

// Why rendering ends: caught by JinjaTemplate::render, which knows the line.
struct Fault {
  std::string what;
};
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Fault{str(parts...)};
}

// Counts what a rendering uses up, and ends it at the limit.
class Meter {
 public:
  explicit Meter(const JinjaLimits& limits) : limits_(limits) {}
  void steps(size_t count = 1);
  void bytes(size_t count);      // made
  void text_size(size_t bytes);  // of one text

 private:
  const JinjaLimits limits_;
  int64_t steps_ = 0, bytes_ = 0;
};

template <class T>
const T* as(const Value& value) {
  return std::get_if<T>(&value);
}
inline const MarkedText* as_text(const Value& value) {
  const TextPtr* text = as<TextPtr>(value);
  return text ? text->get() : nullptr;
}
bool is_undefined(const Value& value);
std::string kind_of(const Value& value);  // "text", "list": for messages

Value text_value(MarkedText text, Meter& meter);
Value text_value(std::string_view text, Meter& meter);  // of the template
Value list_value(std::vector<Value> items, Meter& meter, bool tuple = false);
Value map_value(std::vector<std::pair<Value, Value>> items, Meter& meter);
Value value_of(const OrderedJson& json, char origin, Meter& meter);

bool truth(const Value& value);
MarkedText str_of(const Value& value, Meter& meter);                   // Python's str()
MarkedText json_of(const Value& value, int64_t indent, Meter& meter);  // json.dumps(); indent < 0: on one line
bool equal(const Value& a, const Value& b, Meter& meter);
int compare(const Value& a, const Value& b, Meter& meter);  // -1, 0, 1; faults where Python would
bool contains(const Value& whole, const Value& part, Meter& meter);
// The items that a loop goes through: of a list, the keys of a map, the characters of a text.
ListPtr items_of(const Value& value, Meter& meter);
int64_t length_of(const Value& value, Meter& meter);
// value[key] and value.name; undefined where nothing is there.
Value item_of(const Value& value, const Value& key, Meter& meter);
Value attribute_of(const Value& value, const std::string& name, Meter& meter);
Value slice_of(const Value& value, const Value* begin, const Value* end, const Value* step, Meter& meter);
std::optional<int64_t> whole_of(const Value& value);  // of an integer or a boolean
std::optional<double> number_of(const Value& value);

// Of some items of a map: the value by this key, or nullptr. 1, 1.0 and true are one key, as in Python.
const Value* found_in(std::span<const std::pair<Value, Value>> items, const Value& key, Meter& meter);
// Steps for a search of `what` in `text`, which may have to compare all of it everywhere.
void charge_search(const std::string& text, const std::string& what, Meter& meter);
bool python_space(uint32_t code);
size_t characters(std::string_view text);

}  // namespace ucas::jinja
