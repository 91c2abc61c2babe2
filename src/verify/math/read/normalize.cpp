#include "verify/math/read/parser.h"

#include <algorithm>
#include <vector>

#include "base/str.h"
#include "verify/math/read/letters.h"
#include "verify/math/read/macros.h"

namespace ucas::math {

namespace {

struct Rename {
  std::string_view from, to;
};

// Commands (without backslash) that mean the same as another, or nothing.
constexpr Rename kCommandNames[] = {
    {"Bigg Big bigg big bigl bigr Bigl Bigr displaystyle left right limits textstyle thinspace", ""},
    {"nobreakspace qquad quad enspace hspace", " "},
    {"mathbf mathrm mathsf mathit mbox operatorname textbf textit textnormal textrm textsf texttt", "\\text"},
    {"cfrac dfrac tfrac", "\\frac"},
    {"degree", "^\\circ"},
    {"geq geqslant", "\\ge"},
    {"leq leqslant", "\\le"},
    {"neq", "\\ne"},
    {"lbrace", "\\{"},
    {"rbrace", "\\}"},
};

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

// Position of the brace that closes the one at `open`, or npos.
size_t closing_brace(std::string_view text, size_t open) {
  int64_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

// Takes PREFIX{...} off when it is the whole text.
bool unwrap(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix) || text.back() != '}') return false;
  if (closing_brace(text, prefix.size() - 1) != text.size() - 1) return false;
  text = trim(text.substr(prefix.size(), text.size() - prefix.size() - 1));
  return true;
}

bool strip(std::string_view& text, std::string_view open, std::string_view close) {
  if (text.size() <= open.size() + close.size() || !text.starts_with(open) || !text.ends_with(close)) return false;
  text = trim(text.substr(open.size(), text.size() - open.size() - close.size()));
  return true;
}

// Wrappers of the whole answer: $..$, \(..\), **..**, \boxed{..}, a final full stop. At most eight layers, so
// that the work stays linear.
std::string_view without_wrapping(std::string_view text) {
  text = trim(text);
  for (int layer = 0; layer < 8 && !text.empty(); ++layer) {
    bool changed = strip(text, "$$", "$$") || strip(text, "\\(", "\\)") || strip(text, "\\[", "\\]") ||
                   strip(text, "**", "**") || unwrap(text, "\\boxed{") || unwrap(text, "\\fbox{") || unwrap(text, "{");
    if (!changed && text.size() > 1 && text.back() == '.') {
      text = trim(text.substr(0, text.size() - 1));
      changed = true;
    }
    if (!changed) break;
  }
  return text;
}

// One command at text[i] == '\\': appends its spelling to `out` and returns the position after it.
size_t add_command(std::string_view text, size_t i, std::string& out) {
  size_t end = i + 1;
  while (end < text.size() && is_letter(text[end])) ++end;
  std::string_view name = text.substr(i + 1, end - i - 1);
  if (name.empty()) {
    if (end == text.size()) return end;
    char c = text[end];
    if (c == '!') return end + 1;
    if (c == ',' || c == ';' || c == ':' || c == ' ') {
      // 12\,345: a thin space between groups of three digits.
      bool group = c == ',' && !out.empty() && is_digit(out.back()) && end + 3 < text.size() &&
                   is_digit(text[end + 1]) && is_digit(text[end + 2]) && is_digit(text[end + 3]);
      out.push_back(group ? ',' : ' ');
    } else if (c == '%' || c == '#' || c == '&' || c == '_') {
      out.push_back(c);
    } else if (c != '$' && c != '(' && c != ')' && c != '[' && c != ']') {
      out.append({'\\', c});
    }
    return end + 1;
  }
  for (const Rename& rename : kCommandNames) {
    if (in_words(rename.from, name)) {
      out += rename.to;
      return end;
    }
  }
  out += text.substr(i, end - i);
  if (end < text.size() && text[end] == ' ') out.push_back(' ');
  return end;
}

std::string collapse_spaces(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank) {
      out.push_back(c);
    } else if (!out.empty() && out.back() != ' ') {
      out.push_back(' ');
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// The letter that a control character at text[i] was before it was read as an escape, if a known command begins with it
// and continues with the letters behind; otherwise 0. Tabs and line ends are blanks as well: they want three letters.
char lost_letter(std::string_view text, size_t i) {
  constexpr std::string_view kBytes = "\a\b\t\n\v\f\r", kLetters = "abtnvfr";
  size_t which = kBytes.find(text[i]);
  if (which == std::string_view::npos) return '\0';
  char letter = kLetters[which];
  size_t end = i + 1;
  while (end < text.size() && end - i <= 16 && is_letter(text[end])) ++end;
  std::string_view tail = text.substr(i + 1, end - i - 1);
  bool blank = letter == 't' || letter == 'n' || letter == 'r';
  if (letter == 't' && tail == "ext") {  // of words only: what \text{13} lost may as well be a broken number
    bool words = end + 1 < text.size() && text[end] == '{' && !is_digit(text[end + 1]);
    return words ? letter : '\0';
  }
  if (tail == "an" || tail == "eq" || tail == "extcirc") return find_command(str(letter, tail)) ? letter : '\0';
  for (size_t length = tail.size(); length >= (blank ? 3 : 2); --length) {
    if (find_command(str(letter, tail.substr(0, length)))) return letter;
  }
  return '\0';
}

}  // namespace

std::string_view restore_commands(std::string_view text, std::string& buffer) {
  bool trimmed = text.starts_with("rac{");  // a form feed in front went with the spaces
  bool control = std::any_of(text.begin(), text.end(), is_control);
  if (!trimmed && !control) return text;
  if (trimmed) buffer = "\\f";
  for (size_t i = 0; i < text.size(); ++i) {
    char letter = is_control(text[i]) ? lost_letter(text, i) : '\0';
    if (letter == '\0') {
      buffer.push_back(text[i]);
      continue;
    }
    while (buffer.ends_with('\\')) buffer.pop_back();
    buffer += {'\\', letter};
  }
  return buffer;
}

std::string_view trim_answer(std::string_view text) {
  const std::string_view inside = trim(text);
  const auto begin = static_cast<size_t>(inside.data() - text.data());
  if (inside.empty() || begin == 0 || lost_letter(text, begin - 1) == '\0') return inside;
  return {inside.data() - 1, inside.size() + 1};
}

std::string normalize(std::string_view answer) {
  std::string_view text = without_wrapping(answer);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\\') {
      i = add_command(text, i, out);
      continue;
    }
    if (text[i] == '$') {
      ++i;
      continue;
    }
    if (text.substr(i, 3) == "{,}" || text.substr(i, 3) == "{:}") {
      out.push_back(text[i + 1]);
      i += 3;
      continue;
    }
    if (beyond_ascii(text[i])) {
      out += latex_of(text, i);
      continue;
    }
    out.push_back(text[i] == '~' ? ' ' : text[i]);
    ++i;
  }
  out = collapse_spaces(out);
  std::string_view whole = out;
  for (int layer = 0; layer < 4 && unwrap(whole, "\\text{"); ++layer) {
  }
  return std::string(whole);
}

