#include "verify/math/read/parser.h"

#include <algorithm>
#include <vector>

#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/macros.h"

namespace ucas::math {

namespace {

// Last place of `phrase` (lower case), letters compared without case.
size_t rfind_phrase(std::string_view text, std::string_view phrase) {
  auto lower = [](char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; };
  for (size_t at = text.size() + 1; at-- > phrase.size();) {
    size_t begin = at - phrase.size(), i = 0;
    while (i < phrase.size() && lower(text[begin + i]) == phrase[i]) ++i;
    if (i == phrase.size()) return begin;
  }
  return kNone;
}

// "or $9$" behind $8$: a list, of which the first is not all.
bool goes_on_with_another(std::string_view rest, std::string_view sign) {
  std::string_view gap = rest.substr(0, std::min(rest.find(sign), rest.size()));
  return gap.size() < rest.size() && gap.find_first_not_of(" ,") != kNone && only_joins(gap);
}

// (70 + 2), (36 each), [not 71], - so he can: an explanation behind a number. A unit, a modulus and a formula in
// letters are none.
bool explains(std::string_view text) {
  std::string_view inside = text.substr(1);
  bool dash = text.starts_with("- ") || text.starts_with("\u2014");
  if (dash) inside = trim(text.substr(text[0] == '-' ? 1 : 3));
  if (!dash && text[0] != '(' && text[0] != '[') return false;
  std::string_view first = inside.substr(0, run_of(inside, is_letter));
  if (dash) return first.size() > 1 && !find_function(first) && !find_command(first);
  inside = inside.substr(0, inside.find_first_of(")]"));
  bool words = inside.find_first_of("+*=") != kNone;
  for (size_t i = 0; i < inside.size(); ++i) {
    size_t run = run_of(inside.substr(i), is_letter);
    bool command = i > 0 && inside[i - 1] == '\\' && !in_words("times cdot div", inside.substr(i, run));
    if (command || (run == 1 && inside[i] != 'a')) return false;  // 2 (x + 1), 2 (\sqrt 3 + 1)
    words |= run > 0;
    i += run;
  }
  return words && !find_unit(first) && !in_words("mod modulo base or and to if unless pi", first);
}

// 8 of "8 because 5 + 3 = 8" and "8 apples, not 9": a number up to the clause behind it.
std::string_view without_clause(std::string_view text) {
  size_t sign = text.starts_with('-') || text.starts_with("\\$") ? (text[0] == '-' ? 1 : 2) : 0;
  if (text.size() <= sign || !is_digit(text[sign])) return text;
  constexpr std::string_view kClauses = "because since as so not which thus hence instead rather given considering";
  constexpr std::string_view kOther = "or but no wait actually maybe either sorry perhaps however if unless otherwise";
  std::string_view before;
  for (size_t i = sign; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    std::string_view word = text.substr(i, end - i);
    bool apart = i > 0 && (text[i - 1] == ' ' || text[i - 1] == ',');
    bool verb = before == "is" || before == "are" || before == "was" || before == "do" || before == "does";
    bool comma = word.size() > 1 && i > 1 && trim(text.substr(0, i)).ends_with(',');  // 72, in total; 72 clips, and he
    size_t next = std::min(text.find_first_not_of(' ', end), text.size() - 1);
    bool sentence = comma && !in_words(kOther, word) && !(conjunction(word) != '\0' && !is_letter(text[next]));
    bool sum = i > 1 && text[i - 1] == ' ' && explains(text.substr(i));  // 72 (70 + 2), 72 - so he can buy 3
    bool mark = (text[i] == '*' || text[i] == '_') && i + 1 < text.size() && text[i + 1] == text[i];  // __72__ clips
    if (mark || sum || sentence || (apart && !verb && in_words(kClauses, word))) {
      std::string_view value = trim(text.substr(0, i));
      while (value.ends_with(',')) value = trim(value.substr(0, value.size() - 1));
      return value;
    }
    if (end > i) before = word;
    i = std::max(end, i + 1);
  }
  return text;
}

// What follows a phrase such as "the answer is": to the end of the sentence or line; a formula in dollars if it starts
// with one.
std::string_view sentence_after(std::string_view text, size_t begin) {
  text = text.substr(begin);
  size_t start = text.find_first_not_of(" \t:*_=\n");
  if (start == kNone) return {};
  text.remove_prefix(start);
  if (text.starts_with("$")) {
    size_t open = text.starts_with("$$") ? 2 : 1;
    size_t close = text.find('$', open);
    if (close != kNone && !goes_on_with_another(text.substr(close + open), "$"))
      return trim_answer(text.substr(open, close - open));
  }
  if (size_t close = text.find("\\)"); text.starts_with("\\(") && close != kNone) {
    if (!goes_on_with_another(text.substr(close + 2), "\\(")) return trim_answer(text.substr(2, close - 2));
  }
  size_t end = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    bool stop = (text[i] == '.' || text[i] == '!' || text[i] == ';') &&
                (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n');
    for (std::string_view mark : {"\u3002", "\uff01", "\uff1b"}) stop |= text.compare(i, 3, mark) == 0;  // in Chinese
    if (text[i] == '\n' || stop) {
      end = i;
      break;
    }
  }
  text = trim(text.substr(0, end));
  while (!text.empty() && std::string_view("*_.").find(text.back()) != kNone) text.remove_suffix(1);
  return trim(text);
}

// The formula in $..$ or \(..\) that the byte at `at` belongs to, "" for none.
std::string_view formula_around(std::string_view text, size_t at) {
  auto dollars = std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), '$');
  size_t open = text.rfind('$', at), close = text.find('$', at);
  if (dollars % 2 == 1 && open != kNone) return trim_answer(text.substr(open + 1, close - open - 1));
  open = text.rfind("\\(", at);
  close = text.find("\\)", at);
  bool inside = open != kNone && close != kNone && text.substr(open, at - open).find("\\)") == kNone;
  return inside ? trim_answer(text.substr(open + 2, close - open - 2)) : std::string_view();
}

