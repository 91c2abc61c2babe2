#include "verify/code/tested_expression.h"

#include <algorithm>
#include <set>

#include "base/str.h"
#include "verify/code/python_tokens.h"

namespace ucas::code {

namespace {

using Kind = Inside::Kind;
using Words = std::set<std::string_view>;

// Functions that compare, or run a text, whatever they are given.
const Words& deciding() {
  static const Words words = {"eq",        "ne",    "lt",     "le",      "gt",       "ge",       "is_",
                              "is_not",    "eval",  "exec",   "compile", "isclose",  "allclose", "array_equal",
                              "fullmatch", "match", "search", "truth",   "contains", "compare",  "__import__"};
  return words;
}

bool runs_text(std::string_view name) {
  return name == "eval" || name == "exec" || name == "compile" || name == "__import__";
}

// Functions of Python whose further arguments say how, not what.
const Words& converting() {
  static const Words words = {"round", "int",    "sorted", "map",  "range", "zip", "enumerate", "dict",
                              "join",  "format", "tuple",  "list", "str",   "len", "islice"};
  return words;
}

// Methods that compare what they are called on, or its items, with an argument.
const Words& searching() {
  static const Words words = {"count",      "index",      "find",       "remove",       "issubset",
                              "issuperset", "isdisjoint", "difference", "intersection", "symmetric_difference",
                              "startswith", "endswith",   "get",        "pop"};
  return words;
}

const Words& library() {
  static const Words words = {
      "abs",       "all",         "any",         "ascii",      "bin",        "bool",      "bytearray", "bytes",
      "callable",  "chr",         "dict",        "divmod",     "enumerate",  "eval",      "exec",      "compile",
      "filter",    "float",       "format",      "frozenset",  "getattr",    "hasattr",   "hash",      "hex",
      "id",        "int",         "isinstance",  "issubclass", "iter",       "len",       "list",      "map",
      "max",       "min",         "next",        "oct",        "ord",        "pow",       "print",     "range",
      "repr",      "reversed",    "round",       "set",        "slice",      "sorted",    "str",       "sum",
      "tuple",     "type",        "zip",         "math",       "itertools",  "functools", "operator",  "collections",
      "Counter",   "OrderedDict", "defaultdict", "deque",      "Fraction",   "Decimal",   "ListNode",  "TreeNode",
      "list_node", "tree_node",   "inf",         "nan",        "__import__", "isclose",   "np",        "numpy",
      "copy",      "deepcopy",    "json",        "re",         "string",     "random",    "chain",     "islice",
      "reduce"};
  return words;
}

constexpr int kDepth = 150;  // of brackets; what lies deeper is refused

// Does the body of a function compare? `x is None`, which no object can answer for itself, does not count.
bool body_compares(std::span<const Token> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.type == Token::Type::mark ? compares(token)
                                        : token.type == Token::Type::name && deciding().contains(token.text)) {
      return true;
    }
    if (token.type != Token::Type::name) continue;
    const auto next = [&](size_t by) { return i + by < tokens.size() ? tokens[i + by].text : std::string_view(); };
    if (token.text == "is" && next(1) != "None" && !(next(1) == "not" && next(2) == "None")) return true;
    if (token.text == "in") {
      size_t back = i;  // for a, (b, c) in
      while (back > 0 && tokens[back - 1].text != "for" &&
             (tokens[back - 1].type == Token::Type::name ||
              std::string_view(",()").find(tokens[back - 1].text) != std::string_view::npos)) {
        --back;
      }
      if (back == 0 || tokens[back - 1].text != "for") return true;
    }
  }
  return false;
}

