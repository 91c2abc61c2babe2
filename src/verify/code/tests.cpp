#include "verify/code/tests.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas::code {

namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::data_line, str(where, ": tests: ", what));
}

std::string text_of(const Json& object, const char* key, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return "";
  if (!at->is_string()) refuse(where, str("\"", key, "\": expected text"));
  return at->get<std::string>();
}

struct Pair {
  std::string input, output;
};

std::vector<Pair> pairs(const Json& rows, const char* key, const std::string& where) {
  if (!rows.is_array() || rows.empty()) refuse(where, str("\"", key, "\": expected a list of {input, output}"));
  if (rows.size() > kMostTests) refuse(where, str("\"", key, "\": more than ", kMostTests, " tests"));
  std::vector<Pair> out;
  for (const Json& row : rows) {
    if (!row.is_object() || !row.contains("input") || !row.contains("output")) {
      refuse(where, str("\"", key, "\": expected a list of {input, output}"));
    }
    out.push_back({text_of(row, "input", where), text_of(row, "output", where)});
  }
  return out;
}

// Arguments as Python writes them: "n = 1, k = 2".
void add_calls(const std::vector<Pair>& rows, const std::string& entry, const std::string& where, Tests& out) {
  if (entry.empty()) refuse(where, "\"entry_point\" is missing");
  for (const Pair& row : rows) {
    // What the reference solution itself failed on is no test.
    if (row.output.starts_with("Error: ")) continue;
    Expected expected{.form = Expected::Form::printed, .text = row.output};
    if (auto value = parse_value(row.output)) expected.value = std::move(*value);
    out.steps.push_back({Step::Kind::test, str(entry, "(", row.input, ")")});
    out.expected_bytes += row.output.size();
    out.expected.push_back(std::move(expected));
  }
  if (out.expected.empty()) refuse(where, "every output is an error of the reference solution");
}

// A JSON value a line; the function is a method of Solution where the solution has such a class.
void add_values(const std::vector<Pair>& rows, const std::string& entry, const std::string& where, Tests& out) {
  if (entry.empty()) refuse(where, "\"entry_point\" is missing");
  out.steps.push_back({Step::Kind::run, str("candidate = getattr(Solution(), '", entry,
                                            "') if 'Solution' in globals() else ", entry, "\n")});
  for (const Pair& row : rows) {
    std::string call = "candidate(";
    for (const std::string& line : split(row.input, '\n')) {
      if (trim(line).empty()) continue;
      const auto literal = literal_of_json(trim(line));
      if (!literal) refuse(where, str("the input \"", printable(line, 60), "\" is no JSON value"));
      call += *literal + ",";
    }
    const auto literal = literal_of_json(trim(row.output));
    auto value = literal ? parse_value(*literal) : std::nullopt;
    if (!value) refuse(where, str("the output \"", printable(row.output, 60), "\" is no JSON value"));
    out.steps.push_back({Step::Kind::test, call + ")"});
    out.expected_bytes += row.output.size();
    out.expected.push_back({.value = std::move(*value), .sequence = true});
  }
}

void add_input(const std::vector<Pair>& rows, Tests& out) {
  out.input = true;
  for (const Pair& row : rows) {
    out.steps.push_back({Step::Kind::test, row.input});
    out.expected_bytes += row.output.size();
    out.expected.push_back({.form = Expected::Form::lines, .text = row.output});
  }
}

bool is_entry(std::string_view entry) {
  return std::ranges::all_of(entry, [](char c) {
    return c == '_' || c == '.' || c == '(' || c == ')' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  });
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

// Equal but for blanks at the ends, or word for word the same decimal numbers.
bool same_line(std::string_view a, std::string_view b) {
  a = trim(a), b = trim(b);
  if (a == b) return true;
  const auto x = words(a), y = words(b);
  return x.size() == y.size() && std::ranges::equal(x, y, same_decimal);
}

double number_of(const Value& v) {
  return v.kind == Value::Kind::integer ? std::strtod(v.text.c_str(), nullptr) : v.real;
}

bool is_numeric(const Value& v) {
  return v.kind == Value::Kind::integer || v.kind == Value::Kind::real || v.kind == Value::Kind::boolean;
}

bool counts_as_true(const Value& v) {
  if (v.kind == Value::Kind::integer) return v.text != "0";
  if (is_numeric(v)) return v.real != 0;
  return !v.text.empty() || !v.items.empty();
}

}  // namespace

Tests read_tests(const std::string& gold, const std::string& where) {
  Tests out;
  if (!trim(gold).starts_with('{')) {
    split_asserts(gold, "", where, out);
    return out;
  }
  const Json object = parse_json(gold, where);
  const std::string entry = text_of(object, "entry_point", where);
  if (!is_entry(entry)) refuse(where, str("\"entry_point\": \"", printable(entry, 40), "\" is no name of a function"));
  out.prelude = text_of(object, "prelude", where);
  if (object.contains("asserts")) {
    split_asserts(text_of(object, "asserts", where), entry, where, out);
  } else if (object.contains("calls")) {
    add_calls(pairs(object["calls"], "calls", where), entry, where, out);
  } else if (object.contains("values")) {
    add_values(pairs(object["values"], "values", where), entry, where, out);
  } else if (object.contains("stdin")) {
    add_input(pairs(object["stdin"], "stdin", where), out);
  } else {
    refuse(where, "expected asserts, calls, values or stdin");
  }
  return out;
}

bool meets(const Value& value, const Expected& expected) {
  switch (expected.form) {
    case Expected::Form::value: {
      if (!expected.sequence || value.kind != Value::Kind::tuple) return equal(value, expected.value);
      Value list = value;
      list.kind = Value::Kind::list;
      return equal(list, expected.value) || equal(value, expected.value);
    }
    case Expected::Form::printed:
      if (value.kind == Value::Kind::text) {
        if (value.text == expected.text) return true;
        return expected.value.kind == Value::Kind::text && value.text == expected.value.text;
      }
      // A text that is no literal was read as None: "None" alone means it.
      if (expected.value.kind == Value::Kind::none && trim(expected.text) != "None") return false;
      return equal(value, expected.value);
    case Expected::Form::truth:
      return counts_as_true(value) != expected.negated;
    case Expected::Form::near:
      return is_numeric(value) && std::abs(number_of(value) - number_of(expected.value)) <= expected.tolerance;
    case Expected::Form::lines:
      break;
  }
  return false;
}

bool meets(std::string_view printed, const Expected& expected) {
  std::string_view a = trim(printed), b = trim(expected.text);
  if (a == b) return true;
  for (;;) {
    const size_t x = std::min(a.find('\n'), a.size()), y = std::min(b.find('\n'), b.size());
    if (!same_line(a.substr(0, x), b.substr(0, y))) return false;
    const bool last_a = x == a.size(), last_b = y == b.size();
    if (last_a || last_b) return last_a == last_b;
    a.remove_prefix(x + 1), b.remove_prefix(y + 1);
  }
}

}  // namespace ucas::code
