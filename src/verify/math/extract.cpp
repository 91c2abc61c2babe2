#include "verify/math/extract.h"

#include <algorithm>
#include <vector>

#include "base/str.h"

namespace ucas {

namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kUnclosed = kNone;

struct Box {
  size_t begin = 0, end = kUnclosed;  // of its content
};

// Length of the command \boxed or \fbox at `at`; kNone: none stands there.
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

// The last box; where it lies inside another closed box, that one. {npos, npos} when there is none.
Box last_box(std::string_view text) {
  struct Open {
    bool is_box;
    size_t begin;
  };
  std::vector<Open> open;  // braces since the outermost open box
  Box last{kNone, kNone}, outermost{kNone, kNone};
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
        last = {brace + 1, kUnclosed};
        i = brace;
      } else {
        last = box_without_braces(text, content);
        i = content - 1;
      }
    } else if (c == '{' && !open.empty()) {
      open.push_back({false, i + 1});
    } else if (c == '}' && !open.empty()) {
      if (open.back().is_box) {
        outermost = {open.back().begin, i};
        if (last.begin == open.back().begin) last.end = i;
      }
      open.pop_back();
    }
  }
  if (last.begin == kNone || last.end == kUnclosed) return last;
  return outermost.begin != kNone && outermost.begin <= last.begin && outermost.end >= last.end ? outermost : last;
}

// May stand between two values of one answer: spaces, commas, "and", "or".
bool only_joins(std::string_view text) {
  while (!text.empty()) {
    size_t length = text.starts_with("and") ? 3 : text.starts_with("or") ? 2 : 0;
    if (length == 0 && std::string_view(" \n,;").find(text[0]) == kNone) return false;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return true;
}

// Boxes side by side are one answer of several values: "$\\boxed{1}$ and $\\boxed{2}$". Where the run of boxes that
// ends with `last` begins: at its first backslash, or kNone if `last` stands alone.
size_t run_of_boxes(std::string_view text, Box last) {
  size_t first = kNone;
  size_t begin = text.rfind('\\', last.begin);
  while (begin != kNone && begin > 0) {
    size_t i = begin;  // backwards over what may stand between two boxes
    for (bool moved = true; moved && i > 0;) {
      moved = true;
      std::string_view before = text.substr(0, i);
      // Only the last bytes are searched: work stays linear in the number of boxes.
      size_t recent = before.size() - std::min<size_t>(before.size(), 16);
      size_t quoted = before.ends_with('}') ? before.substr(recent).rfind("\\text{") : kNone;
      if (quoted != kNone) quoted += recent;
      if (quoted != kNone && only_joins(before.substr(quoted + 6, i - quoted - 7))) {
        i = quoted;  // \text{ and }
      } else if (before.ends_with("\\quad")) {
        i -= 5;
      } else if (before.ends_with("\\(") || before.ends_with("\\)") || before.ends_with("\\,") ||
                 before.ends_with("or")) {
        i -= 2;
      } else if (before.ends_with("and")) {
        i -= 3;
      } else if (std::string_view(" \n$,;").find(before.back()) != kNone) {
        i -= 1;
      } else {
        moved = false;
      }
    }
    if (i == 0 || text[i - 1] != '}') break;
    // The box that closes here holds no other brace, so that looking for its start stays linear.
    size_t open = text.rfind('{', i - 1);
    if (open == kNone || open < 5) break;
    size_t command = text.rfind('\\', open);
    if (command == kNone || command_length(text, command) != open - command) break;
    if (text.substr(open + 1, i - open - 2).find('}') != kNone) break;
    first = begin = command;
  }
  return first;
}

Extracted from_box(std::string_view text, bool several) {
  Box box = last_box(text);
  if (box.begin == kNone) return {false, {}, "no box"};
  if (box.end == kUnclosed) return {false, {}, "the last box is not closed"};
  std::string_view content = trim(text.substr(box.begin, box.end - box.begin));
  if (content.empty()) return {false, {}, "the last box is empty"};
  if (size_t first = several ? run_of_boxes(text, box) : kNone; first != kNone) {
    return {true, text.substr(first, box.end + 1 - first), "the last boxes"};
  }
  return {true, content, "last box"};
}

// Last place where `phrase` (lower case) stands, letters compared without case.
size_t rfind_phrase(std::string_view text, std::string_view phrase) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (size_t at = text.size() + 1; at-- > phrase.size();) {
    size_t begin = at - phrase.size(), i = 0;
    while (i < phrase.size() && lower(text[begin + i]) == phrase[i]) ++i;
    if (i == phrase.size()) return begin;
  }
  return kNone;
}

