#include "verify/math/read/extract.h"

#include <algorithm>
#include <vector>

#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/macros.h"
#include "verify/math/read/parser.h"

namespace ucas::math {

namespace {

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
  // The last box inside another closed one stands for that one.
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

// What stands between two boxes, from the end of the first one.
std::string_view gap_between(std::string_view text, Box first, Box second) {
  size_t begin = first.end + (first.end < text.size() && text[first.end] == '}'), end = command_begin(text, second);
  return end > begin ? text.substr(begin, end - begin) : std::string_view();
}

std::string_view content_of(std::string_view text, Box box) {
  return trim_answer(text.substr(box.begin, box.end - box.begin));
}

// Boxes side by side are one answer of several values: "$\\boxed{1}$ and $\\boxed{2}$". Where the run of boxes that
// ends with the last one begins: at its first backslash, or kNone if the last stands alone.
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

// "and the height is", ", y =": the second box goes on with the list. "(b)", "part 2", "second": it answers another
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
