// Tests that are text of Python, `assert f(x) == y`, taken apart into what is called and what is expected. Only what a
// reader of literals understands is expected; anything else is refused, because it would have to be evaluated where the
// solution could see it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "verify/code/python_tokens.h"
#include "verify/code/tested_expression.h"
#include "verify/code/tests.h"

namespace ucas::code {

namespace {

bool is_name_byte(char c) {
  return (c >= '0' && c <= '9') || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Past a text that begins at `at`.
size_t after_text(std::string_view s, size_t at) {
  const std::string three(3, s[at]);
  const bool triple = s.substr(at).starts_with(three);
  size_t i = at + (triple ? 3 : 1);
  while (i < s.size()) {
    if (s[i] == '\\') {
      i += 2;
    } else if (triple ? s.substr(i).starts_with(three) : s[i] == s[at]) {
      return i + (triple ? 3 : 1);
    } else if (!triple && s[i] == '\n') {
      return i;
    } else {
      ++i;
    }
  }
  return s.size();
}

// Calls `see(i, depth)` for every byte outside of texts and comments; it returns where to go on (i + 1).
template <class See>
void scan(std::string_view s, const See& see) {
  int depth = 0;
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (c == '"' || c == '\'') {
      i = after_text(s, i);
      continue;
    }
    if (c == '#') {
      i = std::min(s.find('\n', i), s.size());
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    i = see(i, depth);
  }
}

}  // namespace

std::vector<std::string_view> logical_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  scan(text, [&](size_t i, int depth) {
    if (text[i] == '\\' && i + 1 < text.size()) return i + 2;
    if (text[i] == '\n' && depth <= 0) {
      lines.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
    return i + 1;
  });
  // What a comment ends with is its line's end, too.
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

namespace {

size_t indent_of(std::string_view line) {
  const size_t at = line.find_first_not_of(" \t");
  return at == std::string_view::npos ? line.size() : at;
}

bool is_blank(std::string_view line) {
  const std::string_view rest = trim(line);
  return rest.empty() || rest[0] == '#';
}

std::string_view without_comment(std::string_view line) {
  size_t end = line.size();
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '"' || line[i] == '\'') {
      i = after_text(line, i);
    } else if (line[i] == '#') {
      end = i;
      break;
    } else {
      ++i;
    }
  }
  return trim(line.substr(0, end));
}

// Where `mark` stands outside of brackets and texts; npos: nowhere, or more than once.
size_t lone(std::string_view s, std::string_view mark) {
  size_t found = std::string_view::npos;
  bool twice = false;
  scan(s, [&](size_t i, int depth) {
    if (depth == 0 && s.substr(i).starts_with(mark)) {
      twice |= found != std::string_view::npos;
      found = i;
      return i + mark.size();
    }
    return i + 1;
  });
  return twice ? std::string_view::npos : found;
}

// The arguments of the call that all of `s` is: "f(a, b)", "f" -> {a, b}.
std::vector<std::string_view> arguments(std::string_view s, std::string_view name) {
  if (!s.starts_with(name) || !s.ends_with(')') || s.size() < name.size() + 2 || s[name.size()] != '(') return {};
  const std::string_view inner = s.substr(name.size() + 1, s.size() - name.size() - 2);
  std::vector<std::string_view> parts;
  size_t begin = 0;
  bool closed = false;
  scan(inner, [&](size_t i, int depth) {
    closed |= depth < 0;
    if (inner[i] == ',' && depth == 0) {
      parts.push_back(trim(inner.substr(begin, i - begin)));
      begin = i + 1;
    }
    return i + 1;
  });
  if (closed) return {};
  parts.push_back(trim(inner.substr(begin)));
  return parts;
}

class Splitter {
 public:
  Splitter(const std::string& entry, const std::string& where, Tests& out)
      : entry_(entry), where_(where), out_(out), expressions_(entry, out.prelude) {}

  void whole(std::string_view text) {
    run(text);
    keep_expected_outside();
  }

 private:
  void run(std::string_view text) {
    const std::vector<std::string_view> lines = logical_lines(text);
    for (size_t i = 0; i < lines.size();) {
      if (is_blank(lines[i])) {
        ++i;
        continue;
      }
      size_t end = i + 1;
      // An indented block belongs to the statement above it, and so does what continues one.
      while (end < lines.size() &&
             (is_blank(lines[end]) || indent_of(lines[end]) > indent_of(lines[i]) || continues(trim(lines[end])))) {
        ++end;
      }
      statement(lines, i, end);
      i = end;
    }
    if (out_.expected.empty()) refuse(text, "holds no assert");
  }

  [[noreturn]] void refuse(std::string_view what, const std::string& why) const {
    throw Error(ErrorKind::data_line, str(where_, ": tests: \"", printable(trim(what), 80), "\" ", why));
  }

