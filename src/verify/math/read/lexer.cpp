#include "verify/math/read/lexer.h"

#include <algorithm>
#include <utility>

#include "base/str.h"
#include "verify/math/read/letters.h"

namespace ucas::math {

namespace {

bool is_word_letter(char c) { return is_letter(c) || beyond_ascii(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Backslashes doubled throughout, as in text that was escaped once too often: "\\frac", unless they mean rows of a
// matrix.
bool doubled_backslashes(std::string_view text) {
  bool doubled = false;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') continue;
    size_t run = text.find_first_not_of('\\', i);
    if (run == std::string_view::npos) break;
    if (run - i == 1 && text.compare(run, 5, "begin") == 0) return false;
    doubled |= run - i == 2 && is_letter(text[run]) && run + 1 < text.size() && is_letter(text[run + 1]);
    i = run - 1;
  }
  return doubled;
}

// Length of a separator between groups of three digits that can be nothing else: {,} ,\! \! \, and \  ; 0 for none.
size_t definite_separator(std::string_view text) {
  constexpr std::string_view kForms[] = {"{,\\!}", "{\\,}", ",\\!", "\\,", "\\!", "\\ ", "{ }", "~"};
  if (size_t open = text.find_first_not_of(' '); open != std::string_view::npos && text[open] == '{') {  // {, }
    size_t comma = text.find_first_not_of(' ', open + 1);
    size_t close = comma == std::string_view::npos ? comma : text.find_first_not_of(' ', comma + 1);
    if (close != std::string_view::npos && text[comma] == ',' && text[close] == '}') {
      size_t next = text.find_first_not_of(" !\\", close + 1);
      return std::min(next, text.size());
    }
  }
  for (std::string_view form : kForms) {
    if (!text.starts_with(form)) continue;
    size_t length = form.size();
    if (form.front() == ',' && text.size() > length && text[length] == ' ') ++length;  // 11,\! 111
    return length;
  }
  return 0;
}

bool three_digits(std::string_view text) {
  return text.size() >= 3 && is_digit(text[0]) && is_digit(text[1]) && is_digit(text[2]) &&
         (text.size() == 3 || !is_digit(text[3]));
}

}  // namespace

bool Lexer::expand(std::string_view text) {
  if (!valid_utf8(text)) {
    reason_ = "bytes that are not UTF-8";
    return false;
  }
  bool halve = doubled_backslashes(text);
  size_t script_end = 0;  // just behind an exponent or index written in Unicode
  buffer_.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (beyond_ascii(c)) {
      std::string_view latex = latex_of(text, i);
      bool script = latex.starts_with("^{") || latex.starts_with("_{");
      if (script && script_end == buffer_.size() && script_end > 0) {  // x to the 10 are two characters
        buffer_.pop_back();
        latex.remove_prefix(2);
      }
      buffer_ += latex;
      script_end = script ? buffer_.size() : 0;
      continue;
    }
    struct Tag {
      std::string_view html, latex;
    };
    constexpr Tag kTags[] = {{"<sup>", "^{"}, {"</sup>", "}"}, {"<sub>", "_{"}, {"</sub>", "}"}};
    const Tag* tag = c != '<' ? std::end(kTags) : std::find_if(std::begin(kTags), std::end(kTags), [&](const Tag& t) {
      return text.substr(i).starts_with(t.html);
    });
    if (tag != std::end(kTags)) {
      buffer_ += tag->latex;
      i += tag->html.size() - 1;
    } else if (c == '\\' && halve && i + 1 < text.size() && text[i + 1] == '\\') {
      buffer_.push_back(c);
      ++i;
    } else if ((static_cast<unsigned char>(c) < 0x20 && !is_blank(c)) || c == 0x7f) {
      reason_ = "a control character";
      return false;
    } else {
      buffer_.push_back(c);
    }
    ++i;
  }
  return true;
}

bool Lexer::run(std::string_view text) {
  if (!expand(text)) return false;
  digits_.reserve(buffer_.size() + 1);
  // A single dollar sign is money. Where formulas are marked, what is outside of them is prose.
  size_t dollars = 0;
  for (size_t i = 0; i < buffer_.size(); ++i) {
    if (buffer_[i] == '\\') {
      ++i;
    } else {
      dollars += buffer_[i] == '$';
    }
  }
  dollars_pair_ = dollars % 2 == 0 && dollars > 0;
  outside_ = dollars_pair_ || buffer_.find("\\(") != std::string::npos || buffer_.find("\\[") != std::string::npos
                 ? Style::text
                 : Style::math;
  style_ = outside_;
  scan();
  balanced_ &= styles_.empty();
  tokens_.push_back({.space_before = space_});
  return true;
}

void Lexer::push(Token token) {
  token.space_before = space_;
  if (token.style == Style::math) token.style = style_;
  space_ = line_break_ = false;
  tokens_.push_back(token);
}

void Lexer::open_brace() {
  // The braces of \text{..} and \mathbf{..} only say how far the style reaches.
  bool hidden = pending_style_ && next_style_ != Style::math;
  styles_.push_back({style_, hidden});
  if (pending_style_) style_ = next_style_;
  pending_style_ = false;
  if (!hidden) push_symbol('{');
  brackets_.push_back('{');
}

void Lexer::close_brace() {
  if (styles_.empty()) {
    balanced_ = false;
    return;
  }
  if (!styles_.back().hidden) push_symbol('}');
  style_ = styles_.back().outer;
  styles_.pop_back();
  while (!brackets_.empty() && brackets_.back() != '{') brackets_.pop_back();
  if (!brackets_.empty()) brackets_.pop_back();
}

// A run of letters; 1orW(x) = 2 has a word stuck to what follows.
void Lexer::scan_word() {
  std::string_view run = std::string_view(buffer_).substr(i_);
  run = run.substr(0, run_of(run, is_word_letter));
  for (std::string_view word : {"or", "and"}) {
    if (run.size() <= word.size() || !run.starts_with(word)) continue;
    // x=1orx=2: stuck to both of its equations
    size_t next = std::min(buffer_.find_first_not_of(' ', i_ + run.size()), buffer_.size());
    bool equation = run.size() == word.size() + 1 && !space_ && ends_value() && at(next) != '\0' &&
                    std::string_view("=<>_").find(at(next)) != std::string_view::npos;
    if (is_upper(run[word.size()]) || equation) run = run.substr(0, word.size());
  }
  if (pending_style_) run = run.substr(0, 1);  // \mathbf v
  i_ += run.size();
  Style style = std::exchange(pending_style_, false) ? next_style_ : Style::math;
  push({.kind = TokenKind::word, .style = style, .text = run});
}

void Lexer::scan() {
  while (i_ < buffer_.size()) {
    char c = buffer_[i_];
    if (is_blank(c)) {
      bool paragraph = c == '\n' && at(i_ + 1) == '\n' && !tokens_.empty();
      if (paragraph) push_separator();
      space_ = true;
      line_break_ |= c == '\n';
      ++i_;
    } else if (is_digit(c) || (c == '.' && is_digit(at(i_ + 1)) && (i_ == 0 || !is_digit(buffer_[i_ - 1])))) {
      scan_number();
    } else if (is_word_letter(c)) {
      scan_word();
    } else if (c == '\\') {
      scan_backslash();
    } else {
      scan_symbol(c);
    }
  }
}

void Lexer::scan_dollar() {
  bool money = !dollars_pair_ && (is_digit(at(i_ + 1)) || at(i_ + 1) == '.' || at(i_ + 1) == ' ');
  if (money) {
    push({.kind = TokenKind::command, .command = find_command("dollar")});
  } else if (dollars_pair_ && styles_.empty()) {
    in_dollars_ = !in_dollars_;
    if (in_dollars_ && line_break_ && ends_value()) push_separator();  // formulas on lines of their own
    style_ = in_dollars_ ? Style::math : outside_;
    space_ = true;
  } else {
    // Inside \text{..$x$..}.
    style_ = style_ == Style::text ? Style::math : styles_.empty() ? Style::math : Style::text;
    space_ = true;
  }
  ++i_;
  if (at(i_) == '$') ++i_;  // $$
}

// <= => == != -> and their like: the letter of the relation and how many characters it has; 0 for anything else.
char Lexer::relation_at(char c, size_t& length) const {
  char next = at(i_ + 1);
  length = 1;
  auto two = [&](char which) { return length = 2, which; };
  switch (c) {
    case '<':
      return next == '=' ? two(relation::kLessEqual) : next == '>' ? two(relation::kNotEqual) : relation::kLess;
    case '>':
      return next == '=' ? two(relation::kGreaterEqual) : relation::kGreater;
    case '=':
      if (next == '<') return two(relation::kLessEqual);
      return next == '>' ? two(relation::kImplies) : next == '=' ? two(relation::kEqual) : relation::kEqual;
    case '!':
      return next == '=' && at(i_ + 2) != '=' ? two(relation::kNotEqual) : '\0';
    case '-':
      return next == '>' ? two(relation::kArrow) : '\0';
    default:
      return '\0';
  }
}

// Dollars, braces and ~; false for other symbols.
bool Lexer::scan_grouping(char c) {
  if (c == '$') return scan_dollar(), true;
  if (c != '{' && c != '}' && c != '~') return false;
  ++i_;
  if (c == '~') {
    space_ = true;
  } else if (c == '}') {
    close_brace();
  } else if (at(i_) == '}' && !pending_style_) {  // {} keeps things apart
    ++i_;
  } else {
    open_brace();
  }
  return true;
}

void Lexer::scan_symbol(char c) {
  if (scan_grouping(c)) return;
  size_t length = 1;
  Token token;
  token.kind = TokenKind::relation;
  token.symbol = relation_at(c, length);
  if (token.symbol == '\0') {
    token.kind = TokenKind::symbol;
    token.symbol = c == '"' ? '\'' : c;
    if (c == '*' && at(i_ + 1) == '*') {
      length = 2;
      token.symbol = '^';
    }
    if (c == '.' && at(i_ + 1) == '.') {
      length = std::min(buffer_.find_first_not_of('.', i_), buffer_.size()) - i_;
      token.kind = TokenKind::command;
      token.command = find_command("ldots");
    }
    if (c == '(' || c == '[') brackets_.push_back(c);
    if ((c == ')' || c == ']') && !brackets_.empty() && brackets_.back() != '{') brackets_.pop_back();
  }
  i_ += length;
  pending_style_ = false;
  push(token);
}

// \\ and \\[2pt].
void Lexer::scan_row() {
  push({.kind = TokenKind::row});
  if (at(i_) != '[' || environments_ <= 0) return;
  size_t close = buffer_.find(']', i_);
  if (close != std::string::npos && close - i_ < 12 && is_digit(at(i_ + 1))) i_ = close + 1;
}

// \{ \} \$
void Lexer::scan_escaped(char c) {
  if (c == '{') {
    brackets_.push_back('s');
  } else if (c == '}' && !brackets_.empty() && brackets_.back() == 's') {
    brackets_.pop_back();
  }
  push({.kind = TokenKind::command, .command = find_command(c == '$' ? "dollar" : c == '{' ? "{" : "}")});
}

void Lexer::scan_backslash() {
  std::string_view name = std::string_view(buffer_).substr(i_ + 1);
  name = name.substr(0, run_of(name, is_letter));
  if (!name.empty()) {
    i_ += 1 + name.size();
    return scan_command(name);
  }
  char c = at(i_ + 1);
  i_ += c == '\0' && i_ + 1 >= buffer_.size() ? 1 : 2;
  auto is_one_of = [&](std::string_view characters) { return characters.find(c) != std::string_view::npos; };
  if (c == '\0' || is_one_of(",;: !>\n/-@_")) {
    space_ = space_ || c != '!';
  } else if (is_one_of("([)]")) {
    if (styles_.empty()) style_ = c == '(' || c == '[' ? Style::math : outside_;
    space_ = true;
  } else if (c == '\\') {
    scan_row();
  } else if (is_one_of("{}$")) {
    scan_escaped(c);
  } else if (c == '|') {
    push_symbol('V');
  } else {
    i_ -= 1;  // else the backslash alone says nothing
    if (is_one_of("%&#'\"=.")) scan_symbol(c);
  }
}

// \textcircled{3}: a value of its own, neither a factor nor a digit of its neighbours.
void Lexer::scan_circled() {
  bool brace = at(i_) == '{';
  if (!brace && !is_digit(at(i_)) && at(i_) != ' ') return;
  size_t end = std::min(buffer_.find_first_not_of(' ', i_ + brace), buffer_.size());
  i_ = end;
  while (is_digit(at(end))) ++end;
  if (end == i_ || (brace && at(end) != '}')) return;
  if (ends_value()) push_separator();
  push({.kind = TokenKind::number, .text = std::string_view(buffer_).substr(i_, end - i_)});
  push_separator();
  i_ = end + brace;
}

bool Lexer::ends_value() const {
  if (tokens_.empty()) return false;
  const Token& last = tokens_.back();
  return last.kind == TokenKind::number || last.kind == TokenKind::word || last.kind == TokenKind::command ||
         (last.kind == TokenKind::symbol && (last.symbol == '}' || last.symbol == ')' || last.symbol == ']'));
}

// \pir, \quadx, \timesy: a command stuck to one or two letters. False: it is none.
bool Lexer::scan_stuck_command(std::string_view name) {
  for (size_t rest = 1; rest <= 2 && rest + 2 <= name.size(); ++rest) {
    const Command* shorter = find_command(name.substr(0, name.size() - rest));
    if (shorter == nullptr || shorter->meaning == Meaning::style || shorter->meaning == Meaning::skip) continue;
    i_ -= rest;
    scan_command(name.substr(0, name.size() - rest));
    return true;
  }
  return false;
}

void Lexer::skip_argument() {
  size_t brace = buffer_.find_first_not_of(' ', i_);
  if (brace == std::string::npos || buffer_[brace] != '{') return;
  size_t close = buffer_.find('}', brace);
  if (close != std::string::npos) i_ = close + 1;
}

// \left| and \right| say which side they are on.
bool Lexer::scan_sided_bar(std::string_view name) {
  if (name != "left" && name != "right") return false;
  if (at(i_) == '.') ++i_;
  size_t next = std::min(buffer_.find_first_not_of(' ', i_), buffer_.size());
  bool bar = at(next) == '|', norm = buffer_.compare(next, 2, "\\|") == 0;
  bool vert = buffer_.compare(next, 5, "\\vert") == 0;
  if (!bar && !norm && !vert) return false;
  std::string_view side = norm ? (name == "left" ? "lVert" : "rVert") : (name == "left" ? "lvert" : "rvert");
  i_ = next + (bar ? 1 : norm ? 2 : 5);
  scan_command(side);
  return true;
}

// Commands that leave no token of their own behind, or one that is no command; false for the others.
bool Lexer::scan_plain_command(const Command& command, std::string_view name) {
  switch (command.meaning) {
    case Meaning::skip:
      if (name.ends_with("phantom") || name == "label" || name == "tag" || name.ends_with("color")) skip_argument();
      scan_sided_bar(name);
      return true;
    case Meaning::space:
      space_ = true;
      if (name == "vspace") skip_argument();
      return true;
    case Meaning::separator:
      if (name == "hspace") skip_argument();
      push_separator();
      return true;
    case Meaning::style:
      next_style_ = static_cast<Style>(command.value);
      pending_style_ = true;
      if (at(i_) == '*') ++i_;  // \operatorname*
      return true;
    case Meaning::op:
      pending_style_ = false;
      push_symbol(static_cast<char>(command.value));
      tokens_.back().exponent = name == "times";
      return true;
    case Meaning::relation:
      push({.kind = TokenKind::relation, .symbol = static_cast<char>(command.value)});
      return true;
    default:
      return false;
  }
}

void Lexer::scan_command(std::string_view name) {
  const Command* command = find_command(name);
  bool exponent = !tokens_.empty() && tokens_.back().kind == TokenKind::symbol && tokens_.back().symbol == '^';
  if (exponent && name.size() == 1 && (command == nullptr || command->meaning == Meaning::skip)) {
    return push({.kind = TokenKind::word, .text = name});  // 2^\n, with a backslash too many
  }
  if (name == "forall") {  // the words of a clause
    for (std::string_view word : {"for", "all"}) {
      push({.kind = TokenKind::word, .style = Style::text, .text = word});
      space_ = true;
    }
    return;
  }
  if (command == nullptr) {
    if (!scan_stuck_command(name)) push({.kind = TokenKind::unknown, .text = name});
    return;
  }
  // \bigcup_{k} .. is one union over k, \bigcup alone an operator.
  bool indexed = name.starts_with("bigc") && at(std::min(buffer_.find_first_not_of(' ', i_), buffer_.size())) == '_';
  static const Command kUnion{"bigcup", Meaning::big, 0}, kIntersection{"bigcap", Meaning::big, 0};
  if (indexed) command = name == "bigcup" ? &kUnion : &kIntersection;
  if (command->meaning == Meaning::circled) return scan_circled();
  if (scan_plain_command(*command, name)) return;
  environments_ += command->meaning == Meaning::begin ? 1 : command->meaning == Meaning::end ? -1 : 0;
  if (command->meaning == Meaning::boxed && name != "underline" && std::exchange(boxed_, true) && ends_value()) {
    push_separator();  // \boxed{1}\boxed{2} is no product
  }
  Style style = std::exchange(pending_style_, false) ? next_style_ : Style::math;
  push({.kind = TokenKind::command, .style = style, .text = command->name, .command = command});
}

// Where 1,234,567 ends when its commas or spaces separate thousands: the first group has one to three digits and does
// not begin with 0, every other has three, and the same sign parts them all; `end` is where the first group ends.
// Otherwise `end`.
size_t Lexer::thousands_end(size_t end) const {
  std::string_view text = buffer_;
  char separator = at(end);
  if (end - i_ > 3 || at(i_) == '0' || (separator != ',' && separator != ' ')) return end;
  bool zeros = false;
  size_t last = end;
  while (at(last) == separator && is_digit(at(last + 1))) {
    if (!three_digits(text.substr(last + 1))) return end;
    zeros |= at(last + 1) == '0';
    last += 4;
  }
  // Between brackets a comma parts elements, except before a group that begins with 0: (1,006) is no pair.
  bool elements = !brackets_.empty() && brackets_.back() != '{';
  if (last == end || (elements && !zeros) || (separator == ' ' && (elements || is_letter(at(last))))) return end;
  // In a longer list such as 5,103,105 each number is one.
  if (!tokens_.empty() && !space_ && tokens_.back().kind == TokenKind::symbol && tokens_.back().symbol == ',')
    return end;
  return last;
}

// Digits and points from `end` up to `to`.
void Lexer::take_digits(size_t& end, size_t to) {
  for (; end < to; ++end) {
    if (is_digit(buffer_[end]) || buffer_[end] == '.') digits_.push_back(buffer_[end]);
  }
}

void Lexer::take_run(size_t& end) {
  size_t to = end;
  while (is_digit(at(to))) ++to;
  take_digits(end, to);
}

// The rest of 1{,}234\,567 and 1,234,567; false for a number without groups.
bool Lexer::take_groups(size_t& end, size_t begin) {
  bool grouped = false, zero = digits_.compare(begin, std::string::npos, "0") == 0;
  while ((end - i_ <= 3 && !zero) || grouped) {
    size_t length = definite_separator(std::string_view(buffer_).substr(end));
    if (length == 0 || !three_digits(std::string_view(buffer_).substr(end + length))) break;
    end += length;
    take_run(end);
    grouped = true;
  }
  if (grouped) return true;
  size_t last = thousands_end(end);
  if (last == end) return false;
  take_digits(end, last);
  return true;
}

// The point and the decimals. "3." ends a sentence, "3.5" does not; "3.5.1" is no number. 3{,}5 is 3.5 where it cannot
// part thousands.
bool Lexer::take_decimals(size_t& end, bool grouped) {
  std::string_view rest = std::string_view(buffer_).substr(end);
  bool comma = !grouped && rest.starts_with("{,}") && is_digit(at(end + 3));
  bool repeating =
      rest.starts_with(".\\overline{") || (rest.starts_with(".(") && is_digit(at(end + 2))) ||
      ((rest.starts_with(".\\dot") || rest.starts_with(".\\bar")) && (is_digit(at(end + 5)) || is_digit(at(end + 6))));
  if (!comma && !repeating && (at(end) != '.' || !is_digit(at(end + 1)))) return false;
  digits_.push_back('.');
  end += comma ? 3 : 1;
  if (repeating) return true;
  take_run(end);
  while (!comma) {  // 3.141\,592: groups of decimals
    size_t length = definite_separator(std::string_view(buffer_).substr(end));
    if (length == 0 || at(end) == ',' || !three_digits(std::string_view(buffer_).substr(end + length))) break;
    end += length;
    take_run(end);
  }
  return true;
}

// How many decimals repeat: 0.1\overline{6}, 0.1\dot{6}, 0.\dot{1}4\dot{2}, 0.(3).
int32_t Lexer::take_period(size_t& end) {
  std::string_view rest = std::string_view(buffer_).substr(end);
  bool dotted = rest.starts_with("\\dot"), barred = rest.starts_with("\\bar");
  auto group = [&](size_t from) {  // the end of {6} or 6 at `from`, kNone for anything else
    char close = at(from) == '{' ? '}' : at(from) == '(' ? ')' : '\0';
    size_t to = from + (close != '\0'), first = to;
    while (is_digit(at(to)) && (close != '\0' || to == first)) ++to;
    return to == first || (close != '\0' && at(to) != close) ? kNone : to + (close != '\0');
  };
  // 0.1(6) is one where it is the whole of the answer, and else a product
  bool whole = tokens_.empty() && at(i_) == '0' && rest.find(')') + 1 == rest.size();
  bool bracket = rest.starts_with("(") && (at(end - 1) == '.' || whole);
  if (!dotted && !bracket && !barred && !rest.starts_with("\\overline{")) return 0;
  size_t begin = digits_.size(), to = group(dotted || barred ? end + 4 : bracket ? end : buffer_.find('{', end));
  if (to == kNone) return 0;
  for (size_t more = to; dotted && more < buffer_.size();) {  // up to the last digit with a dot
    while (is_digit(at(more))) ++more;
    size_t last = buffer_.compare(more, 4, "\\dot") == 0 ? group(more + 4) : kNone;
    if (last == kNone) break;
    more = to = last;
  }
  for (; end < to; ++end) {
    if (is_digit(at(end))) digits_.push_back(at(end));
  }
  return static_cast<int32_t>(digits_.size() - begin);
}

// 3.2e-5, and "2e-3" too, which is hardly ever a difference.
int32_t Lexer::take_exponent(size_t& end) {
  if ((at(end) != 'e' && at(end) != 'E') || style_ == Style::bold) return 0;
  size_t to = end + 1;
  bool minus = at(to) == '-', sign = minus || at(to) == '+';
  to += sign;
  size_t first = to;
  while (is_digit(at(to))) ++to;
  bool scientific = to > first && to - first <= 6 && !is_letter(at(to)) && at(to) != '.' && at(to) != '^' &&
                    !(sign && at(to) == '\\');
  if (!scientific) return 0;
  int32_t exponent = 0;
  for (size_t k = first; k < to; ++k) exponent = exponent * 10 + (buffer_[k] - '0');
  end = to;
  return minus ? -exponent : exponent;
}

// 0x1F, 0b101, 0o17: digits of base 16, 2 and 8 behind a prefix in either case, up to the end of the word.
bool Lexer::scan_prefixed() {
  if (at(i_) != '0') return false;
  char prefix = static_cast<char>(at(i_ + 1) | 32);
  int base = prefix == 'x' ? 16 : prefix == 'b' ? 2 : prefix == 'o' ? 8 : 0;
  if (base == 0) return false;
  auto is_digit_of = [&](char c) {
    int value = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : 99;
    return value < base;
  };
  size_t end = i_ + 2;
  while (is_digit_of(at(end))) ++end;
  if (end == i_ + 2 || is_digit(at(end)) || is_letter(at(end)) || at(end) == '.') return false;
  size_t begin = digits_.size();
  for (size_t k = i_ + 2; k < end; ++k) digits_.push_back(is_upper(at(k)) ? static_cast<char>(at(k) | 32) : at(k));
  i_ = end;
  pending_style_ = false;
  push({.kind = TokenKind::based, .exponent = base, .text = std::string_view(digits_).substr(begin)});
  return true;
}

void Lexer::scan_number() {
  if (scan_prefixed()) return;
  size_t begin = digits_.size(), end = i_;
  Token token;
  token.kind = TokenKind::number;
  take_run(end);
  token.grouped = take_groups(end, begin);
  bool point = digits_.find('.', begin) != std::string::npos;
  point = point || take_decimals(end, token.grouped);
  if (point) token.repeat = take_period(end);
  if (token.repeat == 0) token.exponent = take_exponent(end);
  token.text = std::string_view(digits_).substr(begin);
  i_ = end;
  pending_style_ = false;
  push(token);
}

}  // namespace ucas::math