// Digits of a word are no number: R2D2, v2, GPT-4, 3D. Only a unit or the end of an ordinal may follow a number.
bool inside_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_letter(text[begin - 1])) return true;
  size_t tail = end;
  while (tail < text.size() && is_letter(text[tail])) ++tail;
  std::string_view word = text.substr(end, tail - end);
  constexpr std::string_view kEndings[] = {"", "th", "st", "nd", "rd", "am", "pm", "AM", "PM"};
  if (std::find(std::begin(kEndings), std::end(kEndings), word) != std::end(kEndings)) {
    return !word.empty() && tail < text.size() && is_digit(text[tail]);
  }
  return find_unit(word) == nullptr || (tail < text.size() && is_digit(text[tail]));
}

// The number whose last digit is text[end - 1], with its sign; "" for a digit of an exponent, a root or the like.
std::string_view number_before(std::string_view text, size_t end) {
  size_t close = end < text.size() && text[end] == '}' ? end + 1 : end;
  size_t fraction = text.substr(0, end).rfind("frac{");
  if (fraction != kNone && fraction > 0 && close != end) {
    std::string_view tail = text.substr(fraction, close - fraction);
    size_t begin = text.rfind('\\', fraction);
    bool whole = begin != kNone && fraction - begin <= 2 && tail.find_first_not_of("frac{}0123456789.-,") == kNone;
    if (whole) {
      if (begin > 0 && text[begin - 1] == '-') --begin;
      return text.substr(begin, close - begin);
    }
  }
  size_t begin = end;
  while (begin > 0) {
    char c = text[begin - 1];
    // 1 000 000: groups of three digits.
    bool group = c == ' ' && begin + 3 <= end && begin > 1 && is_digit(text[begin - 2]) &&
                 (begin + 3 == end || text[begin + 3] == ' ');
    bool inside = group || is_digit(c) ||
                  ((c | 32) == 'e' && begin < end && is_digit(text[begin]) && begin > 1 && is_digit(text[begin - 2])) ||
                  ((c == '.' || c == ',' || c == '/') && begin < end && is_digit(text[begin]) &&
                   (c == '.' || (begin > 1 && is_digit(text[begin - 2]))));
    if (!inside) break;
    --begin;
  }
  if (begin > 0 && std::string_view("{^_\\").find(text[begin - 1]) != kNone) return {};
  bool sign = begin > 0 && (text[begin - 1] == '-' || text[begin - 1] == '+');
  // "5-3": a minus between numbers is not a sign.
  if (sign && !(begin > 1 && (is_digit(text[begin - 2]) || text[begin - 2] == ')'))) --begin;
  return text.substr(begin, end - begin);
}

