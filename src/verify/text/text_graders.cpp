#include "verify/text/text_graders.h"

#include <algorithm>
#include <map>

#include "base/str.h"
#include "verify/math/read/extract.h"
#include "verify/math/read/letters.h"
#include "verify/registry.h"

namespace ucas {

namespace {

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  std::string done;
  size_t from = 0;
  for (size_t at; (at = text.find(what, from)) != std::string::npos; from = at + what.size()) {
    done.append(text, from, at - from).append(with);
  }
  text = done.append(text, from);
}

// \sqrt3 is \sqrt{3}: only the character after the command goes into braces.
std::optional<std::string> brace_roots(const std::string& text) {
  std::string done;
  size_t from = 0;
  for (size_t at; (at = text.find("\\sqrt", from)) != std::string::npos;) {
    at += 5;
    done.append(text, from, at - from);
    if (at == text.size()) return std::nullopt;
    from = at;
    if (text[at] == '{') continue;
    done.append("{").append(1, text[at]).append("}");
    from = at + 1;
  }
  return done.append(text, from);
}

// \frac12 is \frac{1}{2}, \frac1{72} is \frac{1}{72}; where a fraction ends too early the whole text stays as it is.
std::string brace_fractions(const std::string& text) {
  std::string done;
  size_t from = 0;
  for (size_t at; (at = text.find("\\frac", from)) != std::string::npos;) {
    at += 5;
    done.append(text, from, at - from);
    from = at;
    if (at < text.size() && text[at] == '{') continue;
    // What follows is looked at up to the next fraction.
    size_t end = std::min(text.size(), text.find("\\frac", at));
    if (end - at < 2) return text;
    done.append("{").append(1, text[at]).append("}");
    from = at + 1;
    if (text[from] == '{') continue;
    done.append("{").append(1, text[from]).append("}");
    ++from;
  }
  return done.append(text, from);
}

// 3/4 of two integers, written without signs or zeros in front, is \frac{3}{4}.
std::string slash_to_fraction(const std::string& text) {
  size_t slash = text.find('/');
  if (slash == std::string::npos || text.find('/', slash + 1) != std::string::npos) return text;
  auto plain = [](std::string_view part) {
    bool minus = part.starts_with('-');
    if (minus) part.remove_prefix(1);
    if (part.empty() || part.size() > 4000 || !std::all_of(part.begin(), part.end(), math::is_digit)) return false;
    return part == "0" ? !minus : part[0] != '0';
  };
  std::string above = text.substr(0, slash), below = text.substr(slash + 1);
  if (!plain(above) || !plain(below)) return text;
  return str("\\frac{", above, "}{", below, "}");
}

// What a box holds, by the rules of the released reward: "\boxed 7$" counts, too.
std::optional<std::string> released_box(std::string_view text) {
  size_t spaced = text.rfind("\\boxed ");
  if (spaced != std::string_view::npos) {
    std::string_view rest = text.substr(spaced + 7);
    return std::string(rest.substr(0, rest.find('$')));
  }
  size_t at = text.rfind("\\boxed");
  if (at == std::string_view::npos) at = text.rfind("\\fbox");
  if (at == std::string_view::npos) return std::nullopt;
  int64_t depth = 0;
  size_t open = std::string_view::npos;
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '{') {
      if (depth++ == 0 && open == std::string_view::npos) open = i;
    } else if (text[i] == '}' && --depth == 0) {
      return std::string(text.substr(open + 1, i - open - 1));
    }
  }
  return std::nullopt;
}

// What both graders share: what is graded, and equality of one normal form.
class TextGrader : public EachAlone {
 public:
  explicit TextGrader(Extract extract) : extract_(extract) {}

  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    number_classes(group, [&](const std::string& answer, int32_t next) {
      std::optional<std::string> form = normal_form(answer);
      return form ? numbers.emplace(*form, next).first->second : -1;
    });
  }

 private:
  virtual std::optional<std::string> normal_form(const std::string& answer) const = 0;
  virtual bool same(const std::string& gold, const std::string& answer) const = 0;

  Verdict grade_one(const Answer& answer) const override {
    Verdict verdict;
    std::optional<std::string> found = extracted(answer);
    verdict.reason = "no box";
    if (!found) return verdict;
    verdict.answer = found->substr(0, kAnswerLimit);
    if (found->size() > kAnswerLimit) {
      verdict.decide(VerdictKind::over_budget, "the answer is too long");
      return verdict;
    }
    verdict.reason = "not a plain number";
    if (!normal_form(*found)) return verdict;
    bool no_gold = answer.gold == nullptr || answer.gold->empty();
    verdict.decide(VerdictKind::unequal, str("not the same as ", no_gold ? "any gold" : "the gold"));
    if (no_gold) return verdict;
    for (std::string_view gold : *answer.gold) {
      // Data sets that keep $..$ around their answers are used without them.
      bool formula = gold.size() > 2 && gold.front() == '$' && gold.find('$', 1) == gold.size() - 1;
      if (formula) gold = gold.substr(1, gold.size() - 2);
      if (!same(std::string(gold), *found)) continue;
      verdict.decide(VerdictKind::equal, "the same normal form");
      break;
    }
    return verdict;
  }

  std::optional<std::string> extracted(const Answer& answer) const {
    Extract mode = answer.extract.value_or(extract_);
    if (mode == Extract::bare) return std::string(answer.response);
    size_t from = answer.response.size() - std::min(answer.response.size(), kResponseLimit);
    std::string_view searched = answer.response.substr(from);
    if (mode == Extract::answer_tag) searched = math::last_answer_tag(searched).value_or("");
    return released_box(searched);
  }

  Extract extract_;
};

