#include "verify/graders.h"

#include <algorithm>
#include <map>

#include "base/str.h"
#include "verify/math/extract.h"

namespace ucas {

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

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
    if (part.empty() || part.size() > 4000 || !std::all_of(part.begin(), part.end(), digit)) return false;
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

// Shared by the two graders: what is graded, and equality of one normal form.
class StringVerifier final : public Verifier {
 public:
  StringVerifier(Grader grader, Extract extract) : grader_(grader), extract_(extract) {}

  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    std::vector<Verdict> verdicts;
    verdicts.reserve(answers.size());
    for (const Answer& answer : answers) verdicts.push_back(grade_one(answer));
    return verdicts;
  }

  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    int32_t next = 0, right = -1;
    for (Verdict& verdict : group) {
      verdict.answer_class = -1;
      if (verdict.answer.empty() || verdict.kind == VerdictKind::over_budget) continue;
      if (verdict.kind == VerdictKind::equal) {
        if (right < 0) right = next++;
        verdict.answer_class = right;
        continue;
      }
      std::optional<std::string> form = normal_form(verdict.answer);
      if (!form) continue;
      auto [place, is_new] = numbers.emplace(*form, next);
      next += is_new;
      verdict.answer_class = place->second;
    }
  }

 private:
  Verdict grade_one(const Answer& answer) const {
    Verdict verdict;
    std::optional<std::string> found = extracted(answer);
    if (!found) {
      verdict.reason = "no box";
      return verdict;
    }
    if (found->size() > kAnswerLimit) {
      verdict.answer = found->substr(0, kAnswerLimit);
      verdict.kind = VerdictKind::over_budget;
      verdict.reason = "the answer is too long";
      return verdict;
    }
    verdict.answer = *found;
    std::optional<std::string> form = normal_form(*found);
    if (!form) {
      verdict.reason = "not a plain number";
      return verdict;
    }
    verdict.kind = VerdictKind::unequal;
    verdict.reason = str("not the same as ", answer.gold == nullptr || answer.gold->empty() ? "any gold" : "the gold");
    if (answer.gold == nullptr) return verdict;
    for (const std::string& gold : *answer.gold) {
      if (same(gold, *found, *form)) {
        verdict.kind = VerdictKind::equal;
        verdict.reason = "the same normal form";
        break;
      }
    }
    return verdict;
  }

  std::optional<std::string> extracted(const Answer& answer) const {
    Extract mode = answer.extract.value_or(extract_);
    if (mode == Extract::bare) return std::string(answer.response);
    size_t from = answer.response.size() - std::min(answer.response.size(), kResponseLimit);
    std::string_view searched = answer.response.substr(from);
    if (mode == Extract::answer_tag) searched = last_answer_tag(searched).value_or("");
    return released_box(searched);
  }

  std::optional<std::string> normal_form(std::string_view text) const {
    if (grader_ == Grader::strict_numeric) return plain_number(text);
    std::optional<std::string> form = released_normal_form(text);
    return form ? form : std::string(text);
  }

  bool same(std::string_view written, const std::string& answer, const std::string& form) const {
    // Data sets that keep $..$ around their answers are used without them.
    if (written.size() > 2 && written.front() == '$' && written.find('$', 1) == written.size() - 1) {
      written = written.substr(1, written.size() - 2);
    }
    std::string gold(written);
    if (grader_ == Grader::strict_numeric) return plain_number(gold) == form;
    // One text that has no normal form puts both back to what they were.
    std::optional<std::string> a = released_normal_form(gold), b = released_normal_form(answer);
    return a && b ? *a == *b : gold == answer;
  }

  Grader grader_;
  Extract extract_;
};

}  // namespace

const char* name_of(Grader grader) {
  constexpr const char* names[] = {"ucas", "released-train", "strict-numeric"};
  return names[static_cast<int>(grader)];
}

std::unique_ptr<Verifier> make_grader(Grader grader, Extract extract) {
  if (grader == Grader::ucas) return make_math_verifier(extract);
  return std::make_unique<StringVerifier>(grader, extract);
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
  if (!std::all_of(whole.begin(), whole.end(), digit) || !std::all_of(decimals.begin(), decimals.end(), digit)) {
    return std::nullopt;
  }
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  decimals.resize(decimals.find_last_not_of('0') + 1);
  if (whole.empty() && decimals.empty()) return "0";
  return str(sign, whole.empty() ? "0" : whole, decimals.empty() ? "" : ".", decimals);
}

}  // namespace ucas