// The last number of the text: 12, -3.5, 1,234, 3/4, \frac{3}{4}, each with its sign; or the formula it is part of.
std::string_view last_number(std::string_view text) {
  constexpr int kTries = 16;  // words with digits that are passed over
  size_t end = text.size();
  for (int k = 0; k < kTries; ++k) {
    while (end > 0 && !is_digit(text[end - 1])) --end;
    if (end == 0) return {};
    if (std::string_view formula = formula_around(text, end - 1); !formula.empty()) return formula;
    std::string_view number = number_before(text, end);
    if (number.empty() || number.find('\\') != kNone) return number;  // -\frac{3}{4} goes on behind the digit
    size_t begin = end - number.size();
    if (!inside_word(text, begin, end)) return number;
    end = begin;
  }
  return {};
}

// The last closed formula in $..$, $$..$$, \(..\) or \[..\]; one that is more than a name such as $n$ or $ABCD$ if
// there is any. Formulas with nothing but "and" or commas between them are one: $k = 45$, $n = 2$. `end` is where it
// ends in the text.
std::string_view last_formula(std::string_view text, size_t& end) {
  struct Found {
    size_t outer = 0, inner = 0, close = 0, end = 0;  // $$ a $$: outer at the first $, inner at a, close, end after $$
  };
  Found best, name, previous;
  auto keep = [&](Found found) {
    std::string_view inside = trim_answer(text.substr(found.inner, found.close - found.inner));
    if (inside.empty()) return;
    if (previous.end > 0 && only_joins(text.substr(previous.end, found.outer - previous.end))) {
      found.outer = found.inner = previous.outer;
      found.close = found.end;
    }
    previous = found;
    bool is_name = inside.size() <= 4 && std::all_of(inside.begin(), inside.end(), is_letter);
    (is_name ? name : best) = found;
  };
  size_t dollar = kNone, bracket = kNone;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      char c = text[i + 1];
      if (c == '(' || c == '[') bracket = i + 2;
      if ((c == ')' || c == ']') && bracket != kNone) {
        keep({bracket - 2, bracket, i, i + 2});
        bracket = kNone;
      }
      ++i;
    } else if (text[i] == '$') {
      size_t width = i + 1 < text.size() && text[i + 1] == '$' ? 2 : 1;
      if (dollar == kNone) {
        dollar = i;
      } else {
        keep({dollar, dollar + width, i, i + width});
        dollar = kNone;
      }
      i += width - 1;
    }
  }
  if (best.end == 0) best = name;
  end = best.end;
  return best.close < best.inner ? std::string_view() : trim_answer(text.substr(best.inner, best.close - best.inner));
}

