#include "verify/math/compare/compare.h"

#include <algorithm>
#include <iterator>

#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/parser.h"

namespace ucas::math {

namespace {

constexpr int64_t kNestingLimit = 200;

int64_t nesting(std::string_view text) {
  int64_t depth = 0, deepest = 0;
  for (char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

constexpr std::string_view kGreek =
    "\\alpha \\beta \\gamma \\delta \\epsilon \\theta \\lambda \\mu \\rho \\sigma \\tau \\phi \\varphi \\omega";

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

// x, x_1, x_{10}, f(x), \theta. Anything else before "=" is part of the answer: "\not" turns the meaning around.
bool is_variable(std::string_view name) {
  if (in_words(kGreek, name)) return true;
  if (name.empty() || name.size() > 6 || !is_alphanumeric(name[0]) || name[0] <= '9') return false;
  std::string_view tail = name.substr(1);
  if (tail.starts_with("_{") && tail.ends_with("}")) {
    tail = tail.substr(2, tail.size() - 3);
  } else if (tail.starts_with("(") && tail.ends_with(")")) {
    tail = tail.substr(1, tail.size() - 2);
  } else if (tail.size() == 2 && tail[0] == '_') {
    tail = tail.substr(1);
  } else if (!tail.empty()) {
    return false;
  }
  return std::all_of(tail.begin(), tail.end(), is_alphanumeric);
}

// Splits "x = 5" at its only sign of equality.
std::string_view take_variable(std::string_view text, std::string& variable) {
  size_t equals = text.find('=');
  if (equals == std::string_view::npos || text.find('=', equals + 1) != std::string_view::npos) return text;
  std::string_view name = trim(text.substr(0, equals)), value = trim(text.substr(equals + 1));
  if (!is_variable(name) || value.empty()) return text;
  variable = text_key(name);
  return value;
}

bool shows_places(const ReadAnswer& a) { return a.source.find('.') != std::string::npos; }

// Two numbers in normalised text. nullopt: rules beyond "the same number" may apply (units, percent, rounded decimals).
std::optional<Comparison> compare_numbers(const ReadAnswer& gold, const ReadAnswer& answer) {
  if (gold.percent != answer.percent) return std::nullopt;
  if (gold.number == answer.number) return Comparison{VerdictKind::equal, "the same number"};
  if (shows_places(gold) || shows_places(answer) || gold.percent) return std::nullopt;
  return Comparison{VerdictKind::unequal, "a different number"};
}

// "3,5", "-0,25 cm", "1.234,5" and "12 345,6" with a point for the comma: what they say where a comma is the decimal
// sign. nullopt for anything else, also where the comma may part thousands.
std::optional<std::string> with_decimal_point(std::string_view text) {
  text = trim(text);
  size_t i = text.starts_with('-') || text.starts_with('+'), first = i;
  auto digits = [&] {
    size_t from = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - from;
  };
  size_t whole = digits(), groups = 0;
  char separator = i < text.size() ? text[i] : ' ';
  while (whole <= 3 && i < text.size() && text[i] == separator && (separator == '.' || separator == ' ')) {
    ++i;
    if (digits() != 3) return std::nullopt;
    ++groups;
  }
  if (whole == 0 || i >= text.size() || text[i] != ',') return std::nullopt;
  std::string out(text.substr(0, i));
  std::erase_if(out, [](char c) { return c == '.' || c == ' '; });
  size_t comma = i++;
  size_t decimals = digits();
  bool thousands = decimals == 3 && groups == 0 && whole <= 3 && text[first] != '0';
  if (decimals == 0 || thousands) return std::nullopt;
  if (i < text.size() && (text[i] == ',' || text[i] == '.' || text[i] == ';')) return std::nullopt;
  return str(out, ".", text.substr(comma + 1));
}

// 1.5; 2.5 from 1,5; 2,5 and [1.5; 2.5] from [1,5; 2,5]: where semicolons part the values, a comma between digits is a
// decimal comma, unless it is the only sign inside its brackets. nullopt for anything else.
std::optional<std::string> with_decimal_points(std::string_view text) {
  std::string out(text);
  struct Open {
    bool comma = false, semicolon = false;
  };
  std::vector<Open> open(1);
  bool any = false, parted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '[' || c == '{') open.emplace_back();
    if (c == ')' || c == ']' || c == '}') {
      if (open.size() == 1 || (open.back().comma && !open.back().semicolon)) return std::nullopt;
      open.pop_back();
    }
    if (c == ';') open.back().semicolon = parted = true;
    if (c != ',') continue;
    bool decimal = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!decimal) return std::nullopt;
    open.back().comma = any = true;
    out[i] = '.';
  }
  return any && parted ? std::optional(out) : std::nullopt;
}

bool is_fraction(const ReadAnswer& a) {
  return shows_places(a) || a.source.find('/') != std::string::npos || a.source.find("frac") != std::string::npos;
}

Comparison compare_parsed(const ReadAnswer& gold, const ReadAnswer& answer, Budget& budget,
                          const MathOptions& options) {
  const ParseResult &g = gold.tree(), &a = answer.tree();
  if (g.status == ParseStatus::empty) return {VerdictKind::unparseable, "the gold answer is empty"};
  if (g.status == ParseStatus::unparseable) {
    return {VerdictKind::unparseable, str("the gold answer cannot be read: ", g.reason)};
  }
  if (a.status == ParseStatus::empty) return {VerdictKind::unparseable, "the answer is empty"};
  if (a.status == ParseStatus::unparseable) return {VerdictKind::unparseable, a.reason};
  if (g.status == ParseStatus::over_budget || a.status == ParseStatus::over_budget) {
    return {VerdictKind::over_budget, g.status == ParseStatus::over_budget ? g.reason : a.reason};
  }
  return compare_trees(g.tree, a.tree, budget, options);
}

}  // namespace