  static bool continues(std::string_view line) {
    for (std::string_view word : {"else", "elif", "except", "finally"}) {
      if (line.starts_with(word) && (line.size() == word.size() || !is_name_byte(line[word.size()]))) return true;
    }
    return false;
  }

  void statement(const std::vector<std::string_view>& lines, size_t begin, size_t end) {
    const std::string_view first = trim(lines[begin]);
    if (first.starts_with("def check(") && end > begin + 1) return check(lines, begin, end);
    if (first.starts_with("assert ") || first.starts_with("assert(")) return assertion(trim(first.substr(6)));
    // check(f) at the end: what it would call has been called by then, but for the name of the function.
    if (first.starts_with("check(")) return;
    std::string text;
    const size_t indent = indent_of(lines[begin]);
    for (size_t i = begin; i < end; ++i) {
      const std::string_view line = lines[i];
      if (is_blank(line)) continue;  // a comment may say what is expected
      text += std::string(line.substr(std::min(indent, indent_of(line)))) + "\n";
    }
    if (has_word(text, "assert")) refuse(first, "has asserts inside; expected each on a line of its own");
    expressions_.statement(text);
    note_constant(text);
    out_.steps.push_back({Step::Kind::run, std::move(text)});
  }

  static bool has_word(std::string_view text, std::string_view word) {
    bool found = false;
    scan(text, [&](size_t i, int) {
      const bool starts = i == 0 || !is_name_byte(text[i - 1]);
      const bool ends = i + word.size() >= text.size() || !is_name_byte(text[i + word.size()]);
      found |= starts && ends && text.substr(i).starts_with(word);
      return i + 1;
    });
    return found;
  }

  // expected = [1, 2]: the value of a name, as long as no other statement mentions it.
  void note_constant(std::string_view text) {
    for (std::string_view name : names_in(text)) {
      if (const auto known = constants_.find(name); known != constants_.end()) constants_.erase(known);
    }
    const size_t equals = text.find('=');
    const std::string_view name = trim(text.substr(0, equals));
    if (equals == std::string_view::npos || name.empty() || !std::ranges::all_of(name, is_name_byte)) return;
    const std::string_view value = trim(text.substr(equals + 1));
    if (!parse_value(without_comment(value))) return;
    constants_[std::string(name)] = std::string(without_comment(value));
    assignments_.emplace_back(out_.steps.size(), std::string(name));
  }

  std::optional<Value> value_of(std::string_view text) const {
    const auto found = constants_.find(text);
    return parse_value(found == constants_.end() ? text : std::string_view(found->second));
  }

  // A name that nothing inside reads, because it is what asserts expect, stays out of the sandbox.
  void keep_expected_outside() {
    std::map<std::string_view, size_t> steps, assigned;  // how many hold a name, how many only set it
    for (const Step& step : out_.steps) {
      const std::vector<std::string_view> names = names_in(step.code);
      for (std::string_view name : std::set(names.begin(), names.end())) ++steps[name];
    }
    for (const auto& [index, name] : assignments_) ++assigned[name];
    std::vector<bool> left_out(out_.steps.size(), false);
    for (const auto& [index, name] : assignments_) left_out[index] = steps[name] == assigned[name] && name != entry_;
    std::vector<Step> kept;
    for (size_t i = 0; i < out_.steps.size(); ++i) {
      if (!left_out[i]) kept.push_back(std::move(out_.steps[i]));
    }
    out_.steps = std::move(kept);
  }

  // def check(candidate): its body, with the function under that name.
  void check(const std::vector<std::string_view>& lines, size_t begin, size_t end) {
    const std::string_view head = trim(lines[begin]);
    const std::string_view name =
        trim(head.substr(10, head.find(')') == std::string_view::npos ? 0 : head.find(')') - 10));
    std::string entry = entry_;
    for (size_t i = end; i < lines.size(); ++i) {  // check(f)
      const std::string_view line = without_comment(lines[i]);
      if (line.starts_with("check(") && line.ends_with(')')) entry = line.substr(6, line.size() - 7);
    }
    if (entry.empty()) refuse(head, "does not say which function it checks; expected \"entry_point\"");
    out_.steps.push_back({Step::Kind::run, str(name, " = ", entry, "\n")});
    expressions_.also_entry(name);
    std::string body;
    size_t indent = std::string::npos;
    for (size_t i = begin + 1; i < end; ++i) {
      if (is_blank(lines[i])) continue;
      if (indent == std::string::npos) indent = indent_of(lines[i]);
      body += std::string(lines[i].substr(std::min(indent, indent_of(lines[i])))) + "\n";
    }
    entry_ = name;
    run(body);
  }