// The word of `text` that ends at `end`, letters and hyphens inside it; "" for none.
std::string_view word_before(std::string_view text, size_t end) {
  while (end > 0 && !is_letter(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 &&
         (is_letter(text[begin - 1]) || (text[begin - 1] == '-' && begin > 1 && is_letter(text[begin - 2]))))
    --begin;
  return text.substr(begin, end - begin);
}

// "less than 7", "anything but 7", "is not 7": the words before the value make another answer of it.
bool is_denied(std::string_view text, std::string_view value) {
  std::string_view before = trim(text.substr(0, static_cast<size_t>(value.data() - text.data())));
  if (before.ends_with("\u4e0d\u662f")) return true;  // is not, in Chinese
  while (before.ends_with('$') || before.ends_with("\\(")) before = trim(before.substr(0, before.size() - 1));
  if (before.empty() || !is_letter(before.back())) return false;
  std::string_view last = word_before(before, before.size());
  std::string_view second = word_before(before, static_cast<size_t>(last.data() - before.data()));
  return in_words("than not but except least most under below above never", lower_case(last)) ||
         lower_case(second) == "not";
}

// The last numeral in words of the last sentence, "Tom has eight apples."; "" where other words make another number of
// it, or there is a choice. "one" is a numeral behind a verb only.
std::string_view last_numeral(std::string_view text) {
  constexpr size_t kSentence = 500;  // bytes
  text = trim(text);
  if (text.size() > kSentence) text.remove_prefix(text.size() - kSentence);
  while (!text.empty() && !is_letter(text.back())) text.remove_suffix(1);
  if (size_t stop = text.find_last_of(".!?:\n"); stop != kNone) text.remove_prefix(stop + 1);
  constexpr std::string_view kBefore =
      "or and to not minus negative point hundred times than least most thousand million plus half of under over "
      "between no dozen below above";
  constexpr std::string_view kBehind =
      "half halves third thirds quarter quarters fourth fourths percent point and or times to more less plus minus "
      "over";
  constexpr std::string_view kVerbs = "has have had is are was needs gets leaves only exactly";
  std::string behind;
  for (size_t end = text.size();;) {
    std::string_view word = word_before(text, end);
    if (word.empty()) return {};
    auto begin = static_cast<size_t>(word.data() - text.data());
    if (number_word(lower_case(word)) >= 0) {
      std::string before = lower_case(word_before(text, begin));
      bool one = lower_case(word) == "one";
      if (one && !in_words(kVerbs, before)) return {};
      bool changed = in_words(kBefore, before) || in_words(kBehind, behind) || multiplier(behind) != nullptr ||
                     number_word(before) >= 0 || is_denied(text, word);
      return changed ? std::string_view() : word;
    }
    behind = lower_case(word);
    end = begin;
  }
}

// The formula or number that prose ends with: "The largest $n$ is 34" says 34.
std::string_view last_value(std::string_view text, const char*& how) {
  size_t end = 0;
  std::string_view formula = last_formula(text, end);
  std::string_view number = last_number(formula.empty() ? text : text.substr(end));
  how = number.empty() ? "last formula" : "last number";
  std::string_view value = number.empty() ? formula : number;
  return !value.empty() && is_denied(text, value) ? std::string_view() : value;
}

// Prose around a value: begins with a word and has at least two of three letters or more outside of formulas.
bool is_prose(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  int words = 0, run = 0;
  bool formula = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    char c = i < text.size() ? text[i] : ' ';
    if (c == '$') formula = !formula;
    if (c == '\\') return words >= 2;
    if (!formula && is_letter(c)) {
      ++run;
      continue;
    }
    words += run >= 3;
    run = 0;
  }
  return words >= 2;
}

// What an answer follows, in this order; the last in French, Hungarian, German, Spanish and Chinese.
struct AnswerPhrase {
  std::string_view text;
  const char* how;
};
// clang-format off
constexpr AnswerPhrase kAnswerPhrases[] = {
    {"####", "after ####"}, {"final answer:", "after \"final answer:\""}, {"answer is", "after \"answer is\""},
    {"answer:", "after \"answer:\""}, {"\na:", "after \"A:\""}, {"ponse est", "after \"la reponse est\""},
    {"ponse :", "after \"reponse :\""}, {"ponse finale est", "after \"la reponse finale est\""},
    {"\u00e1lasz:", "after \"valasz:\""}, {"a v\u00e1lasz ", "after \"a valasz\""},
    {"antwort ist", "after \"die Antwort ist\""}, {"antwort:", "after \"Antwort:\""},
    {"respuesta es", "after \"la respuesta es\""}, {"respuesta:", "after \"respuesta:\""},
    {"\u7b54\u6848\u662f", "after \"the answer is\" in Chinese"}, {"\u7b54\u6848\u4e3a", "after \"the answer is\" in Chinese"},
    {"\u7b54\u6848\uff1a", "after \"the answer:\" in Chinese"},
};
// clang-format on

