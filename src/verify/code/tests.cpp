#include "verify/code/tests.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/text/json.h"
#include "verify/math/read/parser.h"

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
void add_values(const std::vector<Pair>& rows, const std::string& entry, bool wrapped, const std::string& where,
                Tests& out) {
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
    out.expected.push_back({.value = std::move(*value), .published = true, .wrapped = wrapped});
  }
}

// tests.py, asked line by line. It is started when it is needed, and again after one that did not answer.
class TestReader {
 public:
  explicit TestReader(std::string python) : python_(std::move(python)) {}

  // "": the text is too much for it, and it has ended.
  std::string ask(const std::string& line) {
    const std::lock_guard lock(guard_);
    if (end_ < 0) start();
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t n = ::send(end_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return stop();
      sent += static_cast<size_t>(n);
    }
    std::string reply;
    char part[65536];
    while (!reply.ends_with('\n')) {
      const ssize_t n = ::read(end_, part, sizeof part);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return stop();
      reply.append(part, static_cast<size_t>(n));
    }
    return reply;
  }

 private:
  void start() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw Error(ErrorKind::io, "no pair of sockets for the reader of tests", kIoFailure);
    const std::string text(embedded("verify/code/tests.py").value());
    end_ = ends[0];
    try {
      pid_ = start_child({python_, "-I", "-S", "-c", text}, {.in = ends[1], .out = ends[1]}, "the reader of tests");
    } catch (...) {
      for (int end : {ends[1], std::exchange(end_, -1)}) ::close(end);
      throw;
    }
    ::close(ends[1]);
  }

  std::string stop() {
    ::close(std::exchange(end_, -1));
    ::waitpid(pid_, nullptr, 0);
    return "";
  }

  const std::string python_;
  std::mutex guard_;
  int end_ = -1, pid_ = -1;
};

// One for each interpreter. It ends with this process.
TestReader& reader_of(const std::string& python) {
  static std::mutex guard;
  static auto& readers = *new std::map<std::string, TestReader>;
  const std::lock_guard lock(guard);
  return readers.try_emplace(python, python).first->second;
}

void add_asserts(const std::string& text, const std::string& entry, const std::string& helpers,
                 const std::string& where, const std::string& python, Tests& out) {
  const Json asked = {{"asserts", text}, {"entry", entry}, {"prelude", out.prelude}, {"helpers", helpers}};
  const std::string line = reader_of(python).ask(json_text(asked) + "\n");
  if (line.empty()) refuse(where, "take too long or too much memory to take apart");
  const Json reply = parse_json_rows(line, "the reader of tests");
  if (reply.contains("refused")) refuse(where, printable(reply["refused"].get<std::string>(), 400));
  if (reply["expected"].size() > kMostTests) refuse(where, str("more than ", kMostTests, " tests"));
  for (const Json& step : reply["steps"]) {
    out.steps.push_back({step[0] == "t" ? Step::Kind::test : Step::Kind::run, step[1].get<std::string>()});
  }
  for (const Json& one : reply["expected"]) {
    const auto literal = one["value"].get<std::string>();
    auto value = parse_value(literal);
    if (!value) refuse(where, str("the expected value ", printable(literal, 80), " cannot be read"));
    out.expected_bytes += literal.size();
    const std::string form = one["form"];
    out.expected.push_back({.form = form == "near"    ? Expected::Form::near
                                    : form == "truth" ? Expected::Form::truth
                                                      : Expected::Form::value,
                            .value = std::move(*value),
                            .tolerance = one.value("tolerance", 0.0),
                            .relative = one.value("relative", 0.0),
                            .negated = one.value("negated", false)});
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

double number_of(const Value& v) {
  return v.kind == Value::Kind::integer ? std::strtod(v.text.c_str(), nullptr) : v.real;
}

constexpr double kNear = 1e-6;  // of reals that published tests expect: what their problems allow

bool is_near(double a, double b) { return a == b || std::abs(a - b) <= kNear * std::max(1.0, std::abs(b)); }

// The same number; within kNear where the expected one has a point.
bool same_number(std::string_view printed, std::string_view expected) {
  if (printed == expected || same_decimal(printed, expected)) return true;
  if (expected.find('.') == std::string_view::npos) return false;
  const auto number = [](std::string_view word) -> std::optional<double> {
    const auto value = parse_value(word);
    if (!value || (value->kind != Value::Kind::integer && value->kind != Value::Kind::real)) return std::nullopt;
    return number_of(*value);
  };
  const auto a = number(printed), b = number(expected);
  return a && b && is_near(*a, *b);
}

// Equal but for blanks at the ends, or word for word the same numbers.
bool same_line(std::string_view a, std::string_view b) {
  a = trim(a), b = trim(b);
  if (a == b) return true;
  const auto x = words(a), y = words(b);
  return x.size() == y.size() && std::ranges::equal(x, y, same_number);
}

bool is_numeric(const Value& v) {
  return v.kind == Value::Kind::integer || v.kind == Value::Kind::real || v.kind == Value::Kind::boolean;
}

// What a function gave, against a value of JSON.
bool alike(const Value& value, const Value& expected) {
  using Kind = Value::Kind;
  const auto is_list = [](const Value& v) { return v.kind == Kind::list || v.kind == Kind::tuple; };
  if (expected.kind == Kind::real) return is_numeric(value) && is_near(number_of(value), expected.real);
  if (is_list(expected)) return is_list(value) && std::ranges::equal(value.items, expected.items, alike);
  if (expected.kind != Kind::dict || value.kind != Kind::dict) return equal(value, expected);
  if (value.items.size() != expected.items.size()) return false;
  for (size_t i = 0; i < expected.items.size(); i += 2) {
    bool found = false;
    for (size_t k = 0; k < value.items.size() && !found; k += 2) {
      const Value &key = value.items[k], &wanted = expected.items[i];  // keys of JSON are texts
      const bool same = equal(key, wanted) || (key.kind == Kind::integer && key.text == wanted.text);
      found = same && alike(value.items[k + 1], expected.items[i + 1]);
    }
    if (!found) return false;
  }
  return true;
}

bool is_within(double a, double b, const Expected& by) {
  if (a == b) return true;
  return std::abs(a - b) <= std::max(by.tolerance, by.relative * std::max(std::abs(a), std::abs(b)));
}

bool counts_as_true(const Value& v) {
  if (v.kind == Value::Kind::integer) return v.text != "0";
  if (is_numeric(v)) return v.real != 0;
  return !v.text.empty() || !v.items.empty();
}

bool is_python(std::string_view language) {
  return language.empty() || language == "python" || language == "py" || language == "python3" || language == "Python";
}

// Blocks are recognized by their opening lines in order; one that never closes (a response cut short) is none.
std::optional<std::string_view> last_block(std::string_view text, bool& fences) {
  std::optional<std::string_view> found;
  bool open = false, python = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(text.substr(at, end - at));
    if (line.starts_with("```")) {
      fences = true;
      if (open && line == "```") {
        if (python) found = text.substr(begin, at - begin);
        open = false;
      } else if (!open) {
        open = true;
        python = is_python(trim(line.substr(3)));
        begin = std::min(end + 1, text.size());
      }
    }
    at = end + 1;
  }
  return found;
}

}  // namespace