  void assertion(std::string_view condition) {
    condition = without_comment(condition);
    if (const size_t comma = lone(condition, ","); comma != std::string_view::npos) {
      condition = trim(condition.substr(0, comma));  // what it would say
    }
    while (condition.starts_with('(') && arguments(condition, "").size() == 1) {
      condition = trim(condition.substr(1, condition.size() - 2));
    }
    if (compared(condition) || same(condition) || close(condition) || plain(condition)) return;
    refuse(condition, "cannot be taken apart; expected assert CALL == LITERAL");
  }

  void add(std::string_view code, Expected expected) {
    if (const std::string why = expressions_.refusal(code, expected.value); !why.empty()) refuse(code, why);
    if (out_.expected.size() >= kMostTests) refuse(code, "is one test too many");
    out_.steps.push_back({Step::Kind::test, std::string(trim(code))});
    out_.expected.push_back(std::move(expected));
  }

  bool compared(std::string_view condition) {
    for (std::string_view mark : {"==", " is "}) {
      const size_t at = lone(condition, mark);
      if (at == std::string_view::npos) continue;
      const std::string_view left = trim(condition.substr(0, at)), right = trim(condition.substr(at + mark.size()));
      auto value = value_of(right);
      const bool turned = !value;
      if (turned) value = value_of(left);
      if (!value) return false;
      out_.expected_bytes += turned ? left.size() : right.size();
      add(turned ? right : left, {.value = std::move(*value)});
      return true;
    }
    return false;
  }

  // is_same_list(f(x), list_node([..])): the harness gives nodes as lists.
  bool same(std::string_view condition) {
    for (const auto& [name, maker] : {std::pair{"is_same_list", "list_node"}, std::pair{"is_same_tree", "tree_node"}}) {
      const auto parts = arguments(condition, name);
      if (parts.size() != 2) continue;
      const auto inner = arguments(parts[1], maker);
      if (inner.size() != 1) continue;
      auto value = parse_value(inner[0]);
      if (!value || value->kind != Value::Kind::list) continue;
      while (!value->items.empty() && value->items.back().kind == Value::Kind::none) value->items.pop_back();
      if (value->items.empty()) *value = Value{};  // no node at all
      out_.expected_bytes += inner[0].size();
      add(parts[0], {.value = std::move(*value)});
      return true;
    }
    return false;
  }

  // abs(f(x) - 0.5) < 1e-6
  bool close(std::string_view condition) {
    size_t at = lone(condition, "<=");
    const size_t width = at == std::string_view::npos ? 1 : 2;
    if (at == std::string_view::npos) at = lone(condition, "<");
    if (at == std::string_view::npos) return false;
    const auto tolerance = parse_value(condition.substr(at + width));
    const auto inner = arguments(trim(condition.substr(0, at)), "abs");
    if (!tolerance || tolerance->kind != Value::Kind::real || inner.size() != 1) return false;
    const size_t minus = lone(inner[0], " - ");
    if (minus == std::string_view::npos) return false;
    auto value = parse_value(inner[0].substr(minus + 3));
    if (!value || (value->kind != Value::Kind::real && value->kind != Value::Kind::integer)) return false;
    add(inner[0].substr(0, minus),
        {.form = Expected::Form::near, .value = std::move(*value), .tolerance = tolerance->real});
    return true;
  }

  // assert f(x), assert not f(x): of the function itself; of another one the arguments may be what is expected.
  bool plain(std::string_view condition) {
    const bool negated = condition.starts_with("not ");
    if (negated) condition = trim(condition.substr(4));
    const size_t open = condition.find('(');
    if (open == std::string_view::npos || !condition.ends_with(')')) return false;
    const bool own = (!entry_.empty() && condition.starts_with(entry_ + "(")) || condition.starts_with("candidate(") ||
                     condition.starts_with("Solution().");
    if (!own) return false;
    const std::string_view name = condition.starts_with("Solution().")
                                      ? condition.substr(0, condition.find('(', std::string_view("Solution()").size()))
                                      : condition.substr(0, open);
    if (name.size() >= condition.size() || arguments(condition, name).empty()) return false;
    add(condition, {.form = Expected::Form::truth, .negated = negated});
    return true;
  }

  std::string entry_;
  const std::string& where_;
  Tests& out_;
  TestedExpressions expressions_;
  std::map<std::string, std::string, std::less<>> constants_;
  std::vector<std::pair<size_t, std::string>> assignments_;  // of literals: their step, their name
};

}  // namespace

void split_asserts(std::string_view text, const std::string& entry_point, const std::string& where, Tests& out) {
  Splitter(entry_point, where, out).whole(text);
}

}  // namespace ucas::code