Extracted lenient(std::string_view text) {
  auto after = [&](std::string_view phrase, const char* how) -> Extracted {
    size_t at = rfind_phrase(text, phrase);
    if (at == kNone) return {};
    std::string_view found = sentence_after(text, at + phrase.size());
    const char* narrower = how;
    found = without_clause(found);
    if (is_prose(found)) {
      std::string_view value = last_value(found, narrower);
      if (!value.empty()) found = value;
    }
    bool words = found.find_first_of("0123456789$\\") == kNone;
    if (std::string_view value = words ? last_numeral(found) : std::string_view(); !value.empty()) found = value;
    return {!found.empty(), found, how};
  };
  if (Extracted e = after("final answer is", "after \"final answer is\""); e.found) return e;
  size_t tag = rfind_phrase(text, "<answer>");
  if (tag != kNone) {
    std::string_view inside = text.substr(tag + 8);
    size_t close = rfind_phrase(inside, "</answer>");
    inside = trim_answer(inside.substr(0, close));
    if (close == kNone || inside.empty()) return {false, {}, "the last <answer> is empty or not closed"};
    return {true, inside, "<answer>"};
  }
  for (const AnswerPhrase& phrase : kAnswerPhrases) {
    if (Extracted e = after(phrase.text, phrase.how); e.found) return e;
  }
  const char* how = "";
  std::string_view value = last_value(text, how);
  if (value.empty()) value = last_numeral(text), how = "last number in words";
  if (value.empty()) return {false, {}, "no box, no phrase, no formula, no number"};
  return {true, value, how};
}

constexpr size_t kUnclosed = kNone;

struct Box {
  size_t begin = 0, end = kUnclosed;  // of its content
};

// Length of the command \boxed or \fbox at `at`; kNone: none is there.
size_t command_length(std::string_view text, size_t at) {
  for (std::string_view command : {std::string_view("\\boxed"), std::string_view("\\fbox")}) {
    if (text.compare(at, command.size(), command) != 0) continue;
    size_t next = at + command.size();
    bool longer_name = next < text.size() && ((text[next] | 32) >= 'a' && (text[next] | 32) <= 'z');
    return longer_name ? kNone : command.size();
  }
  return kNone;
}

Box box_without_braces(std::string_view text, size_t begin) {
  size_t end = text.find_first_of("$\n\\", begin);
  return {begin, end == kNone ? text.size() : end};
}

struct Boxes {
  Box last{kNone, kNone};   // {npos, npos} when there is none
  std::vector<Box> closed;  // in order, without those inside others
};

Boxes boxes_of(std::string_view text) {
  struct Open {
    bool is_box;
    size_t begin;
  };
  std::vector<Open> open;  // braces since the outermost open box
  Boxes boxes;
  auto close = [&](Box box) {
    while (!boxes.closed.empty() && boxes.closed.back().begin > box.begin) boxes.closed.pop_back();
    boxes.closed.push_back(box);
    if (boxes.last.begin == box.begin) boxes.last.end = box.end;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\') {
      size_t length = command_length(text, i);
      if (length == kNone) {
        // An escaped brace opens nothing; but "\\boxed" is a box whose backslash was escaped once too often.
        bool doubled = i + 1 < text.size() && text[i + 1] == '\\' && command_length(text, i + 1) != kNone;
        if (!doubled) ++i;
        continue;
      }
      size_t content = i + length;
      size_t brace = std::min(text.find_first_not_of(" \t\n", content), text.size());
      if (brace < text.size() && text[brace] == '{') {
        open.push_back({true, brace + 1});
        boxes.last = {brace + 1, kUnclosed};
        i = brace;
      } else {
        boxes.last = box_without_braces(text, content);
        if (open.empty()) close(boxes.last);
        i = content - 1;
      }
    } else if (c == '{' && !open.empty()) {
      open.push_back({false, i + 1});
    } else if (c == '}' && !open.empty()) {
      if (open.back().is_box) close({open.back().begin, i});
      open.pop_back();
    }
  }
  // The last box inside another closed one counts as that one.
  if (boxes.last.begin != kNone && boxes.last.end != kUnclosed && !boxes.closed.empty()) {
    Box outer = boxes.closed.back();
    if (outer.begin <= boxes.last.begin && outer.end >= boxes.last.end) boxes.last = outer;
  }
  return boxes;
}

