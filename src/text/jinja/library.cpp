#include "text/jinja/library.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <mutex>

#include "base/terminal/log.h"
#include "text/unicode/unicode.h"

namespace ucas::jinja {

namespace {

constexpr int64_t kLongestRange = 100'000;

// What templates do to texts, with every character keeping its origin.

bool one_of(const MarkedText* chars, std::string_view text, size_t at, size_t length) {
  if (chars == nullptr) return python_space(char_at(text, at).code);
  const std::string_view one = text.substr(at, length);
  for (size_t i = 0; i < chars->size(); i += char_at(chars->text, i).length) {
    if (std::string_view(chars->text).substr(i, char_at(chars->text, i).length) == one) return true;
  }
  return false;
}

bool ends_line(uint32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

// Letters beyond ASCII that may have another case.
bool may_have_case(uint32_t code) {
  if (code >= 0x2100 && code < 0x2500) return true;
  const bool range = (code >= 0x80 && code < 0x2E80) || (code >= 0xA640 && code < 0xABC0) ||
                     (code >= 0xFF00 && code < 0xFF60) || (code >= 0x10400 && code < 0x20000);
  return range && (char_class(code) & kLetter) != 0;
}

// Without the characters of `chars` (nullptr: white space) at its begin, its end or both.
MarkedText stripped(const MarkedText& text, const MarkedText* chars, bool left, bool right) {
  if (chars != nullptr && chars->size() > 100) fail("strip() of more than 100 bytes of characters");
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const size_t length = char_at(text.text, begin).length;
    if (!one_of(chars, text.text, begin, length)) break;
    begin += length;
  }
  while (right && end > begin) {
    const size_t length = char_before(text.text, end).length;
    if (!one_of(chars, text.text, end - length, length)) break;
    end -= length;
  }
  return text.part(begin, end - begin);
}

MarkedText replaced(const MarkedText& text, const MarkedText& old, const MarkedText& by, int64_t most, Meter& meter) {
  if (old.size() == 0) fail("replace() of an empty text");
  charge_search(text.text, old.text, meter);
  MarkedText out;
  size_t at = 0;
  for (int64_t i = 0; most < 0 || i < most; ++i) {
    const size_t found = text.text.find(old.text, at);
    if (found == std::string::npos) break;
    out.append(text.part(at, found - at));
    out.append(by);
    meter.steps();
    meter.text_size(out.size());
    at = found + old.size();
  }
  out.append(text.part(at));
  return out;
}

// As Python's split(): at `by` (nullptr: at white space), at most `most` times (-1: any), from the left or the right.
std::vector<MarkedText> split_text(const MarkedText& text, const MarkedText* by, int64_t most, bool from_right,
                                   Meter& meter) {
  if (by != nullptr && by->size() == 0) fail("split() at an empty text");
  if (by == nullptr && most >= 0)
    fail("split() at white space with a limit is outside the part of Jinja that is read here");
  std::vector<MarkedText> parts;
  const std::string& all = text.text;
  if (by == nullptr) {
    for (size_t at = 0; at < all.size();) {
      while (at < all.size() && python_space(char_at(all, at).code)) at += char_at(all, at).length;
      size_t end = at;
      while (end < all.size() && !python_space(char_at(all, end).code)) end += char_at(all, end).length;
      if (end > at) parts.push_back(text.part(at, end - at));
      meter.steps();
      at = end;
    }
    return parts;
  }
  charge_search(all, by->text, meter);
  if (from_right) {
    size_t end = all.size();
    while (most < 0 || std::ssize(parts) < most) {
      const size_t found = end < by->size() ? std::string::npos : all.rfind(by->text, end - by->size());
      if (found == std::string::npos) break;
      parts.push_back(text.part(found + by->size(), end - found - by->size()));
      meter.steps();
      end = found;
    }
    parts.push_back(text.part(0, end));
    std::ranges::reverse(parts);
    return parts;
  }
  size_t at = 0;
  while (most < 0 || std::ssize(parts) < most) {
    const size_t found = all.find(by->text, at);
    if (found == std::string::npos) break;
    parts.push_back(text.part(at, found - at));
    meter.steps();
    at = found + by->size();
  }
  parts.push_back(text.part(at));
  return parts;
}

// Python's splitlines().
std::vector<MarkedText> lines_of(const MarkedText& text) {
  std::vector<MarkedText> lines;
  const std::string& all = text.text;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && !ends_line(char_at(all, end).code)) end += char_at(all, end).length;
    lines.push_back(text.part(begin, end - begin));
    if (end == all.size()) break;
    begin = end + (all.compare(end, 2, "\r\n") == 0 ? 2 : char_at(all, end).length);
  }
  return lines;
}

