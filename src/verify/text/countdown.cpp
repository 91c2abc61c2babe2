// countdown: the answer is an arithmetic expression that has the target's value and uses each given number exactly
// once. Gold is "24: 3 5 7 2", the target and the numbers. The expression is evaluated with exact fractions; + - * /
// and parentheses are all there is: no powers, no integer division, no joined digits, no sign before a number. Row in
// registry.h.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/parser.h"
#include "verify/registry.h"
#include "verify/text/arithmetic.h"
#include "verify/text/text_graders.h"

namespace ucas {

namespace {

using arithmetic::Evaluation;
using arithmetic::Fraction;
using arithmetic::symbol_at;
using arithmetic::symbols_of;
using arithmetic::whole_number;

constexpr size_t kExpressionLimit = 512;  // bytes

struct Countdown {
  int64_t target = 0;
  std::vector<int64_t> numbers;  // sorted
};

std::optional<Countdown> read_countdown(std::string_view gold) {
  const size_t colon = gold.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  Countdown puzzle;
  const auto target = whole_number(trim(gold.substr(0, colon)));
  if (!target) return std::nullopt;
  puzzle.target = *target;
  for (const std::string& word : split(gold.substr(colon + 1), ' ')) {
    if (word.empty()) continue;
    const auto number = whole_number(word);
    if (!number || *number < 0) return std::nullopt;
    puzzle.numbers.push_back(*number);
  }
  if (puzzle.numbers.empty()) return std::nullopt;
  std::ranges::sort(puzzle.numbers);
  return puzzle;
}

// The last stretch of a text that can be read as an expression with an operator: "so 3 * (5 + 2) = 21." has
// "3 * (5 + 2) = 21". "" where there is none, or where the text at its ends would change it: "3.5 + 2" is no "5 +
// 2", "10^2 + 5" no "2 + 5", "3 + 4!" no "3 + 4".
std::string_view last_expression(std::string_view text) {
  const auto digit_at = [&](size_t at) { return at < text.size() && math::is_digit(text[at]); };
  size_t begin = 0, end = 0;  // of the last so far
  size_t from = 0;            // of the stretch that is read
  bool has_operator = false, has_digit = false;
  const auto close = [&](size_t at) {
    if (has_operator) begin = from, end = at;
    has_operator = has_digit = false;
  };
  for (size_t at = 0, size = 1; at < text.size(); at += size) {
    size = 1;
    const char c = text[at];
    const bool in_number = (c == '.' || c == ',') && at > 0 && digit_at(at - 1) && digit_at(at + 1);
    const char symbol = c == ' ' ? ' ' : digit_at(at) || in_number ? '0' : symbol_at(text, at, size);
    if (symbol == '\0') {
      close(at);
      from = at + size;
    } else {
      has_digit |= symbol == '0';
      has_operator |= has_digit && std::string_view("+-*/").find(symbol) != std::string_view::npos;
    }
  }
  close(text.size());
  const auto blank = [&](size_t at) { return text[at] == ' '; };
  while (begin < end && blank(begin)) ++begin;
  // The mark of a list at the beginning of its line, and what joins the expression with the words around it.
  const bool line_start = text.substr(0, begin).find_last_not_of(' ') == std::string_view::npos ||
                          text[text.substr(0, begin).find_last_not_of(' ')] == '\n';
  if (line_start && end - begin > 1 && (text[begin] == '-' || text[begin] == '*') && blank(begin + 1)) ++begin;
  while (begin < end && (blank(begin) || text[begin] == '=')) ++begin;
  while (begin < end && (blank(end - 1) || text[end - 1] == '=')) --end;
  const std::string_view inside = text.substr(begin, end - begin);
  const auto open = std::ranges::count(inside, '('), closed = std::ranges::count(inside, ')');
  if (open == closed + 1 && text[begin] == '(') ++begin;  // a parenthesis of the sentence
  if (closed == open + 1 && text[end - 1] == ')') --end;
  constexpr std::string_view kBefore = "^_\\{}.,%!", kAfter = "^_\\{}%!";
  const auto changes = [](char c, std::string_view marks) {
    return math::is_letter(c) || marks.find(c) != std::string_view::npos;
  };
  if (begin > 0 && changes(text[begin - 1], kBefore)) return {};
  if (end < text.size() && changes(text[end], kAfter)) return {};
  return trim(text.substr(begin, end - begin));
}

// What a response gives as its expression, equations and all, as symbols.
struct FoundExpression {
  std::string_view text;  // as it was written
  const char* how = "";
  std::optional<std::string> symbols;
};

FoundExpression expression_in(std::string_view response, Extract mode) {
  response.remove_prefix(response.size() - std::min(response.size(), kResponseLimit));
  const auto as_found = [](std::string_view text, const char* how) {
    text = trim(text);
    while (!text.empty() && (text.front() == '$' || text.front() == ' ')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == '$' || text.back() == '.' || text.back() == ' ')) text.remove_suffix(1);
    return FoundExpression{text, how, symbols_of(text.substr(0, kExpressionLimit + 1))};
  };
  if (mode == Extract::bare) return as_found(response, "the whole text");
  std::string_view searched = response;
  if (mode != Extract::strict) {
    if (const auto tag = math::last_answer_tag(response))
      searched = *tag;
    else if (mode == Extract::answer_tag)
      return {{}, "no <answer>", {}};
  }
  if (const math::Extracted box = math::extract_answer(searched, Extract::strict); box.found) {
    return as_found(box.answer, box.how);
  } else if (mode == Extract::strict) {
    return {{}, box.how, {}};
  }
  // What a tag holds is the expression; words of a sentence around it are left out where that is allowed.
  if (mode == Extract::answer_tag) return as_found(searched, "the last <answer>");
  const std::string_view last = last_expression(searched);
  if (last.empty()) return {{}, "no expression", {}};
  return as_found(last, "the last expression");
}

class CountdownGrader final : public EachAlone {
 public:
  explicit CountdownGrader(const GraderSetup& setup) : extract_(setup.extract) {}

  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    number_classes(group, [&](const std::string& answer, int32_t next) {
      const auto symbols = symbols_of(answer);
      return symbols ? numbers.emplace(symbols->substr(0, symbols->find('=')), next).first->second : -1;
    });
  }