// The same between two boxes, with the signs of formulas: "$ and $", "\quad \text{and} \quad".
bool joins_boxes(std::string_view gap) {
  constexpr std::string_view kSigns[] = {"\\quad", "\\(", "\\)", "\\,", "$"};
  std::string joins;
  while (!gap.empty()) {
    auto sign = std::find_if(std::begin(kSigns), std::end(kSigns), [&](auto s) { return gap.starts_with(s); });
    if (sign != std::end(kSigns)) {
      gap.remove_prefix(sign->size());
    } else if (gap.starts_with("\\text{")) {
      size_t close = gap.find('}');
      if (close == kNone || !only_joins(gap.substr(6, close - 6))) return false;
      gap.remove_prefix(close + 1);
    } else {
      joins.push_back(gap.front());
      gap.remove_prefix(1);
    }
  }
  return only_joins(joins);
}

constexpr size_t kGap = 200;    // bytes between two boxes that are parts of one answer
constexpr size_t kJoined = 20;  // boxes in words

// Where the command of a box begins, whose content is known.
size_t command_begin(std::string_view text, Box box) { return text.rfind('\\', box.begin - 1); }

// The text between two boxes, from the end of the first one.
std::string_view gap_between(std::string_view text, Box first, Box second) {
  size_t begin = first.end + (first.end < text.size() && text[first.end] == '}'), end = command_begin(text, second);
  return end > begin ? text.substr(begin, end - begin) : std::string_view();
}

std::string_view content_of(std::string_view text, Box box) {
  return trim_answer(text.substr(box.begin, box.end - box.begin));
}

// Boxes side by side are one answer of several values: "$\\boxed{1}$ and $\\boxed{2}$". Where the run of boxes that
// ends with the last one begins: at its first backslash, or kNone if the last is alone.
size_t run_of_boxes(std::string_view text, const Boxes& boxes) {
  size_t k = boxes.closed.size();
  if (k == 0 || boxes.closed.back().begin != boxes.last.begin) return kNone;
  bool repeated = true;  // the same box again and again
  for (--k; k > 0; --k) {
    std::string_view gap = gap_between(text, boxes.closed[k - 1], boxes.closed[k]);
    if (gap.size() > kGap || !joins_boxes(gap)) break;
    repeated &= content_of(text, boxes.closed[k - 1]) == content_of(text, boxes.last);
  }
  return repeated ? kNone : command_begin(text, boxes.closed[k]);
}

// Words between two boxes after which the second replaces the first or follows from it.
bool says_more(std::string_view gap) {
  constexpr std::string_view kWords =
      "no not nor instead wait but however actually rather wrong or so hence thus then final finally answer gives "
      "which yields since either now next check sum total reject discard except if maybe neither result finish "
      "because therefore";
  for (size_t i = 0; i < gap.size();) {
    size_t end = i;
    std::string word;
    while (end < gap.size() && is_letter(gap[end])) word.push_back(static_cast<char>(gap[end++] | 32));
    if (in_words(kWords, word)) return true;
    i = std::max(end, i + 1);
  }
  return false;
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != kNone; at = text.find(word, at + 1)) {
    bool before = at > 0 && is_letter(text[at - 1]);
    size_t end = at + word.size();
    if (!before && !(end < text.size() && is_letter(text[end]))) return true;
  }
  return false;
}

bool ends_sentence(std::string_view gap) {
  for (std::string_view end : {". ", ".\n", "! ", "? ", "\n\n", ".$ "}) {
    if (gap.find(end) != kNone) return true;
  }
  return false;
}

// "and the height is", ", y =": the second box continues the list. "(b)", "part 2", "second": it answers another
// part.
bool goes_on(std::string_view gap) {
  return !ends_sentence(gap) && (gap.find(',') != kNone || has_word(gap, "and") || has_word(gap, "et"));
}

bool marks_part(std::string_view gap) {
  for (std::string_view mark : {"(b)", "(c)", "(d)", "(2)", "(3)", "(ii)", "(iii)"}) {
    if (gap.find(mark) != kNone) return true;
  }
  return has_word(gap, "second") || has_word(gap, "third") || has_word(gap, "part") || has_word(gap, "Part");
}

}  // namespace

