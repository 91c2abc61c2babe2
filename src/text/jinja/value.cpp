#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/unicode/unicode.h"

namespace ucas::jinja {

namespace {

constexpr int kDeepestValue = 100;  // lists within lists
constexpr size_t kShownName = 100;  // bytes of a name that a message may show

int depth_of(const Value& value) {
  if (const ListPtr* list = as<ListPtr>(value)) return (*list)->depth;
  if (const MapPtr* map = as<MapPtr>(value)) return (*map)->depth;
  if (const MethodPtr* method = as<MethodPtr>(value)) return depth_of((*method)->of);
  if (const LoopPtr* loop = as<LoopPtr>(value)) return (*loop)->list->depth;
  return 0;
}

int checked_depth(int deepest) {
  if (deepest >= kDeepestValue) fail("a list or a map more than ", kDeepestValue, " deep");
  return deepest + 1;
}

// As Python prints it: the shortest digits that read back, 1e+16 and above and below 1e-4 with an exponent.
std::string text_of_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string all(buffer, end);
  const size_t e = all.find('e');
  const int exponent = std::stoi(all.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return all;
  const auto stop = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string plain(buffer, stop);
  return plain.find('.') == std::string::npos ? plain + ".0" : plain;
}

// Writes values as Python's repr() or as JSON, every character of a text with its origin.
class ValueWriter {
 public:
  ValueWriter(bool json, int64_t indent, Meter& meter) : json_(json), indent_(indent), meter_(meter) {}

  void write(const Value& value) {
    meter_.steps();
    if (as<None>(value)) return own(json_ ? "null" : "None");
    if (const bool* flag = as<bool>(value)) return own(json_ ? (*flag ? "true" : "false") : (*flag ? "True" : "False"));
    if (const int64_t* whole = as<int64_t>(value)) return own(str(*whole));
    if (const double* real = as<double>(value)) return own(real_text(*real));
    if (const MarkedText* text = as_text(value)) return quoted(*text);
    if (const ListPtr* list = as<ListPtr>(value)) return write_list(**list);
    if (const MapPtr* map = as<MapPtr>(value)) return write_map(**map);
    if (json_) fail("tojson of ", kind_of(value));
    if (is_undefined(value)) return own("Undefined");
    fail(kind_of(value), " has no text");
  }
  MarkedText take() {
    meter_.bytes(out_.size());
    meter_.text_size(out_.size());
    return std::move(out_);
  }

 private:
  void own(std::string_view text) { out_.append(text, MarkedText::kTemplate); }
  std::string real_text(double value) const {
    if (json_ && std::isnan(value)) return "NaN";
    if (json_ && std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return text_of_real(value);
  }

  void quoted(const MarkedText& value) {
    const std::string& text = value.text;
    meter_.steps(text.size() / 16);
    const bool doubled = json_ || (text.find('\'') != std::string::npos && text.find('"') == std::string::npos);
    const char quote = doubled ? '"' : '\'';
    out_.append(std::string_view(&quote, 1), MarkedText::kTemplate);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      constexpr char kDigits[] = "0123456789abcdef";
      if (c == '\\' || text[i] == quote) {
        out_.append(std::string{'\\', text[i]}, value.origin[i]);
      } else if (c == '\n' || c == '\r' || c == '\t' || (json_ && (c == '\b' || c == '\f'))) {
        const char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c == '\b' ? 'b' : 'f';
        out_.append(std::string{'\\', letter}, value.origin[i]);
      } else if (c < 0x20 || (!json_ && c == 0x7f)) {
        out_.append(str(json_ ? "\\u00" : "\\x", kDigits[c >> 4], kDigits[c & 15]), value.origin[i]);
      } else {
        out_.append(std::string_view(&text[i], 1), value.origin[i]);
      }
    }
    out_.append(std::string_view(&quote, 1), MarkedText::kTemplate);
  }

  void line() {
    if (indent_ >= 0) own("\n" + std::string(static_cast<size_t>(level_ * indent_), ' '));
  }
  template <class Each>
  void series(size_t count, const char* open, const char* close, const Each& each) {
    own(open);
    ++level_;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) own(indent_ >= 0 ? "," : ", ");
      line();
      each(i);
      meter_.text_size(out_.size());
    }
    --level_;
    if (count > 0) line();
    own(close);
  }
  void write_list(const ListValue& list) {
    const bool round = list.tuple && !json_;
    series(list.items.size(), round ? "(" : "[", round ? (list.items.size() == 1 ? ",)" : ")") : "]",
           [&](size_t i) { write(list.items[i]); });
  }
  // JSON has texts alone for keys.
  void write_key(const Value& key) {
    const bool made = json_ && as_text(key) == nullptr;
    if (made) own("\"");
    write(key);
    if (made) own("\"");
  }
  void write_map(const MapValue& map) {
    series(map.items.size(), "{", "}", [&](size_t i) {
      write_key(map.items[i].first);
      own(": ");
      write(map.items[i].second);
    });
  }