enum class Case { upper, lower, title, capitalize, words };  // words: Jinja's filter title

// A fault for letters beyond ASCII that have cases.
MarkedText in_case(const MarkedText& text, Case form) {
  MarkedText out = text;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text.text, at);
    if (c.code >= 0x80) {
      if (may_have_case(c.code)) {
        fail("the case of \"", text.text.substr(at, c.length), "\" is changed; only ASCII letters are here");
      }
      if (form != Case::words) in_word = in_word && form == Case::capitalize;
    } else {
      const int byte = static_cast<int>(c.code);
      const bool letter = std::isalpha(byte) != 0;
      const bool capital = form == Case::upper || (form != Case::lower && !in_word);
      if (letter) out.text[at] = static_cast<char>(capital ? std::toupper(byte) : std::tolower(byte));
      if (form == Case::title) in_word = letter;
      if (form == Case::capitalize) in_word = true;
      if (form == Case::words)
        in_word = !python_space(c.code) && std::string_view("-({[<").find(text.text[at]) == std::string_view::npos;
    }
    if (c.code >= 0x80 && form == Case::capitalize) in_word = true;
    if (c.code >= 0x80 && form == Case::words) in_word = !python_space(c.code);
    at += c.length;
  }
  return out;
}

// Arguments by place or name; what none of `names` takes is refused.
template <size_t N>
std::array<const Value*, N> bind(const Arguments& given, const char* of, const std::array<const char*, N>& names) {
  std::array<const Value*, N> out{};
  if (given.list.size() > N) fail(of, " with ", given.list.size(), " arguments, it takes ", N, " at most");
  for (size_t i = 0; i < given.list.size(); ++i) out[i] = &given.list[i];
  for (const auto& [name, value] : given.named) {
    const auto found = std::ranges::find_if(names, [&](const char* known) { return name == known; });
    if (found == names.end()) {
      fail(of, " with the argument ", printable(name, 40), " is outside the part of Jinja that is read here");
    }
    out[static_cast<size_t>(found - names.begin())] = &value;
  }
  return out;
}

void without_arguments(const Arguments& given, const char* of) {
  if (!given.list.empty() || !given.named.empty()) fail(of, " takes no arguments");
}

bool there(const Value* value) { return value != nullptr && !as<None>(*value); }

const MarkedText& text_argument(const Value* value, const char* of) {
  const MarkedText* text = value ? as_text(*value) : nullptr;
  if (text == nullptr) fail(of, ": expected a text, got ", value ? kind_of(*value) : std::string("nothing"));
  return *text;
}

int64_t whole_argument(const Value* value, const char* of, int64_t otherwise) {
  if (!there(value)) return otherwise;
  const std::optional<int64_t> whole = whole_of(*value);
  if (!whole) fail(of, ": expected a whole number, got ", kind_of(*value));
  return *whole;
}

Value list_of(const std::vector<MarkedText>& parts, Meter& meter) {
  std::vector<Value> items;
  for (const MarkedText& part : parts) items.push_back(text_value(part, meter));
  return list_value(std::move(items), meter);
}

Value pairs_of(const MapValue& map, Meter& meter) {
  std::vector<Value> items;
  for (const auto& [key, value] : map.items) {
    items.push_back(list_value({key, value}, meter, true));
  }
  return list_value(std::move(items), meter);
}