// Values that an object of the program's own can give without knowing anything: of a comparison, a difference, a
// search.
bool is_guessable(const Value& v) {
  switch (v.kind) {
    case Value::Kind::none:
    case Value::Kind::boolean:
      return true;
    case Value::Kind::integer:
      return v.text == "0" || v.text == "1" || v.text == "-1";
    case Value::Kind::real:
      return v.real == 0 || v.real == 1 || v.real == -1;
    case Value::Kind::text:
    case Value::Kind::bytes:
      return v.text.empty() || v.text == "True" || v.text == "False" || v.text == "None" || v.text == "0" ||
             v.text == "1";
    case Value::Kind::dict:
      for (size_t i = 1; i < v.items.size(); i += 2) {
        if (!is_guessable(v.items[i])) return false;
      }
      return true;
    default:
      return std::ranges::all_of(v.items, is_guessable);
  }
}

bool is_header(std::string_view line) {
  static const Words words = {"for", "while", "if", "elif", "with", "else", "try", "except", "finally", "async"};
  const std::vector<Token> tokens = tokens_of(line.substr(0, 8));
  return !tokens.empty() && words.contains(tokens[0].text);
}

// a; b
std::vector<std::string_view> parts_of(std::string_view line) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (const Token& token : tokens_of(line)) {
    if (token.text != ";") continue;
    const auto at = static_cast<size_t>(token.text.data() - line.data());
    parts.push_back(trim(line.substr(begin, at - begin)));
    begin = at + 1;
  }
  parts.push_back(trim(line.substr(begin)));
  return parts;
}

// Follows an expression from left to right. Python's precedence does not matter for what is asked here.
class ExpressionReader {
 public:
  ExpressionReader(const TestedExpressions& tests, std::string_view text)
      : tests_(tests), text_(text), tokens_(tokens_of(text)) {}

  // All of the text, also with commas.
  Inside whole() {
    Inside all = expression();
    const bool lone = at_ == tokens_.size();
    while (at_ < tokens_.size()) {
      ++at_;
      all.add(expression());
    }
    if (!lone) all.kind = Kind::value;
    return all;
  }
  // Literals outside of the arguments of the solution's functions.
  const std::vector<Value>& literals() const { return literals_; }
  // Does a name stand there that holds a literal?
  bool reads_variables() const { return variables_; }

 private:
  using Type = Token::Type;

  Token peek(size_t ahead = 0) const { return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : Token{}; }
  bool peek_is(std::string_view text) const {
    return at_ < tokens_.size() && tokens_[at_].text == text && tokens_[at_].type != Type::text;
  }
  bool take(std::string_view text) {
    if (!peek_is(text)) return false;
    ++at_;
    return true;
  }
  static bool ends(const Token& token) {
    if (token.type == Type::name) return token.text == "for" || token.text == "async";
    return token.type == Type::end ||
           (token.type == Type::mark &&
            (token.text == ")" || token.text == "]" || token.text == "}" || token.text == "," || token.text == ":" ||
             token.text == "=" || token.text == ";"));
  }

  Inside expression() {
    Inside all;
    int parts = 0;
    bool operates = false, asks = false, branches = false;
    while (!ends(peek())) {
      const Token token = peek();
      if (compares(token)) {
        asks = true;
        ++at_;
      } else if (token.type == Type::name && (token.text == "and" || token.text == "or")) {
        operates |= parts > 0;
        ++at_;
      } else if (token.type == Type::name && (token.text == "not" || token.text == "if" || token.text == "else")) {
        branches = true;  // on what counts as true, which tells a result nothing
        ++at_;
      } else if (token.type == Type::name && token.text == "lambda") {
        all.add(lambda());
        ++parts;
      } else if (token.type == Type::mark && token.text != "(" && token.text != "[" && token.text != "{" &&
                 token.text != "...") {
        operates |= parts > 0;
        ++at_;
      } else {
        const Inside part = primary();
        if (parts++ == 0) all.kind = part.kind;
        all.add(part);
      }
    }
    if (parts != 1 || operates || asks || branches) all.kind = Kind::value;
    all.compares |= asks && all.result;
    all.combines |= operates && all.result && all.other;
    return all;
  }

