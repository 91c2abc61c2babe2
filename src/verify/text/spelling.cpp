// spelling: the answer is a word letter by letter, as in "Spell the word backward". Right is the same letters in the
// same order; case, and blanks, hyphens, commas, points and quotation marks between letters, do not count. (The grader
// of mathematics would take such words for products, whose factors may change places.) Row in registry.h.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/str.h"
#include "verify/math/read/extract.h"
#include "verify/math/read/letters.h"
#include "verify/registry.h"
#include "verify/text/text_graders.h"

namespace ucas {

namespace {

constexpr size_t kSpellingLimit = 256;  // letters

// The letters and digits of a text in lower case; nullopt where a character stands among them that no spelling has.
std::optional<std::string> letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (math::is_letter(c) || math::is_digit(c)) {
      letters += c;
    } else if (std::string_view(" \t\n\r-,.:;\"'`*_!").find(c) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  return letters.empty() || letters.size() > kSpellingLimit ? std::nullopt : std::optional(math::lower_case(letters));
}

// Typographic quotation marks as plain ones; the rest as it is.
std::string plain_quotes(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\u201c") || text.substr(i).starts_with("\u201d")) {
      plain += '"';
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// What is in the last pair of quotation marks, or of two asterisks; "" for none.
std::string_view last_quoted(std::string_view text) {
  std::string_view best;
  for (const std::string_view mark : {"\"", "**", "`"}) {
    const size_t close = text.rfind(mark);
    if (close == std::string_view::npos || close == 0) continue;
    const size_t open = text.rfind(mark, close - 1);
    if (open == std::string_view::npos || open + mark.size() > close) continue;
    const std::string_view inside = text.substr(open + mark.size(), close - open - mark.size());
    if (best.data() == nullptr || inside.data() > best.data()) best = inside;
  }
  return trim(best);
}

// The word that a sentence ends in: what follows its last "is", "are", "becomes", colon or equality sign, in quotation
// marks or not; else what is quoted last; else the text where it is one word.
std::string_view spelt_in(std::string_view text) {
  text = trim(text);
  size_t after = 0;
  for (const std::string_view phrase : {" is ", " are ", " be ", " becomes ", " is:", ": ", ":\n", "= ", "-> "}) {
    const size_t at = text.rfind(phrase);
    if (at != std::string_view::npos) after = std::max(after, at + phrase.size());
  }
  std::string_view rest = trim(text.substr(after));
  if (const std::string_view quoted = last_quoted(rest); !quoted.empty()) return quoted;
  if (after == 0 && rest.find(' ') != std::string_view::npos && rest.find('-') == std::string_view::npos) {
    // Letters with blanks between them are a spelling, words of a sentence are none.
    const std::vector<std::string> words = split(rest, ' ');
    if (std::ranges::any_of(words, [](const std::string& word) { return word.size() > 2; })) return {};
  }
  return rest.substr(0, rest.find('\n'));
}

class SpellingGrader final : public EachAlone {
 public:
  explicit SpellingGrader(const GraderSetup& setup) : extract_(setup.extract) {}

  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    number_classes(group, [&](const std::string& answer, int32_t next) {
      const auto letters = letters_of(answer);
      return letters ? numbers.emplace(*letters, next).first->second : -1;
    });
  }

  void check_gold(const std::vector<std::string>& gold, const std::string& where) const override {
    for (const std::string& one : gold) {
      if (letters_of(one)) continue;
      throw Error(ErrorKind::data_line,
                  str(where, ": the answer \"", printable(one, 60),
                      "\" is no word; grader = \"spelling\" reads letters and digits, as in \"elppa\""));
    }
  }

 private:
  Verdict grade_one(const Answer& answer) const override {
    Verdict verdict;
    const size_t from = answer.response.size() - std::min(answer.response.size(), kResponseLimit);
    const std::string response = plain_quotes(answer.response.substr(from));
    const Extract mode = answer.extract.value_or(extract_);
    std::string_view searched = response, found;
    verdict.reason = "no word";
    if (mode == Extract::bare) {
      found = trim(searched);
    } else {
      if (mode != Extract::strict) {
        const auto tag = math::last_answer_tag(searched);
        if (!tag && mode == Extract::answer_tag) verdict.reason = "no <answer>";
        searched = tag ? *tag : mode == Extract::answer_tag ? std::string_view() : searched;
      }
      const math::Extracted box = math::extract_answer(searched, Extract::strict);
      found = box.found ? box.answer : mode == Extract::strict ? std::string_view() : spelt_in(searched);
      if (mode == Extract::strict && !box.found) verdict.reason = box.how;
    }
    if (found.empty()) return verdict;
    verdict.answer = std::string(found.substr(0, kAnswerLimit));
    const auto letters = letters_of(found);
    verdict.reason = "not letters alone";
    if (!letters) return verdict;
    verdict.decide(VerdictKind::unequal, "other letters");
    if (answer.gold == nullptr) return verdict;
    if (std::ranges::any_of(*answer.gold, [&](const std::string& gold) { return letters_of(gold) == letters; })) {
      verdict.decide(VerdictKind::equal, "the same letters");
    }
    return verdict;
  }

  Extract extract_;
};

}  // namespace

std::unique_ptr<Grader> make_spelling_grader(const GraderSetup& setup) {
  return std::make_unique<SpellingGrader>(setup);
}

}  // namespace ucas