class ReleasedTrainGrader final : public TextGrader {
  using TextGrader::TextGrader;
  std::optional<std::string> normal_form(const std::string& answer) const override {
    return released_normal_form(answer).value_or(answer);
  }
  // One text that has no normal form puts both back to what they were.
  bool same(const std::string& gold, const std::string& answer) const override {
    std::optional<std::string> a = released_normal_form(gold), b = released_normal_form(answer);
    return a && b ? *a == *b : gold == answer;
  }
};

class StrictNumericGrader final : public TextGrader {
  using TextGrader::TextGrader;
  std::optional<std::string> normal_form(const std::string& answer) const override { return plain_number(answer); }
  bool same(const std::string& gold, const std::string& answer) const override {
    return plain_number(gold) == plain_number(answer);
  }
};

}  // namespace

std::vector<Verdict> EachAlone::grade(std::span<const Answer> answers) const {
  std::vector<Verdict> verdicts;
  verdicts.reserve(answers.size());
  for (const Answer& answer : answers) verdicts.push_back(grade_one(answer));
  return verdicts;
}

std::unique_ptr<Grader> make_released_train_grader(const GraderSetup& setup) {
  return std::make_unique<ReleasedTrainGrader>(setup.extract);
}
std::unique_ptr<Grader> make_strict_numeric_grader(const GraderSetup& setup) {
  return std::make_unique<StrictNumericGrader>(setup.extract);
}

std::optional<std::string> released_normal_form(std::string_view answer) {
  std::string text(answer);
  constexpr std::pair<std::string_view, std::string_view> kReplaced[] = {
      {"\n", ""},     {"\\!", ""},     {"\\\\", "\\"},    {"tfrac", "frac"}, {"dfrac", "frac"},
      {"\\left", ""}, {"\\right", ""}, {"^{\\circ}", ""}, {"^\\circ", ""},   {"\\$", ""}};
  for (auto [what, with] : kReplaced) replace_all(text, what, with);
  if (size_t unit = text.find("\\text{ "); unit != std::string::npos) {
    if (text.find("\\text{ ", unit + 1) != std::string::npos) return std::nullopt;
    text.resize(unit);
  }
  replace_all(text, "\\%", "");
  replace_all(text, " .", " 0.");
  replace_all(text, "{.", "{0.");
  if (text.empty()) return text;
  if (text[0] == '.') text.insert(0, "0");
  // A short name before the only equality sign is dropped: "x = 5".
  size_t equality = text.find('=');
  if (equality <= 2 && text.find('=', equality + 1) == std::string::npos) text.erase(0, equality + 1);
  std::optional<std::string> rooted = brace_roots(text);
  if (!rooted) return std::nullopt;
  text = *rooted;
  replace_all(text, " ", "");
  text = brace_fractions(text);
  if (text == "0.5") text = "\\frac{1}{2}";
  return slash_to_fraction(text);
}

std::optional<std::string> plain_number(std::string_view answer) {
  answer = trim(answer);
  std::string sign, whole, decimals;
  if (answer.starts_with('-') || answer.starts_with('+')) {
    if (answer[0] == '-') sign = "-";
    answer.remove_prefix(1);
  }
  std::string_view integer = answer.substr(0, answer.find('.'));
  std::string_view rest = answer.substr(integer.size());
  if (!rest.empty()) decimals = rest.substr(1);
  size_t comma = integer.find(',');
  for (size_t i = 0; i < integer.size(); ++i) {
    if (integer[i] != ',') {
      whole += integer[i];
    } else if (comma == 0 || comma > 3 || (integer.size() - i) % 4 != 0) {
      return std::nullopt;  // 1,234,567 but neither 1,23 nor ,123
    }
  }
  bool separated = comma != std::string_view::npos;
  if (separated && integer.size() - comma != 4 * static_cast<size_t>(std::count(integer.begin(), integer.end(), ','))) {
    return std::nullopt;
  }
  if (whole.size() + decimals.size() == 0) return std::nullopt;
  if (!std::all_of(whole.begin(), whole.end(), math::is_digit) ||
      !std::all_of(decimals.begin(), decimals.end(), math::is_digit)) {
    return std::nullopt;
  }
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  decimals.resize(decimals.find_last_not_of('0') + 1);
  if (whole.empty() && decimals.empty()) return "0";
  return str(sign, whole.empty() ? "0" : whole, decimals.empty() ? "" : ".", decimals);
}

}  // namespace ucas