  const bool json_;
  const int64_t indent_;
  Meter& meter_;
  int64_t level_ = 0;
  MarkedText out_;
};

size_t bytes_of_char(std::string_view text, size_t at) { return char_at(text, at).length; }

// Where the characters of a text begin, and its end.
std::vector<size_t> places_of(std::string_view text, Meter& meter) {
  meter.steps(text.size() / 16);
  meter.bytes(text.size() * sizeof(size_t));
  std::vector<size_t> places;
  for (size_t at = 0; at < text.size(); at += bytes_of_char(text, at)) places.push_back(at);
  places.push_back(text.size());
  return places;
}

// The places that value[begin:end:step] takes, as Python's slice.indices().
std::vector<int64_t> slice_places(int64_t length, const Value* begin, const Value* end, const Value* step) {
  const auto bound = [&](const Value* value, const char* what) -> std::optional<int64_t> {
    if (value == nullptr || as<None>(*value)) return std::nullopt;
    const std::optional<int64_t> whole = whole_of(*value);
    if (!whole) fail("the ", what, " of a slice is ", kind_of(*value), ", expected a whole number");
    return whole;
  };
  const int64_t by = bound(step, "step").value_or(1);
  if (by == 0) fail("the step of a slice is 0");
  const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? length - 1 : length;
  const auto place = [&](const Value* value, const char* what, int64_t otherwise) {
    const std::optional<int64_t> given = bound(value, what);
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + length : *given, low, high);
  };
  const int64_t from = place(begin, "begin", by < 0 ? high : low), to = place(end, "end", by < 0 ? low : high);
  std::vector<int64_t> places;
  for (int64_t i = from; by < 0 ? i > to : i < to;) {
    places.push_back(i);
    if (by > length || by < -length) break;
    i += by;
  }
  return places;
}

const std::vector<std::string> kTextMethods = {"strip",   "lstrip", "rstrip",     "split", "startswith", "endswith",
                                               "replace", "upper",  "lower",      "title", "capitalize", "join",
                                               "find",    "count",  "splitlines", "rsplit"};
const std::vector<std::string> kMapMethods = {"items", "keys", "values", "get"};
// What Python has besides, and this interpreter has not: not to be taken for something missing.
const std::vector<std::string> kForeignMethods = {
    "casefold",     "center",  "encode",    "expandtabs", "format",     "format_map",   "index",
    "isalnum",      "isascii", "isdecimal", "isnumeric",  "islower",    "isupper",      "istitle",
    "isidentifier", "ljust",   "rjust",     "partition",  "rpartition", "removeprefix", "removesuffix",
    "rfind",        "rindex",  "isdigit",   "isalpha",    "isspace",    "swapcase",     "translate",
    "zfill",        "append",  "extend",    "insert",     "pop",        "remove",       "reverse",
    "sort",         "clear",   "copy",      "update",     "popitem",    "setdefault"};

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

Value undefined_attribute(const Value& value, const std::string& name) {
  return Undefined{str(name.substr(0, kShownName), " of ", kind_of(value))};
}

Value loop_attribute(const LoopPtr& loop, const std::string& name) {
  const auto at = static_cast<int64_t>(loop->at), all = std::ssize(loop->list->items);
  if (name == "index") return at + 1;
  if (name == "index0") return at;
  if (name == "revindex") return all - at;
  if (name == "revindex0") return all - at - 1;
  if (name == "first") return at == 0;
  if (name == "last") return at == all - 1;
  if (name == "length") return all;
  if (name == "depth" || name == "depth0") return int64_t{name == "depth"};  // counts recursive loops alone
  if (name == "previtem") return at > 0 ? loop->list->items[loop->at - 1] : Value(Undefined{"loop.previtem"});
  if (name == "nextitem") return at + 1 < all ? loop->list->items[loop->at + 1] : Value(Undefined{"loop.nextitem"});
  if (name == "cycle") return std::make_shared<const MethodValue>(MethodValue{loop, name});
  fail("loop.", name, " is outside the part of Jinja that is read here");
}

}  // namespace

void Meter::steps(size_t count) {
  steps_ += static_cast<int64_t>(count);
  if (steps_ > limits_.steps) fail("more than ", grouped(limits_.steps), " steps");
}