std::optional<std::string_view> last_answer_tag(std::string_view response) {
  constexpr std::string_view kOpen = "<answer>", kClose = "</answer>";
  size_t close = response.rfind(kClose);
  if (close == kNone) return std::nullopt;
  size_t open = response.substr(0, close).rfind(kOpen);
  if (open == kNone) return std::nullopt;
  size_t begin = open + kOpen.size();
  return response.substr(begin, response.find(kClose, begin) - begin);  // a stray </answer> later closes nothing
}

std::string_view without_thoughts(std::string_view response) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  for (size_t close; (close = response.rfind(kClose)) != kNone;) {
    std::string_view rest = response.substr(close + kClose.size());
    rest = rest.substr(0, rest.find(kOpen));
    const size_t open = response.substr(0, close).rfind(kOpen);
    if (open == kNone || !trim(rest).empty()) return rest;
    response = response.substr(0, open);
  }
  return trim(response).starts_with(kOpen) ? std::string_view() : response;
}

Extracted extract_answer(std::string_view response, Extract mode) {
  if (response.size() > kResponseLimit) response.remove_prefix(response.size() - kResponseLimit);
  if (mode == Extract::bare) {
    std::string_view whole = trim_answer(response);
    if (whole.empty()) return {false, {}, "no answer"};
    return {true, whole, "the whole text"};
  }
  if (mode == Extract::answer_tag) {
    std::optional<std::string_view> tagged = last_answer_tag(response);
    if (!tagged) return {false, {}, "no <answer> that is closed"};
    Extracted inside = from_box(*tagged, false);
    bool no_box = !inside.found && std::string_view(inside.how) == "no box";
    return no_box ? Extracted{false, {}, "no box inside the last <answer>"} : inside;
  }
  response = without_thoughts(response);
  Extracted boxed = from_box(response, mode == Extract::lenient);
  bool has_box = boxed.found || std::string_view(boxed.how) != "no box";
  return has_box || mode == Extract::strict ? boxed : lenient(response);
}

bool only_joins(std::string_view text) {
  constexpr std::string_view kBlanks = " \n,;";
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(kBlanks), text.size());
    if (end > 0 && conjunction(text.substr(0, end)) == '\0') return false;
    text.remove_prefix(std::max<size_t>(end, 1));
  }
  return true;
}

Extracted from_box(std::string_view text, bool several) {
  Boxes boxes = boxes_of(text);
  Box box = boxes.last;
  if (box.begin == kNone) return {false, {}, "no box"};
  if (box.end == kUnclosed) return {false, {}, "the last box is not closed"};
  std::string_view content = trim_answer(text.substr(box.begin, box.end - box.begin));
  if (content.empty()) return {false, {}, "the last box is empty"};
  if (size_t first = several ? run_of_boxes(text, boxes) : kNone; first != kNone) {
    return {true, text.substr(first, box.end + 1 - first), "the last boxes"};
  }
  return {true, content, "last box"};
}

std::optional<std::string> joined_boxes(std::string_view response, size_t count) {
  if (count < 2 || count > kJoined) return std::nullopt;
  if (response.size() > kResponseLimit) response.remove_prefix(response.size() - kResponseLimit);
  Boxes boxes = boxes_of(response);
  size_t all = boxes.closed.size();
  if (all < count || boxes.closed.back().begin != boxes.last.begin) return std::nullopt;
  auto gap = [&](size_t k) { return gap_between(response, boxes.closed[k - 1], boxes.closed[k]); };
  size_t first = all - count;
  if (first > 0 && !ends_sentence(gap(first))) return std::nullopt;  // another box in the sentence
  std::string joined;
  for (size_t k = first; k < all; ++k) {
    std::string_view content = content_of(response, boxes.closed[k]);
    if (content.empty()) return std::nullopt;
    if (k > first) {
      bool parts = goes_on(gap(k)) || (first == 0 && marks_part(gap(k)));
      if (!parts || gap(k).size() > kGap || says_more(gap(k))) return std::nullopt;
      joined += ", ";
    }
    joined += str("\\boxed{", content, "}");
  }
  return joined;
}

}  // namespace ucas::math