  // Its parameters may be anything that the function which it is given to has.
  Inside lambda() {
    ++at_;
    if (++depth_ > kDepth) return give_up();
    const auto before = local_;
    for (; !peek_is(":") && peek().type != Type::end; ++at_) {
      if (peek().type == Type::name) local_[peek().text] = {.result = in_arguments_ == 0, .other = in_arguments_ > 0};
    }
    take(":");
    const Inside body = expression();
    local_ = before;
    --depth_;
    return body;
  }

  // What brackets hold, to the closing one. `for` clauses are read first: they say what the names in front of them are.
  Inside inside(std::string_view close) {
    if (++depth_ > kDepth) return give_up();
    const auto before = local_;
    const size_t begin = at_;
    Inside conditions;
    size_t after = begin;
    if (const size_t clause = find_for(); clause != std::string_view::npos) {
      at_ = clause;
      while (peek_is("for") || peek_is("async") || peek_is("if")) {
        if (take("if")) {
          Inside condition = expression();
          conditions.compares |= condition.compares;
          continue;
        }
        take("async");
        conditions.compares |= bind_for();
      }
      after = at_;
      at_ = begin;
    }
    Inside all;
    int items = 0;
    while (peek().type != Type::end && !peek_is(close)) {
      const size_t from = at_;
      if (peek().type == Type::name && peek(1).text == "=") at_ += 2;  // key=value
      const Inside item = expression();
      if (items++ == 0) all.kind = item.kind;
      all.add(item);
      if (peek_is("for") || peek_is("async")) {
        at_ = std::max(after, at_ + 1);
        all.kind = Kind::value;
        continue;
      }
      if (peek_is(",") || peek_is(":") || peek_is("=") || peek_is(";")) {
        all.kind = Kind::value;
        ++at_;
      } else if (at_ == from) {
        if (peek_is(close)) break;
        ++at_;  // an unmatched bracket: no Python
      }
    }
    take(close);
    all.compares |= conditions.compares;
    local_ = before;
    --depth_;
    return all;
  }

  Inside give_up() {
    at_ = tokens_.size();
    return {.result = true, .compares = true};
  }

  // for TARGETS in EXPRESSION
  bool bind_for() {
    take("for");
    std::vector<std::string_view> targets;
    for (; !peek_is("in") && peek().type != Type::end; ++at_) {
      if (peek().type == Type::name) targets.push_back(peek().text);
    }
    take("in");
    Inside of;
    while (!ends(peek()) && !peek_is("if")) {
      if (peek().type == Type::mark && std::string_view("([{").find(peek().text) == std::string_view::npos) {
        ++at_;
        continue;
      }
      of.add(primary());
    }
    for (std::string_view name : targets)
      local_[name] = {.result = of.result, .other = !of.result, .compares = of.compares};
    return of.compares;
  }

  // The first `for` of the bracket that we are in.
  size_t find_for() const {
    int depth = 0;
    for (size_t i = at_; i < tokens_.size() && depth >= 0; ++i) {
      if (tokens_[i].type == Type::mark) {
        depth += opens(tokens_[i]);
      } else if (depth == 0 && tokens_[i].type == Type::name && tokens_[i].text == "for") {
        return i > at_ && tokens_[i - 1].text == "async" ? i - 1 : i;
      }
    }
    return std::string_view::npos;
  }

  Inside primary() {
    const Token token = peek();
    const size_t from = at_;
    ++at_;
    Inside value;
    name_ = {};
    bool text = false;
    if (token.type == Type::text || token.type == Type::formatted) {
      value.other = text = true;
      bool formatted = token.type == Type::formatted;
      for (; peek().type == Type::text || peek().type == Type::formatted; ++at_)
        formatted |= peek().type == Type::formatted;
      if (formatted) read_formatted(from, value);
    } else if (token.type == Type::number) {
      value.other = true;
    } else if (token.type == Type::name) {
      value = named(token.text);
    } else if (token.text == "(") {
      value = inside(")");
    } else if (token.text == "[") {
      value = inside("]");
      value.kind = Kind::value;
    } else if (token.text == "{") {
      value = inside("}");
      value.kind = Kind::value;
    }
    if (!value.result && value.other && in_arguments_ == 0) note_literal(from);
    return trailers(value, text);
  }