void Meter::bytes(size_t count) {
  bytes_ += static_cast<int64_t>(count);
  if (bytes_ > limits_.bytes) {
    fail("texts and lists of more than ", human_bytes(static_cast<double>(limits_.bytes)), " together");
  }
}

void Meter::text_size(size_t bytes) {
  if (static_cast<int64_t>(bytes) > limits_.text_bytes) {
    fail("a text of more than ", human_bytes(static_cast<double>(limits_.text_bytes)));
  }
}

bool is_undefined(const Value& value) { return as<Undefined>(value) != nullptr; }

std::string kind_of(const Value& value) {
  if (const Undefined* missing = as<Undefined>(value)) return str("the undefined ", printable(missing->name, 60));
  if (as<None>(value)) return "none";
  if (as<bool>(value)) return "a boolean";
  if (as<int64_t>(value)) return "a whole number";
  if (as<double>(value)) return "a number";
  if (as_text(value)) return "a text";
  if (as<ListPtr>(value)) return "a list";
  if (as<MapPtr>(value)) return "a map";
  if (as<LoopPtr>(value)) return "loop";
  if (as<SpaceValue*>(value)) return "a namespace";
  if (as<MacroValue*>(value)) return "a macro";
  if (const MethodPtr* method = as<MethodPtr>(value)) return str("the method ", (*method)->name);
  return "a function";
}

Value text_value(MarkedText text, Meter& meter) {
  meter.text_size(text.size());
  meter.bytes(2 * text.size() + sizeof(MarkedText));
  return std::make_shared<const MarkedText>(std::move(text));
}

Value text_value(std::string_view text, Meter& meter) {
  return text_value(MarkedText(text, MarkedText::kTemplate), meter);
}

Value list_value(std::vector<Value> items, Meter& meter, bool tuple) {
  meter.bytes(items.size() * sizeof(Value) + sizeof(ListValue));
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, depth_of(item));
  return std::make_shared<const ListValue>(ListValue{std::move(items), tuple, checked_depth(deepest)});
}

Value map_value(std::vector<std::pair<Value, Value>> items, Meter& meter) {
  meter.bytes(items.size() * 2 * sizeof(Value) + sizeof(MapValue));
  int deepest = 0;
  for (const auto& [key, item] : items) deepest = std::max(deepest, depth_of(item));
  return std::make_shared<const MapValue>(MapValue{std::move(items), checked_depth(deepest)});
}

Value value_of(const OrderedJson& json, char origin, Meter& meter) {
  meter.steps();
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX})
    fail("the number ", json_text(json), " is too large");
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return text_value(MarkedText(json.get_ref<const std::string&>(), origin), meter);
  if (json.is_array()) {
    std::vector<Value> items;
    for (const OrderedJson& item : json) items.push_back(value_of(item, origin, meter));
    return list_value(std::move(items), meter);
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key, item] : json.items()) {
    items.emplace_back(text_value(MarkedText(key, origin), meter), value_of(item, origin, meter));
  }
  return map_value(std::move(items), meter);
}

bool truth(const Value& value) {
  if (is_undefined(value) || as<None>(value)) return false;
  if (const bool* flag = as<bool>(value)) return *flag;
  if (const int64_t* whole = as<int64_t>(value)) return *whole != 0;
  if (const double* real = as<double>(value)) return *real != 0;
  if (const MarkedText* text = as_text(value)) return !text->text.empty();
  if (const ListPtr* list = as<ListPtr>(value)) return !(*list)->items.empty();
  if (const MapPtr* map = as<MapPtr>(value)) return !(*map)->items.empty();
  return true;
}

MarkedText str_of(const Value& value, Meter& meter) {
  if (const MarkedText* text = as_text(value)) {
    meter.bytes(2 * text->size());
    return *text;
  }
  if (is_undefined(value)) return {};
  ValueWriter writer(false, -1, meter);
  writer.write(value);
  return writer.take();
}

MarkedText json_of(const Value& value, int64_t indent, Meter& meter) {
  ValueWriter writer(true, indent, meter);
  writer.write(value);
  return writer.take();
}

std::optional<int64_t> whole_of(const Value& value) {
  if (const bool* flag = as<bool>(value)) return *flag ? 1 : 0;
  if (const int64_t* whole = as<int64_t>(value)) return *whole;
  return std::nullopt;
}

std::optional<double> number_of(const Value& value) {
  if (const double* real = as<double>(value)) return *real;
  if (const std::optional<int64_t> whole = whole_of(value)) return static_cast<double>(*whole);
  return std::nullopt;
}