const ParseResult& ReadAnswer::tree() const {
  if (parsed == nullptr) parsed = std::make_shared<ParseResult>(parse_math(source));
  return *parsed;
}

size_t ReadAnswer::parts() const {
  if (form != Form::text || tree().status != ParseStatus::ok) return 1;
  const Tree& read = tree().tree;
  Kind kind = read[read.root()].kind;
  return kind == Kind::list || kind == Kind::set ? read.children(read.root()).size() : 1;
}

ReadAnswer read_answer(std::string_view as_written) {
  ReadAnswer answer;
  std::string restored;
  std::string_view text = as_written.size() > kAnswerLimit ? as_written : restore_commands(as_written, restored);
  if (text.size() <= kAnswerLimit) answer.source = text;
  if (text.size() > kAnswerLimit) {
    answer.form = ReadAnswer::Form::too_long;
    return answer;
  }
  if (trim(text).empty()) return answer;
  answer.form = ReadAnswer::Form::broken;
  if (!well_formed(text) || nesting(text) > kNestingLimit) return answer;
  std::string normalized = normalize(text);
  std::string_view value = take_variable(normalized, answer.variable);
  answer.key = text_key(value);
  answer.form = answer.key.empty() ? ReadAnswer::Form::empty : ReadAnswer::Form::text;
  std::string_view rest;
  answer.number = take_number(value, rest);
  if (!answer.number.empty()) {
    answer.percent = trim(rest) == "%";
    bool more = !answer.percent && !trim(rest).empty();
    answer.measured = more && rest.find_first_of(",;") == std::string_view::npos;
    if (!more) answer.form = ReadAnswer::Form::number;
  }
  return answer;
}

Comparison compare_answers(const ReadAnswer& gold, const ReadAnswer& answer, Budget& budget,
                           const MathOptions& options) {
  using Form = ReadAnswer::Form;
  if (gold.form == Form::empty) return {VerdictKind::unparseable, "the gold answer is empty"};
  if (gold.form == Form::broken) return {VerdictKind::unparseable, "the gold answer cannot be read"};
  if (gold.form == Form::too_long || answer.form == Form::too_long) {
    return {VerdictKind::over_budget, str("an answer of more than ", kAnswerLimit, " bytes")};
  }
  if (answer.form == Form::empty) return {VerdictKind::unparseable, "the answer is empty"};
  if (answer.form == Form::broken) {
    return {VerdictKind::unparseable, "unbalanced braces, deep nesting or bytes that are not text"};
  }
  bool same_name = gold.variable == answer.variable || gold.variable.empty() || answer.variable.empty();
  if (same_name) {
    if (gold.form == Form::number && answer.form == Form::number) {
      if (auto decided = compare_numbers(gold, answer)) return *decided;
    }
    if (gold.key == answer.key) return {VerdictKind::equal, "the same text"};
  }
  Comparison comparison = compare_parsed(gold, answer, budget, options);
  if (comparison.kind != VerdictKind::unequal) return comparison;
  // A decimal comma is read as a list, unless the other side is a decimal or a fraction. In the gold answer, which is
  // a list more often, only in front of a unit or behind a 0 with two decimals or more.
  auto reread = [&](const ReadAnswer& of, const ReadAnswer& other) -> std::optional<ReadAnswer> {
    if (!is_fraction(other)) return std::nullopt;
    std::string normalized = normalize(of.source), variable;
    auto text = with_decimal_point(take_variable(normalized, variable));
    if (!text) return std::nullopt;
    ReadAnswer again = read_answer(*text);
    return again.form == Form::number || again.measured ? std::optional(std::move(again)) : std::nullopt;
  };
  if (auto again = reread(answer, gold)) return compare_answers(gold, *again, budget, options);
  auto behind_zero = [](const ReadAnswer& a) {
    size_t zero = a.source.find("0,");
    return zero != std::string::npos && (zero == 0 || !is_digit(a.source[zero - 1])) && zero + 3 < a.source.size() &&
           is_digit(a.source[zero + 2]) && is_digit(a.source[zero + 3]);
  };
  if (auto again = reread(gold, answer); again && (again->measured || behind_zero(gold))) {
    return compare_answers(*again, answer, budget, options);
  }
  for (bool of_gold : {true, false}) {
    const ReadAnswer &with_commas = of_gold ? gold : answer, &other = of_gold ? answer : gold;
    auto text = with_decimal_points(with_commas.source);
    if (!text || other.source.find_first_of("./\\") == std::string::npos) continue;
    ReadAnswer again = read_answer(*text);
    Comparison by_points = compare_parsed(of_gold ? again : gold, of_gold ? answer : again, budget, options);
    if (by_points.kind == VerdictKind::equal) return by_points;
  }
  return comparison;
}

}  // namespace ucas::math