  // f"{f(1) == 5}": what stands in the braces is an expression, too.
  void read_formatted(size_t from, Inside& value) const {
    for (size_t i = from; i < at_; ++i) {
      const size_t open = tokens_[i].text.find('{');
      if (tokens_[i].type != Type::formatted || open == std::string_view::npos) continue;
      value.result = true;
      for (const Token& inner : tokens_of(tokens_[i].text.substr(open + 1))) value.compares |= compares(inner);
    }
  }

  void note_literal(size_t from) {
    if (from >= at_) return;
    const char* begin = tokens_[from].text.data();
    const char* end = tokens_[at_ - 1].text.data() + tokens_[at_ - 1].text.size();
    auto value = parse_value({begin, static_cast<size_t>(end - begin)});
    if (!value) return;
    literals_.push_back(*value);
    if (value->kind == Value::Kind::integer) literals_.push_back({.kind = value->kind, .text = "-" + value->text});
    if (value->kind == Value::Kind::real) literals_.push_back({.kind = value->kind, .real = -value->real});
  }

  Inside named(std::string_view name) {
    name_ = name;
    if (name == "None" || name == "True" || name == "False") return {.other = true};
    if (const auto found = local_.find(name); found != local_.end()) return found->second;
    if (const auto found = tests_.names().find(name); found != tests_.names().end()) {
      variables_ |= in_arguments_ == 0 && found->second.kind == Kind::value && !found->second.result;
      return found->second;
    }
    if (library().contains(name)) return {.kind = Kind::library};
    return {.kind = Kind::solution, .result = true};
  }

  // .name, (..), [..] behind a value; `text`: it is a literal text.
  Inside trailers(Inside value, bool text) {
    std::string_view method;
    for (;;) {
      if (take(".")) {
        method = name_ = peek().text;
        if (peek().type == Type::name) ++at_;
        if (method.starts_with("__") && value.result) value.compares = true;
        if (value.kind == Kind::instance) value.kind = Kind::solution;
      } else if (take("(")) {
        value = called(value, method, text);
        method = {};
        text = false;
      } else if (take("[")) {
        const Inside index = inside("]");
        // An index decides nothing, but a result that a table is asked for does.
        value.compares |= index.compares || (index.result && value.other);
        value.combines |= index.combines;
        value.result |= index.result;
        value.kind = Kind::value;
        method = {};
        text = false;
      } else {
        return value;
      }
    }
  }

  Inside called(const Inside& function, std::string_view method, bool text) {
    const std::string_view name = name_;
    if (function.kind == Kind::solution && !is_other_than_entry(name, method)) return call_of_solution(name);
    const Inside arguments = inside(")");
    Inside out = arguments;
    out.kind = Kind::value;
    if (function.kind == Kind::solution || function.kind == Kind::helper) {
      out.result |= function.result;
      if (!out.result) return {.other = true};  // makes an input
      out.compares |= function.compares;
      out.combines |= arguments.result && arguments.other;
      return out;
    }
    if (function.kind == Kind::library) {
      if (converting().contains(name)) {
        out.other &= !out.result;
      } else {
        out.combines |= out.result && out.other;
      }
      out.compares |= (out.result && deciding().contains(name)) || runs_text(name);
      return out;
    }
    // A method of a value: "".join(f(1)), f(1).count(2)
    out.add(function);
    if (text && converting().contains(method)) {
      out.other &= !out.result;
      return out;
    }
    out.combines |= out.result && out.other;
    out.compares |= searching().contains(method) && function.other && out.result;
    return out;
  }