bool equal(const Value& a, const Value& b, Meter& meter) {
  meter.steps();
  if (whole_of(a) && whole_of(b)) return *whole_of(a) == *whole_of(b);
  if (number_of(a) && number_of(b)) return *number_of(a) == *number_of(b);
  if (a.index() != b.index()) return false;
  if (is_undefined(a) || as<None>(a)) return true;
  if (const MarkedText* text = as_text(a)) {
    meter.steps(text->size() / 64);
    return text->text == as_text(b)->text;
  }
  if (const ListPtr* list = as<ListPtr>(a)) {
    const ListValue &x = **list, &y = **as<ListPtr>(b);
    return x.tuple == y.tuple &&
           std::ranges::equal(x.items, y.items, [&](const Value& p, const Value& q) { return equal(p, q, meter); });
  }
  if (const MapPtr* map = as<MapPtr>(a)) {
    const MapValue &x = **map, &y = **as<MapPtr>(b);
    if (x.items.size() != y.items.size()) return false;
    return std::ranges::all_of(x.items, [&](const auto& item) {
      meter.steps(y.items.size());
      const Value* other = found_in(y.items, item.first, meter);
      return other != nullptr && equal(item.second, *other, meter);
    });
  }
  if (SpaceValue* const* space = as<SpaceValue*>(a)) return *space == *as<SpaceValue*>(b);
  if (MacroValue* const* macro = as<MacroValue*>(a)) return *macro == *as<MacroValue*>(b);
  return false;
}

int compare(const Value& a, const Value& b, Meter& meter) {
  if (whole_of(a) && whole_of(b)) return *whole_of(a) < *whole_of(b) ? -1 : *whole_of(a) > *whole_of(b);
  if (number_of(a) && number_of(b)) return *number_of(a) < *number_of(b) ? -1 : *number_of(a) > *number_of(b);
  if (as_text(a) && as_text(b)) {
    meter.steps(std::min(as_text(a)->size(), as_text(b)->size()) / 64);
    const int order = as_text(a)->text.compare(as_text(b)->text);  // of UTF-8 as of code points
    return order < 0 ? -1 : order > 0;
  }
  fail("cannot compare ", kind_of(a), " with ", kind_of(b));
}

bool contains(const Value& whole, const Value& part, Meter& meter) {
  if (const MarkedText* text = as_text(whole)) {
    const MarkedText* other = as_text(part);
    if (other == nullptr) fail(kind_of(part), " in a text");
    charge_search(text->text, other->text, meter);
    return text->text.find(other->text) != std::string::npos;
  }
  if (const MapPtr* map = as<MapPtr>(whole)) {
    meter.steps((*map)->items.size());
    return found_in((*map)->items, part, meter) != nullptr;
  }
  if (is_undefined(whole)) return false;
  const ListPtr* list = as<ListPtr>(whole);
  if (list == nullptr) fail("\"in\" ", kind_of(whole));
  return std::ranges::any_of((*list)->items, [&](const Value& item) { return equal(item, part, meter); });
}

ListPtr items_of(const Value& value, Meter& meter) {
  if (const ListPtr* list = as<ListPtr>(value)) return *list;
  std::vector<Value> items;
  if (const MapPtr* map = as<MapPtr>(value)) {
    for (const auto& [key, item] : (*map)->items) items.push_back(key);
  } else if (const MarkedText* text = as_text(value)) {
    meter.steps(text->size());
    for (size_t at = 0; at < text->size();) {
      const size_t length = bytes_of_char(text->text, at);
      items.push_back(text_value(text->part(at, length), meter));
      at += length;
    }
  } else if (!is_undefined(value)) {
    fail("cannot go through ", kind_of(value));
  }
  return *as<ListPtr>(list_value(std::move(items), meter));
}

int64_t length_of(const Value& value, Meter& meter) {
  if (const MarkedText* text = as_text(value)) {
    meter.steps(text->size() / 16);
    return static_cast<int64_t>(characters(text->text));
  }
  if (const ListPtr* list = as<ListPtr>(value)) return std::ssize((*list)->items);
  if (const MapPtr* map = as<MapPtr>(value)) return std::ssize((*map)->items);
  if (is_undefined(value)) return 0;
  fail(kind_of(value), " has no length");
}