MarkedText joined(const MarkedText& by, const Value& items, bool texts_alone, Meter& meter) {
  MarkedText out;
  bool first = true;
  const ListPtr all = items_of(items, meter);
  for (const Value& item : all->items) {
    meter.steps();
    if (!first) out.append(by);
    first = false;
    if (texts_alone && as_text(item) == nullptr) fail("join() of ", kind_of(item));
    out.append(str_of(item, meter));
    meter.text_size(out.size());
  }
  return out;
}

// "attribute" of map, selectattr ...: names and places with dots between them.
Value along(Value value, const Value& path, Meter& meter) {
  if (const std::optional<int64_t> index = whole_of(path)) return item_of(value, *index, meter);
  const std::string& names = text_argument(&path, "attribute").text;
  meter.steps(names.size() / 4);
  for (const std::string& part : split(names, '.')) {
    const bool place = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    value = item_of(value, place ? Value(int64_t{std::stoi(part)}) : text_value(part, meter), meter);
  }
  return value;
}

Arguments rest_of(const Arguments& given, size_t from) {
  Arguments out{{}, given.named};
  for (size_t i = from; i < given.list.size(); ++i) out.list.push_back(given.list[i]);
  return out;
}

Value filter_map(const Value& to, const Arguments& given, Meter& meter) {
  if (!truth(to)) return list_value({}, meter);  // none, too
  std::vector<Value> out;
  const ListPtr items = items_of(to, meter);
  if (given.list.empty()) {
    const auto [attribute, otherwise] = bind<2>(given, "map", {"attribute", "default"});
    if (attribute == nullptr) fail("map without a filter or an attribute");
    for (const Value& item : items->items) {
      meter.steps();
      Value found = along(item, *attribute, meter);
      out.push_back(is_undefined(found) && there(otherwise) ? *otherwise : found);
    }
    return list_value(std::move(out), meter);
  }
  const std::string& name = text_argument(&given.list[0], "map").text;
  if (!is_filter(name)) fail("the filter ", printable(name, 40), " is outside the part of Jinja that is read here");
  const Arguments rest = rest_of(given, 1);
  for (const Value& item : items->items) {
    meter.steps();
    out.push_back(apply_filter(name, item, rest, meter));
  }
  return list_value(std::move(out), meter);
}

template <bool by_attribute, bool wanted>
Value filter_select(const Value& to, const Arguments& given, Meter& meter) {
  const size_t test = by_attribute ? 1 : 0;
  if (given.list.size() < test) fail("selectattr without an attribute");
  const bool truthful = given.list.size() == test;
  const std::string name = truthful ? "" : text_argument(&given.list[test], "select").text;
  if (!truthful && !is_test(name)) {
    fail("the test ", printable(name, 40), " is outside the part of Jinja that is read here");
  }
  if (!truth(to)) return list_value({}, meter);
  const Arguments rest = rest_of(given, test + 1);
  std::vector<Value> out;
  const ListPtr all = items_of(to, meter);
  for (const Value& item : all->items) {
    meter.steps();
    const Value value = by_attribute ? along(item, given.list[0], meter) : item;
    if ((truthful ? truth(value) : apply_test(name, value, rest, meter)) == wanted) out.push_back(item);
  }
  return list_value(std::move(out), meter);
}

Value filter_indent(const Value& to, const Arguments& given, Meter& meter) {
  const auto [width, first, blank] = bind<3>(given, "indent", {"width", "first", "blank"});
  const MarkedText by =
      width && as_text(*width)
          ? *as_text(*width)
          : MarkedText(
                std::string(static_cast<size_t>(std::clamp<int64_t>(whole_argument(width, "indent", 4), 0, 1000)), ' '),
                MarkedText::kTemplate);
  MarkedText ended = str_of(to, meter), out;
  ended.append("\n", MarkedText::kTemplate);
  bool at_first = true;
  for (const MarkedText& line : lines_of(ended)) {
    if (!at_first) out.append("\n", MarkedText::kTemplate);
    const bool wanted = at_first ? first && truth(*first) : line.size() > 0 || (blank && truth(*blank));
    if (wanted) out.append(by);
    out.append(line);
    meter.text_size(out.size());
    at_first = false;
  }
  return text_value(std::move(out), meter);
}