  // With the function under test known, a call of another one around its result is a helper's.
  bool is_other_than_entry(std::string_view name, std::string_view method) const {
    if (tests_.entry().empty() || !method.empty() || (!name.empty() && name[0] >= 'A' && name[0] <= 'Z')) return false;
    if (name == tests_.entry()) return false;
    const auto found = tests_.names().find(name);
    return found == tests_.names().end() || found->second.kind != Kind::solution;
  }

  Inside call_of_solution(std::string_view name) {
    ++in_arguments_;
    const Inside arguments = inside(")");
    --in_arguments_;
    const bool is_class = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
    return {.kind = is_class ? Kind::instance : Kind::value, .result = true, .compares = arguments.compares};
  }

  const TestedExpressions& tests_;
  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::map<std::string_view, Inside> local_;  // of comprehensions and lambdas
  std::string_view name_;                     // the last one of a chain: what is called
  bool variables_ = false;
  int depth_ = 0;         // of brackets and lambdas
  int in_arguments_ = 0;  // of functions of the solution
  std::vector<Value> literals_;
};

}  // namespace

TestedExpressions::TestedExpressions(const std::string& entry, std::string_view prelude) : entry_(entry) {
  also_entry("candidate");
  const std::vector<std::string_view> lines = logical_lines(prelude);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("import ") || lines[i].starts_with("from ")) define(lines[i]);
    if (!lines[i].starts_with("def ") && !lines[i].starts_with("class ")) continue;
    size_t end = i + 1;
    while (end < lines.size() &&
           (trim(lines[end]).empty() || lines[end].starts_with(' ') || lines[end].starts_with('\t'))) {
      ++end;
    }
    define({lines[i].data(), static_cast<size_t>(lines[end - 1].data() + lines[end - 1].size() - lines[i].data())});
  }
}

// def, class, import: names that are not the solution's.
void TestedExpressions::define(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty()) return;
  if (tokens[0].text == "import" || tokens[0].text == "from") {
    for (size_t i = 1; i < tokens.size(); ++i) {
      if (tokens[i].type == Token::Type::name) names_.emplace(tokens[i].text, Inside{.kind = Kind::library});
    }
    return;
  }
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].text != "def" && tokens[i].text != "class") continue;
    names_[std::string(tokens[i + 1].text)] = helper(tokens, i + 2, tokens[i + 1].text);
    return;
  }
}

// A function of the tests; its body begins at `from`. What calls a name that the tests do not know calls the solution.
Inside TestedExpressions::helper(std::span<const Token> tokens, size_t from, std::string_view name) const {
  static const Words keywords = {"if",  "elif", "while", "for",    "in",    "is",
                                 "not", "and",  "or",    "return", "yield", "else"};
  Inside found{.kind = Kind::helper, .compares = body_compares(tokens)};
  for (size_t i = std::max<size_t>(from, 1); i + 1 < tokens.size(); ++i) {
    const std::string_view word = tokens[i].text;
    const bool called = tokens[i].type == Token::Type::name && tokens[i + 1].text == "(" && tokens[i - 1].text != ".";
    if (!called || word == name || tokens[i - 1].text == "def" || keywords.contains(word) || library().contains(word)) {
      continue;
    }
    const auto known = names_.find(word);
    found.result |= known == names_.end() || known->second.kind == Kind::solution || known->second.result;
  }
  return found;
}

void TestedExpressions::assign(std::string_view targets, const Inside& value) {
  const std::vector<Token> tokens = tokens_of(targets);
  const bool lone = tokens.size() == 1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == ":" && tokens[0].type == Token::Type::name) break;  // x: int = 3
    if (tokens[i].type != Token::Type::name || (i > 0 && tokens[i - 1].text == ".")) continue;
    Inside& known = names_[std::string(tokens[i].text)];
    if (lone) {
      known = value;
    } else {
      known.add(value);
    }
  }
}