Tests read_tests(const std::string& gold, const std::string& where, const std::string& python) {
  Tests out;
  if (!trim(gold).starts_with('{')) {
    add_asserts(gold, "", "", where, python, out);
    return out;
  }
  const Json object = parse_json(gold, where);
  const std::string entry = text_of(object, "entry_point", where);
  if (!is_entry(entry)) refuse(where, str("\"entry_point\": \"", printable(entry, 40), "\" is no name of a function"));
  out.prelude = text_of(object, "prelude", where);
  if (object.contains("asserts")) {
    add_asserts(text_of(object, "asserts", where), entry, text_of(object, "helpers", where), where, python, out);
  } else if (object.contains("calls")) {
    add_calls(pairs(object["calls"], "calls", where), entry, where, out);
  } else if (object.contains("values")) {
    add_values(pairs(object["values"], "values", where), entry, object.value("wrapped", false), where, out);
  } else if (object.contains("stdin")) {
    add_input(pairs(object["stdin"], "stdin", where), out);
  } else {
    refuse(where, "expected asserts, calls, values or stdin");
  }
  return out;
}

bool meets(const Value& value, const Expected& expected) {
  switch (expected.form) {
    case Expected::Form::value:
      if (!expected.published) return equal(value, expected.value);
      return alike(value, expected.value) ||
             (expected.wrapped && expected.value.kind == Value::Kind::list && expected.value.items.size() == 1 &&
              alike(value, expected.value.items[0]));
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
      return is_numeric(value) && is_within(number_of(value), number_of(expected.value), expected);
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

std::optional<std::string_view> find_source(std::string_view response, Extract extract) {
  if (extract == Extract::bare) return trim(response).empty() ? std::nullopt : std::optional(response);
  if (extract == Extract::answer_tag) {
    const auto tag = math::last_answer_tag(response);
    if (!tag) return std::nullopt;
    response = *tag;
  } else {
    response = math::without_thoughts(response);
  }
  bool fences = false;
  const auto block = last_block(response, fences);
  if (block && !trim(*block).empty()) return block;
  if (extract != Extract::lenient || fences || trim(response).empty()) return std::nullopt;
  return response;
}

}  // namespace ucas::code