Value item_of(const Value& value, const Value& key, Meter& meter) {
  if (const Undefined* missing = as<Undefined>(value)) fail(printable(missing->name, 60), " is undefined");
  if (const MapPtr* map = as<MapPtr>(value)) {
    const MarkedText* name = as_text(key);
    const Value* found = found_in((*map)->items, key, meter);
    if (found != nullptr) return *found;
    return name ? attribute_of(value, name->text, meter) : Value(undefined_attribute(value, "an item"));
  }
  if (const MarkedText* name = as_text(key)) return attribute_of(value, name->text, meter);
  const std::optional<int64_t> index = whole_of(key);
  const MarkedText* text = as_text(value);
  if (!index || (text == nullptr && as<ListPtr>(value) == nullptr)) return undefined_attribute(value, "an item");
  if (text != nullptr) {
    const std::vector<size_t> places = places_of(text->text, meter);
    const int64_t count = std::ssize(places) - 1, at = *index < 0 ? *index + count : *index;
    if (at < 0 || at >= count) return undefined_attribute(value, str("item ", *index));
    const size_t begin = places[static_cast<size_t>(at)];
    return text_value(text->part(begin, places[static_cast<size_t>(at) + 1] - begin), meter);
  }
  const std::vector<Value>& items = (*as<ListPtr>(value))->items;
  const int64_t at = *index < 0 ? *index + std::ssize(items) : *index;
  return at < 0 || at >= std::ssize(items) ? undefined_attribute(value, str("item ", *index))
                                           : items[static_cast<size_t>(at)];
}

Value attribute_of(const Value& value, const std::string& name, Meter& meter) {
  if (const Undefined* missing = as<Undefined>(value)) {
    fail(printable(missing->name, 60), " is undefined, so it has no ", printable(name, 60));
  }
  if (const LoopPtr* loop = as<LoopPtr>(value)) return loop_attribute(*loop, name);
  if (SpaceValue* const* space = as<SpaceValue*>(value)) {
    meter.steps((*space)->items.size() / 8);
    for (const auto& [key, item] : (*space)->items) {
      if (key == name) return item;
    }
    return undefined_attribute(value, name);
  }
  const MapPtr* map = as<MapPtr>(value);
  const bool text = as_text(value) != nullptr, list = as<ListPtr>(value) != nullptr;
  if ((text && among(kTextMethods, name)) || (map != nullptr && among(kMapMethods, name))) {
    return std::make_shared<const MethodValue>(MethodValue{value, name});
  }
  if (map != nullptr) {
    if (const Value* found = found_in((*map)->items, text_value(name, meter), meter)) return *found;
  }
  if (text || list || map != nullptr) {
    if (among(kForeignMethods, name)) {
      fail("the method ", name, "() of ", kind_of(value), " is outside the part of Jinja that is read here");
    }
  }
  return undefined_attribute(value, name);
}

Value slice_of(const Value& value, const Value* begin, const Value* end, const Value* step, Meter& meter) {
  if (const MarkedText* text = as_text(value)) {
    const std::vector<size_t> places = places_of(text->text, meter);
    MarkedText out;
    const std::vector<int64_t> taken = slice_places(std::ssize(places) - 1, begin, end, step);
    meter.steps(taken.size());
    for (int64_t at : taken) {
      const size_t from = places[static_cast<size_t>(at)], to = places[static_cast<size_t>(at) + 1];
      out.append(text->part(from, to - from));
    }
    return text_value(std::move(out), meter);
  }
  const ListPtr* list = as<ListPtr>(value);
  if (list == nullptr) fail("a slice of ", kind_of(value));
  std::vector<Value> out;
  for (int64_t at : slice_places(std::ssize((*list)->items), begin, end, step)) {
    out.push_back((*list)->items[static_cast<size_t>(at)]);
  }
  meter.steps(out.size());
  return list_value(std::move(out), meter, (*list)->tuple);
}

const Value* found_in(std::span<const std::pair<Value, Value>> items, const Value& key, Meter& meter) {
  const MarkedText* name = as_text(key);
  const size_t size = name == nullptr ? 0 : name->size();
  meter.steps(items.size() / 8 + items.size() * (size / 64));  // keys of one length may differ at the end
  const std::optional<double> number = number_of(key);
  for (const auto& [known, value] : items) {
    const MarkedText* other = as_text(known);
    const bool same = name != nullptr      ? other != nullptr && other->text == name->text
                      : number.has_value() ? number_of(known) == number
                                           : as<None>(key) && as<None>(known);
    if (same) return &value;
  }
  return nullptr;
}

void charge_search(const std::string& text, const std::string& what, Meter& meter) {
  const size_t starts = text.size() < what.size() ? 0 : text.size() - what.size() + 1;
  meter.steps(text.size() / 16 + starts / 64 * (what.size() / 64));
}

bool python_space(uint32_t code) { return (code >= 0x1c && code <= 0x1f) || (char_class(code) & kSpace) != 0; }

size_t characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += char_at(text, at).length) ++count;
  return count;
}

}  // namespace ucas::jinja