// What follows a phrase such as "the answer is": to the end of the sentence or line; a formula in dollars if it starts
// with one.
std::string_view sentence_after(std::string_view text, size_t begin) {
  text = text.substr(begin);
  size_t start = text.find_first_not_of(" \t:*=\n");
  if (start == kNone) return {};
  text.remove_prefix(start);
  if (text.starts_with("$")) {
    size_t open = text.starts_with("$$") ? 2 : 1;
    size_t close = text.find('$', open);
    if (close != kNone) return trim(text.substr(open, close - open));
  }
  size_t end = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    bool stop = (text[i] == '.' || text[i] == '!' || text[i] == ';') &&
                (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n');
    if (text[i] == '\n' || stop) {
      end = i;
      break;
    }
  }
  text = trim(text.substr(0, end));
  while (!text.empty() && (text.back() == '*' || text.back() == '.')) text.remove_suffix(1);
  return trim(text);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The formula in $..$ or \(..\) that the byte at `at` belongs to, "" for none.
std::string_view formula_around(std::string_view text, size_t at) {
  auto dollars = std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), '$');
  size_t open = text.rfind('$', at), close = text.find('$', at);
  if (dollars % 2 == 1 && open != kNone) return trim(text.substr(open + 1, close - open - 1));
  open = text.rfind("\\(", at);
  close = text.find("\\)", at);
  bool inside = open != kNone && close != kNone && text.substr(open, at - open).find("\\)") == kNone;
  return inside ? trim(text.substr(open + 2, close - open - 2)) : std::string_view();
}

// The last number of the text: 12, -3.5, 1,234, 3/4, \frac{3}{4}, each with its sign; or the formula it is part of.
std::string_view last_number(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  if (end == 0) return {};
  if (std::string_view formula = formula_around(text, end - 1); !formula.empty()) return formula;
  size_t close = end < text.size() && text[end] == '}' ? end + 1 : end;
  size_t fraction = text.rfind("frac{");
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
                  ((c == '.' || c == ',' || c == '/') && begin < end && is_digit(text[begin]) &&
                   (c == '.' || (begin > 1 && is_digit(text[begin - 2]))));
    if (!inside) break;
    --begin;
  }
  // A digit in an exponent, a root or the like is no answer.
  if (begin > 0 && std::string_view("{^_\\").find(text[begin - 1]) != kNone) return {};
  bool sign = begin > 0 && (text[begin - 1] == '-' || text[begin - 1] == '+');
  // "5-3": a minus between numbers is not a sign.
  if (sign && !(begin > 1 && (is_digit(text[begin - 2]) || text[begin - 2] == ')'))) --begin;
  return text.substr(begin, end - begin);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The last closed formula in $..$, $$..$$, \(..\) or \[..\]; one that is more than a name such as $n$ or $ABCD$ if
// there is any. Formulas with nothing but "and" or commas between them are one: $k = 45$, $n = 2$. `end` is where it
// ends in the text.
std::string_view last_formula(std::string_view text, size_t& end) {
  struct Found {
    size_t outer = 0, inner = 0, close = 0, end = 0;  // $$ a $$: outer at the first $, inner at a, close, end after $$
  };
  Found best, name, previous;
  auto keep = [&](Found found) {
    std::string_view inside = trim(text.substr(found.inner, found.close - found.inner));
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
  return best.close < best.inner ? std::string_view() : trim(text.substr(best.inner, best.close - best.inner));
}

// The formula or number that prose ends with: "The largest $n$ is 34" says 34.
std::string_view last_value(std::string_view text, const char*& how) {
  size_t end = 0;
  std::string_view formula = last_formula(text, end);
  std::string_view number = last_number(formula.empty() ? text : text.substr(end));
  how = number.empty() ? "last formula" : "last number";
  return number.empty() ? formula : number;
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

Extracted lenient(std::string_view text) {
  auto after = [&](std::string_view phrase, const char* how) -> Extracted {
    size_t at = rfind_phrase(text, phrase);
    if (at == kNone) return {};
    std::string_view found = sentence_after(text, at + phrase.size());
    const char* narrower = how;
    if (is_prose(found)) {
      if (std::string_view value = last_value(found, narrower); !value.empty()) found = value;
    }
    return {!found.empty(), found, how};
  };
  if (Extracted e = after("final answer is", "after \"final answer is\""); e.found) return e;
  size_t tag = rfind_phrase(text, "<answer>");
  if (tag != kNone) {
    std::string_view inside = text.substr(tag + 8);
    size_t close = rfind_phrase(inside, "</answer>");
    inside = trim(inside.substr(0, close));
    if (close == kNone || inside.empty()) return {false, {}, "the last <answer> is empty or not closed"};
    return {true, inside, "<answer>"};
  }
  if (Extracted e = after("####", "after ####"); e.found) return e;
  if (Extracted e = after("final answer:", "after \"final answer:\""); e.found) return e;
  if (Extracted e = after("answer is", "after \"answer is\""); e.found) return e;
  if (Extracted e = after("answer:", "after \"answer:\""); e.found) return e;
  if (Extracted e = after("\na:", "after \"A:\""); e.found) return e;
  const char* how = "";
  std::string_view value = last_value(text, how);
  if (value.empty()) return {false, {}, "no box, no phrase, no formula, no number"};
  return {true, value, how};
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

Extracted extract_answer(std::string_view response, Extract mode) {
  if (response.size() > kResponseLimit) response.remove_prefix(response.size() - kResponseLimit);
  if (mode == Extract::bare) {
    std::string_view whole = trim(response);
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
  Extracted boxed = from_box(response, mode == Extract::lenient);
  bool has_box = boxed.found || std::string_view(boxed.how) != "no box";
  return has_box || mode == Extract::strict ? boxed : lenient(response);
}

}  // namespace ucas