// One statement without a block.
void TestedExpressions::simple(std::string_view text, bool decided) {
  if (text.starts_with("import ") || text.starts_with("from ")) return define(text);
  // The last = outside of brackets: what is in front of it is given the value.
  const std::vector<Token> tokens = tokens_of(text);
  int depth = 0;
  const char* equals = nullptr;
  bool in_place = false;
  for (const Token& token : tokens) {
    if (token.type != Token::Type::mark) continue;
    depth += opens(token);
    if (depth != 0 || !token.text.ends_with('=') || compares(token)) continue;
    equals = token.text.data();
    in_place = token.text.size() > 1;
  }
  std::string_view targets, value = text;
  if (equals != nullptr) {
    targets = text.substr(0, static_cast<size_t>(equals - text.data()));
    value = text.substr(std::min(text.size(), text.find('=', targets.size()) + 1));
  }
  const std::string_view right = trim(value);
  if (right.starts_with("lambda") && equals != nullptr && !in_place) {
    const std::string_view name = trim(targets);
    return assign(name, helper(tokens_of(right), 1, name));
  }
  Inside what = ExpressionReader(*this, value).whole();
  what.compares |= decided;
  if (equals != nullptr && !in_place) return assign(targets, what);
  // x += 3, x.append(f(1))
  if (tokens.empty() || tokens[0].type != Token::Type::name) return;
  const auto found = names_.find(tokens[0].text);
  if (found == names_.end() || found->second.kind != Kind::value) return;
  if (in_place) what.combines |= found->second.result != what.result && (found->second.other || what.other);
  found->second.add(what);
}

void TestedExpressions::statement(std::string_view text) {
  const std::string_view first = trim(text);
  for (std::string_view word : {"def ", "class ", "async def ", "@"}) {
    if (first.starts_with(word)) return define(text);
  }
  bool decided = false;  // by a condition above
  for (std::string_view line : logical_lines(text)) {
    line = trim(line);
    while (is_header(line)) line = trim(after_header(line, decided));
    for (std::string_view part : parts_of(line)) simple(part, decided);
  }
}

// for x in xs: ..; gives what follows the colon.
std::string_view TestedExpressions::after_header(std::string_view line, bool& decided) {
  int depth = 0;
  size_t colon = line.size();
  for (const Token& token : tokens_of(line)) {
    depth += opens(token);
    if (depth != 0 || token.text != ":") continue;
    colon = static_cast<size_t>(token.text.data() - line.data());
    break;
  }
  const std::string_view head = line.substr(0, colon);
  const std::string_view word = head.substr(0, head.find_first_of(" (\t"));
  const std::string_view rest = head.substr(word.size());
  if (word == "for") {
    const size_t in = rest.find(" in ");
    if (in != std::string_view::npos) assign(rest.substr(0, in), ExpressionReader(*this, rest.substr(in + 4)).whole());
  } else if (word == "while" || word == "if" || word == "elif") {
    decided |= ExpressionReader(*this, rest).whole().compares;
  }
  return line.substr(std::min(line.size(), colon + 1));
}

std::string TestedExpressions::refusal(std::string_view expression, const Value& expected) const {
  ExpressionReader reader(*this, expression);
  const Inside what = reader.whole();
  if (what.compares) {
    return "compares inside the tested expression, where an object of the program's own decides how it ends; expected "
           "assert CALL == LITERAL, which is compared outside";
  }
  const bool given = reader.reads_variables() ||
                     std::ranges::any_of(reader.literals(), [&](const Value& v) { return equal(v, expected); });
  if (what.combines && (given || is_guessable(expected))) {
    return "hands the program a value that says what is expected; expected assert CALL == LITERAL, with the value on "
           "the "
           "right";
  }
  return "";
}

}  // namespace ucas::code