std::optional<int64_t> whole_in(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) fail("the number ", printable(text, 40), " is too large");
  if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> real_in(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

int64_t whole_part(double value) {
  if (!(std::abs(value) < 9e18)) fail("the number ", value, " is too large");
  return static_cast<int64_t>(value);
}

Value filter_int(const Value& to, const Arguments& given, Meter& meter) {
  const auto [otherwise] = bind<1>(given, "int", {"default"});
  if (const std::optional<int64_t> whole = whole_of(to)) return *whole;
  if (const double* real = as<double>(to)) return whole_part(*real);
  if (is_undefined(to)) fail("int of ", kind_of(to));
  if (const MarkedText* text = as_text(to)) {
    meter.steps(text->size() / 16);
    if (const std::optional<int64_t> whole = whole_in(text->text)) return *whole;
    if (const std::optional<double> real = real_in(text->text)) return whole_part(*real);
  }
  return otherwise ? *otherwise : Value(int64_t{0});
}

Value filter_float(const Value& to, const Arguments& given, Meter& meter) {
  const auto [otherwise] = bind<1>(given, "float", {"default"});
  if (const std::optional<double> number = number_of(to)) return *number;
  if (is_undefined(to)) fail("float of ", kind_of(to));
  if (const MarkedText* text = as_text(to)) {
    meter.steps(text->size() / 16);
    if (const std::optional<double> real = real_in(text->text)) return *real;
  }
  return otherwise ? *otherwise : Value(0.0);
}

Value first_or_last(const Value& to, bool first, Meter& meter) {
  const ListPtr items = items_of(to, meter);
  if (items->items.empty()) return Undefined{first ? "the first item of nothing" : "the last item of nothing"};
  return first ? items->items.front() : items->items.back();
}

Value filter_reverse(const Value& to, Meter& meter) {
  std::vector<Value> items = items_of(to, meter)->items;
  std::ranges::reverse(items);
  meter.steps(items.size());
  if (as_text(to) == nullptr) return list_value(std::move(items), meter);
  return text_value(joined({}, list_value(std::move(items), meter), true, meter), meter);
}

Value filter_tojson(const Value& to, const Arguments& given, Meter& meter) {
  const auto [ascii, indent] = bind<2>(given, "tojson", {"ensure_ascii", "indent"});
  if (ascii && truth(*ascii)) fail("tojson with ensure_ascii is outside the part of Jinja that is read here");
  return text_value(json_of(to, std::clamp<int64_t>(whole_argument(indent, "tojson", -1), -1, 64), meter), meter);
}

Value filter_default(const Value& to, const Arguments& given, Meter& meter) {
  const auto [otherwise, falsy] = bind<2>(given, "default", {"default_value", "boolean"});
  if (!is_undefined(to) && !(falsy && truth(*falsy) && !truth(to))) return to;
  return otherwise ? *otherwise : text_value("", meter);
}

Value filter_items(const Value& to, Meter& meter) {
  if (is_undefined(to)) return list_value({}, meter);
  if (const MapPtr* map = as<MapPtr>(to)) return pairs_of(**map, meter);
  fail("items of ", kind_of(to));
}

Value filter_join(const Value& to, const Arguments& given, Meter& meter) {
  const auto [by, attribute] = bind<2>(given, "join", {"d", "attribute"});
  const MarkedText between = by ? str_of(*by, meter) : MarkedText();
  if (!there(attribute)) return text_value(joined(between, to, false, meter), meter);
  std::vector<Value> items;
  const ListPtr all = items_of(to, meter);
  for (const Value& item : all->items) items.push_back(along(item, *attribute, meter));
  return text_value(joined(between, list_value(std::move(items), meter), false, meter), meter);
}

Value filter_trim(const Value& to, const Arguments& given, Meter& meter) {
  const auto [chars] = bind<1>(given, "trim", {"chars"});
  const MarkedText text = str_of(to, meter);
  return text_value(stripped(text, there(chars) ? &text_argument(chars, "trim") : nullptr, true, true), meter);
}

Value filter_replace(const Value& to, const Arguments& given, Meter& meter) {
  const auto [old, by, count] = bind<3>(given, "replace", {"old", "new", "count"});
  if (old == nullptr || by == nullptr) fail("replace without what is replaced, and by what");
  const int64_t most = whole_argument(count, "replace", -1);
  return text_value(replaced(str_of(to, meter), str_of(*old, meter), str_of(*by, meter), most, meter), meter);
}

Value filter_case(const Value& to, Case form, Meter& meter) {
  const MarkedText text = str_of(to, meter);
  meter.steps(text.size() / 16);
  return text_value(in_case(text, form), meter);
}

Value filter_abs(const Value& to, Meter&) {
  if (const std::optional<int64_t> whole = whole_of(to); whole && *whole != INT64_MIN)
    return *whole < 0 ? -*whole : *whole;
  if (const double* real = as<double>(to)) return std::abs(*real);
  fail("abs of ", kind_of(to));
}

// What sort and dictsort compare: texts without regard to case, unless asked for.
Value sort_key(const Value& value, const Value* case_sensitive, Meter& meter) {
  const MarkedText* text = as_text(value);
  if (text == nullptr || (case_sensitive != nullptr && truth(*case_sensitive))) return value;
  return text_value(in_case(*text, Case::lower), meter);
}

// `keyed` are what is compared and what is sorted.
std::vector<Value> sorted(std::vector<std::pair<Value, Value>> keyed, const Value* reverse, Meter& meter) {
  meter.steps(keyed.size() * 16);
  const bool down = reverse != nullptr && truth(*reverse);
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return down ? compare(b.first, a.first, meter) < 0 : compare(a.first, b.first, meter) < 0;
  });
  std::vector<Value> out;
  for (auto& [key, value] : keyed) out.push_back(std::move(value));
  return out;
}