  void check_gold(const std::vector<std::string>& gold, const std::string& where) const override {
    for (const std::string& one : gold) {
      if (read_countdown(one)) continue;
      throw Error(ErrorKind::data_line,
                  str(where, ": the answer \"", printable(one, 60),
                      "\" is no puzzle; grader = \"countdown\" reads the target and the numbers, as in "
                      "\"24: 3 5 7 2\""));
    }
  }

 private:
  Verdict grade_one(const Answer& answer) const override {
    Verdict verdict;
    const FoundExpression found = expression_in(answer.response, answer.extract.value_or(extract_));
    verdict.reason = found.how;
    if (found.text.empty()) return verdict;
    verdict.answer = std::string(found.text.substr(0, kAnswerLimit));
    if (found.text.size() > kExpressionLimit) {
      verdict.decide(VerdictKind::over_budget, "the expression is too long");
      return verdict;
    }
    verdict.reason = "not an arithmetic expression";
    if (!found.symbols) return verdict;
    // Of an equation every side must have the target's value, so that nothing false is rewarded; the first side with an
    // operator is the expression.
    std::vector<Evaluation> sides;
    std::vector<Fraction> values;
    size_t expression = SIZE_MAX;
    for (const std::string& side : split(*found.symbols, '=')) {
      sides.emplace_back(side);
      const auto value = sides.back().run();
      if (!value) {
        if (!sides.back().readable()) {
          verdict.reason = sides.back().problem();
        } else {
          verdict.decide(VerdictKind::unequal, sides.back().problem());
        }
        return verdict;
      }
      values.push_back(*value);
      if (expression == SIZE_MAX && sides.back().operators() > 0) expression = sides.size() - 1;
    }
    if (expression == SIZE_MAX) expression = 0;
    verdict.decide(VerdictKind::unequal, "no gold");
    if (answer.gold == nullptr) return verdict;
    for (const std::string& gold : *answer.gold) {
      verdict.reason = "the gold is no puzzle";
      const auto puzzle = read_countdown(gold);
      if (!puzzle) continue;
      std::vector<int64_t> used = sides[expression].numbers();
      std::ranges::sort(used);
      const auto wrong = std::ranges::find_if(
          values, [&](const Fraction& value) { return value.below != 1 || value.above != puzzle->target; });
      if (used != puzzle->numbers) {
        verdict.reason = "does not use each number exactly once";
      } else if (wrong != values.end()) {
        verdict.reason = str("another value: ", wrong->above, wrong->below == 1 ? "" : str("/", wrong->below));
      } else {
        verdict.decide(VerdictKind::equal, "the target, from each number once");
        break;
      }
    }
    return verdict;
  }

  Extract extract_;
};

}  // namespace

std::unique_ptr<Grader> make_countdown_grader(const GraderSetup& setup) {
  return std::make_unique<CountdownGrader>(setup);
}

}  // namespace ucas