std::string take_number(std::string_view text, std::string_view& rest) {
  rest = text = trim(text);
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text = trim(text.substr(1));
  size_t i = run_of(text, is_digit), whole = i;
  std::string digits(text.substr(0, i));
  auto group = [&] { return text.substr(i).starts_with(',') && run_of(text.substr(i + 1), is_digit) == 3; };
  while (whole >= 1 && whole <= 3 && text[0] != '0' && group()) {
    digits += text.substr(i + 1, 3);
    i += 4;
  }
  std::string decimals;
  if (text.substr(i).starts_with('.')) {
    decimals = text.substr(i + 1, run_of(text.substr(i + 1), is_digit));
    i += 1 + decimals.size();
  }
  if (digits.empty() && decimals.empty()) return {};
  rest = text.substr(i);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  decimals.resize(decimals.find_last_not_of('0') + 1);
  bool zero = digits.empty() && decimals.empty();
  return str(negative && !zero ? "-" : "", digits, ".", decimals);
}

std::string text_key(std::string_view text) {
  // "(A)" and "A" name the same choice.
  if (text.size() == 3 && text[0] == '(' && text[2] == ')' && is_upper(text[1])) text = text.substr(1, 1);
  std::string key;
  bool words = true;
  std::vector<bool> dropped;  // for each open brace: is it left out?
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') {  // 1 2 is not 12
      bool digit_before = !key.empty() && (is_digit(key.back()) || key.back() == '.');
      if (digit_before && i + 1 < text.size() && (is_digit(text[i + 1]) || text[i + 1] == '.')) key.push_back(c);
      continue;
    }
    if (text.compare(i, 6, "\\text{") == 0) {
      i += 5;
      dropped.push_back(true);
      continue;
    }
    if (c == '\\' && i + 1 < text.size()) {
      words = false;
      key.push_back(c);
      key.push_back(text[++i]);
      continue;
    }
    if (c == '{') {
      // ^{2} and _{n}: braces around a single character.
      bool single = i > 0 && (text[i - 1] == '^' || text[i - 1] == '_') && i + 2 < text.size() && text[i + 2] == '}' &&
                    text[i + 1] != '\\' && text[i + 1] != '{';
      dropped.push_back(single);
      if (single) continue;
    } else if (c == '}' && !dropped.empty()) {
      bool drop = dropped.back();
      dropped.pop_back();
      if (drop) continue;
    }
    words = words && (is_letter(c) || c == '-' || c == '\'' || c == '.' || beyond_ascii(c));
    key.push_back(c);
  }
  // Words have no case, but AB and ab are different products and segments.
  if (words && (key.size() > 3 || key == "Yes" || key == "YES" || key == "No" || key == "NO")) {
    for (char& c : key) c = is_upper(c) ? static_cast<char>(c + 32) : c;
  }
  return key;
}

bool well_formed(std::string_view answer) {
  if (!valid_utf8(answer)) return false;
  int64_t depth = 0;
  for (size_t i = 0; i < answer.size(); ++i) {
    char c = answer[i];
    auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7f) return false;
    if (c == '\\' && i + 1 < answer.size() && (answer[i + 1] == '{' || answer[i + 1] == '}' || answer[i + 1] == '\\')) {
      ++i;
      continue;
    }
    if (c == '{') ++depth;
    if (c == '}' && --depth < 0) return false;
  }
  return depth == 0;
}

}  // namespace ucas::math