Value filter_sort(const Value& to, const Arguments& given, Meter& meter) {
  const auto [reverse, sensitive, attribute] = bind<3>(given, "sort", {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> keyed;
  const ListPtr all = items_of(to, meter);
  for (const Value& item : all->items) {
    keyed.emplace_back(sort_key(there(attribute) ? along(item, *attribute, meter) : item, sensitive, meter), item);
  }
  return list_value(sorted(std::move(keyed), reverse, meter), meter);
}

Value filter_dictsort(const Value& to, const Arguments& given, Meter& meter) {
  const auto [sensitive, by, reverse] = bind<3>(given, "dictsort", {"case_sensitive", "by", "reverse"});
  const MapPtr* map = as<MapPtr>(to);
  if (map == nullptr) fail("dictsort of ", kind_of(to));
  const std::string part = there(by) ? text_argument(by, "dictsort").text : "key";
  if (part != "key" && part != "value") fail("dictsort by ", printable(part, 40), ": expected key or value");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : (*map)->items) {
    keyed.emplace_back(sort_key(part == "key" ? key : value, sensitive, meter), list_value({key, value}, meter, true));
  }
  return list_value(sorted(std::move(keyed), reverse, meter), meter);
}

struct Filter {
  Value (*with)(const Value& to, const Arguments& given, Meter& meter) = nullptr;
  Value (*alone)(const Value& to, Meter& meter) = nullptr;  // takes no arguments
};

const std::map<std::string, Filter, std::less<>>& filters() {
  constexpr auto length = [](const Value& to, Meter& m) { return Value(length_of(to, m)); };
  constexpr auto text = [](const Value& to, Meter& m) { return text_value(str_of(to, m), m); };
  static const std::map<std::string, Filter, std::less<>> all = {
      {"abs", {.alone = filter_abs}},
      {"capitalize", {.alone = [](const Value& to, Meter& m) { return filter_case(to, Case::capitalize, m); }}},
      {"count", {.alone = length}},
      {"d", {filter_default}},
      {"default", {filter_default}},
      {"dictsort", {filter_dictsort}},
      {"first", {.alone = [](const Value& to, Meter& m) { return first_or_last(to, true, m); }}},
      {"float", {filter_float}},
      {"indent", {filter_indent}},
      {"int", {filter_int}},
      {"items", {.alone = filter_items}},
      {"join", {filter_join}},
      {"last", {.alone = [](const Value& to, Meter& m) { return first_or_last(to, false, m); }}},
      {"length", {.alone = length}},
      {"list", {.alone = [](const Value& to, Meter& m) { return list_value(items_of(to, m)->items, m); }}},
      {"lower", {.alone = [](const Value& to, Meter& m) { return filter_case(to, Case::lower, m); }}},
      {"map", {filter_map}},
      {"reject", {filter_select<false, false>}},
      {"rejectattr", {filter_select<true, false>}},
      {"replace", {filter_replace}},
      {"reverse", {.alone = filter_reverse}},
      {"safe", {.alone = text}},
      {"select", {filter_select<false, true>}},
      {"selectattr", {filter_select<true, true>}},
      {"sort", {filter_sort}},
      {"string", {.alone = text}},
      {"title", {.alone = [](const Value& to, Meter& m) { return filter_case(to, Case::words, m); }}},
      {"tojson", {filter_tojson}},
      {"trim", {filter_trim}},
      {"upper", {.alone = [](const Value& to, Meter& m) { return filter_case(to, Case::upper, m); }}},
  };
  return all;
}

using Test = bool (*)(const Value&, const Value*, Meter&);  // the second: its argument, where it takes one

const Value& needed(const Value* other) {
  if (other == nullptr) fail("a test without the value to compare with");
  return *other;
}

int64_t whole_tested(const Value& value) {
  const std::optional<int64_t> whole = whole_of(value);
  if (!whole) fail("expected a whole number, got ", kind_of(value));
  return *whole;
}

bool divisible(const Value& value, const Value& by) {
  const int64_t divisor = whole_tested(by);
  if (divisor == 0) fail("divisibleby 0");
  return divisor == -1 || whole_tested(value) % divisor == 0;
}

bool is_number(const Value& value) { return number_of(value).has_value(); }
bool test_equal(const Value& v, const Value* o, Meter& m) { return equal(v, needed(o), m); }
bool test_unequal(const Value& v, const Value* o, Meter& m) { return !equal(v, needed(o), m); }
bool test_less(const Value& v, const Value* o, Meter& m) { return compare(v, needed(o), m) < 0; }
bool test_less_equal(const Value& v, const Value* o, Meter& m) { return compare(v, needed(o), m) <= 0; }
bool test_greater(const Value& v, const Value* o, Meter& m) { return compare(v, needed(o), m) > 0; }
bool test_greater_equal(const Value& v, const Value* o, Meter& m) { return compare(v, needed(o), m) >= 0; }
bool test_callable(const Value& v, const Value*, Meter&) {
  return as<FunctionValue>(v) || as<MethodPtr>(v) || as<MacroValue*>(v);
}
bool test_iterable(const Value& v, const Value*, Meter&) {
  return as_text(v) || as<ListPtr>(v) || as<MapPtr>(v) || is_undefined(v);
}

const std::map<std::string, Test, std::less<>>& tests() {
  static const std::map<std::string, Test, std::less<>> all = {
      {"boolean", [](const Value& v, const Value*, Meter&) { return as<bool>(v) != nullptr; }},
      {"callable", test_callable},
      {"defined", [](const Value& v, const Value*, Meter&) { return !is_undefined(v); }},
      {"divisibleby", [](const Value& v, const Value* o, Meter&) { return divisible(v, needed(o)); }},
      {"even", [](const Value& v, const Value*, Meter&) { return whole_tested(v) % 2 == 0; }},
      {"false", [](const Value& v, const Value*, Meter&) { return as<bool>(v) && !*as<bool>(v); }},
      {"float", [](const Value& v, const Value*, Meter&) { return as<double>(v) != nullptr; }},
      {"in", [](const Value& v, const Value* o, Meter& m) { return contains(needed(o), v, m); }},
      {"integer", [](const Value& v, const Value*, Meter&) { return as<int64_t>(v) != nullptr; }},
      {"iterable", test_iterable},
      {"mapping", [](const Value& v, const Value*, Meter&) { return as<MapPtr>(v) != nullptr; }},
      {"none", [](const Value& v, const Value*, Meter&) { return as<None>(v) != nullptr; }},
      {"number", [](const Value& v, const Value*, Meter&) { return is_number(v); }},
      {"odd", [](const Value& v, const Value*, Meter&) { return whole_tested(v) % 2 != 0; }},
      {"sequence", test_iterable},
      {"string", [](const Value& v, const Value*, Meter&) { return as_text(v) != nullptr; }},
      {"true", [](const Value& v, const Value*, Meter&) { return as<bool>(v) && *as<bool>(v); }},
      {"undefined", [](const Value& v, const Value*, Meter&) { return is_undefined(v); }},
      {"eq", test_equal},
      {"equalto", test_equal},
      {"==", test_equal},
      {"ne", test_unequal},
      {"!=", test_unequal},
      {"lt", test_less},
      {"lessthan", test_less},
      {"<", test_less},
      {"le", test_less_equal},
      {"<=", test_less_equal},
      {"gt", test_greater},
      {"greaterthan", test_greater},
      {">", test_greater},
      {"ge", test_greater_equal},
      {">=", test_greater_equal},
  };
  return all;
}

bool at_border(const MarkedText& text, const Value* parts, bool begin, Meter& meter) {
  const auto one = [&](const Value& part) {
    const std::string& other = text_argument(&part, begin ? "startswith()" : "endswith()").text;
    meter.steps(other.size() / 64);
    return begin ? text.text.starts_with(other) : text.text.ends_with(other);
  };
  if (parts == nullptr) fail("startswith() or endswith() without a text");
  const ListPtr* list = as<ListPtr>(*parts);
  if (list == nullptr) return one(*parts);
  meter.steps((*list)->items.size());
  return std::ranges::any_of((*list)->items, one);
}

Value text_method(const MarkedText& text, const std::string& name, const Arguments& given, Meter& meter) {
  meter.steps(text.size() / 16);
  const auto only = [&](const char* argument) { return bind<1>(given, name.c_str(), {argument})[0]; };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Value* chars = only("chars");
    const MarkedText* which = there(chars) ? &text_argument(chars, "strip()") : nullptr;
    return text_value(stripped(text, which, name != "rstrip", name != "lstrip"), meter);
  }
  if (name == "split" || name == "rsplit") {
    const auto [by, most] = bind<2>(given, "split()", {"sep", "maxsplit"});
    const MarkedText* at = there(by) ? &text_argument(by, "split()") : nullptr;
    return list_of(split_text(text, at, whole_argument(most, "split()", -1), name == "rsplit", meter), meter);
  }
  if (name == "splitlines") {
    without_arguments(given, "splitlines()");
    return list_of(lines_of(text), meter);
  }
  if (name == "startswith" || name == "endswith") return at_border(text, only("text"), name == "startswith", meter);
  if (name == "replace") {
    const auto [old, by, count] = bind<3>(given, "replace()", {"old", "new", "count"});
    return text_value(replaced(text, text_argument(old, "replace()"), text_argument(by, "replace()"),
                               whole_argument(count, "replace()", -1), meter),
                      meter);
  }
  if (name == "find" || name == "count") {
    const std::string& other = text_argument(only("sub"), name == "find" ? "find()" : "count()").text;
    if (other.empty()) fail("the empty text is looked for");
    charge_search(text.text, other, meter);
    size_t at = text.text.find(other);
    if (name == "find")
      return at == std::string::npos ? int64_t{-1} : static_cast<int64_t>(characters(text.text.substr(0, at)));
    int64_t found = 0;
    for (; at != std::string::npos; at = text.text.find(other, at + other.size())) ++found;
    return found;
  }
  if (name == "join") {
    const Value* items = only("items");
    if (items == nullptr) fail("join() without items");
    return text_value(joined(text, *items, true, meter), meter);
  }
  without_arguments(given, "a change of case");
  const Case form = name == "upper"   ? Case::upper
                    : name == "lower" ? Case::lower
                    : name == "title" ? Case::title
                                      : Case::capitalize;
  return text_value(in_case(text, form), meter);
}

Value map_method(const MapValue& map, const std::string& name, const Arguments& given, Meter& meter) {
  if (name == "get") {
    const auto [key, otherwise] = bind<2>(given, "get()", {"key", "default"});
    const Value* found = key ? found_in(map.items, *key, meter) : nullptr;
    return found ? *found : otherwise ? *otherwise : Value(None{});
  }
  without_arguments(given, "items(), keys() or values()");
  if (name == "items") return pairs_of(map, meter);
  std::vector<Value> out;
  for (const auto& [key, value] : map.items) out.push_back(name == "keys" ? key : value);
  return list_value(std::move(out), meter);
}

Value today(const Arguments& given, Meter& meter) {
  const auto [form] = bind<1>(given, "strftime_now()", {"format"});
  const std::string& text = text_argument(form, "strftime_now()").text;
  static std::once_flag said;
  std::call_once(said, [] {
    warn("the chat template writes today's date into prompts: they differ from day to day, and so will a resumed run");
  });
  if (text.size() > 200) fail("strftime_now() with a format of ", text.size(), " bytes");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 4096> buffer;
  return text_value(std::string_view(buffer.data(), std::strftime(buffer.data(), buffer.size(), text.c_str(), &local)),
                    meter);
}

Value range(const Arguments& given, Meter& meter) {
  if (given.list.empty() || given.list.size() > 3 || !given.named.empty()) fail("range() takes one to three numbers");
  std::vector<int64_t> n;
  for (const Value& value : given.list) n.push_back(whole_argument(&value, "range()", 0));
  const int64_t begin = n.size() > 1 ? n[0] : 0, end = n.size() > 1 ? n[1] : n[0], step = n.size() > 2 ? n[2] : 1;
  if (step == 0) fail("range() with a step of 0");
  std::vector<Value> items;
  const auto width = static_cast<__int128>(end) - begin;
  const __int128 count = step > 0 ? (width + step - 1) / step : (-width - step - 1) / -step;
  if (count > kLongestRange) fail("a range() of more than ", grouped(kLongestRange), " numbers");
  for (__int128 i = 0; i < count; ++i) items.emplace_back(static_cast<int64_t>(begin + i * step));
  meter.steps(items.size());
  return list_value(std::move(items), meter);
}

}  // namespace

bool is_filter(const std::string& name) { return filters().contains(name); }
bool is_test(const std::string& name) { return tests().contains(name); }
bool is_function(const std::string& name) {
  return name == "raise_exception" || name == "strftime_now" || name == "range" || name == "dict";
}

Value apply_filter(const std::string& name, const Value& to, const Arguments& given, Meter& meter) {
  const Filter& filter = filters().at(name);
  if (filter.with) return filter.with(to, given, meter);
  without_arguments(given, name.c_str());
  return filter.alone(to, meter);
}

bool apply_test(const std::string& name, const Value& to, const Arguments& given, Meter& meter) {
  const auto [other] = bind<1>(given, name.c_str(), {"other"});
  return tests().at(name)(to, other, meter);
}

Value call_method(const MethodValue& method, const Arguments& given, Meter& meter) {
  if (const MarkedText* text = as_text(method.of)) return text_method(*text, method.name, given, meter);
  if (const MapPtr* map = as<MapPtr>(method.of)) return map_method(**map, method.name, given, meter);
  const LoopValue& loop = **as<LoopPtr>(method.of);  // cycle()
  if (given.list.empty()) fail("loop.cycle() of nothing");
  return given.list[loop.at % given.list.size()];
}

Value call_function(const std::string& name, const Arguments& given, Meter& meter) {
  if (name == "range") return range(given, meter);
  if (name == "strftime_now") return today(given, meter);
  if (name == "dict") {
    if (!given.list.empty()) fail("dict() of something else than NAME = VALUE");
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, value] : given.named) items.emplace_back(text_value(key, meter), value);
    return map_value(std::move(items), meter);
  }
  const auto [message] = bind<1>(given, "raise_exception()", {"message"});
  fail("the template refuses: ",
       message ? printable(str_of(*message, meter).text, 300) : std::string("no reason given"));
}

}  // namespace ucas::jinja
