#include "text/jinja/syntax.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/str.h"
#include "text/jinja/value.h"
#include "text/unicode/unicode.h"

namespace ucas::jinja {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "\r\n" and "\r" are line ends, too; the last line end of a template is not part of it.
std::string with_line_feeds(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : where_(where), source_(with_line_feeds(source)) {}

  std::vector<Word> all() {
    while (at_ < source_.size()) text_and_tag();
    put(Word::Kind::end, "");
    return std::move(words_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::config, str(where_, ":", line_, ": ", what));
  }
  void put(Word::Kind kind, std::string text) { words_.push_back({kind, std::move(text), line_}); }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  void pass(size_t count) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<int64_t>(at_),
                                         source_.begin() + static_cast<int64_t>(at_ + count), '\n'));
    at_ += count;
  }
  void pass_space() {
    while (at_ < source_.size()) {
      const Char c = char_at(source_, at_);
      if (!python_space(c.code)) return;
      pass(c.length);
    }
  }

  // The text up to the next tag, what may be cut from its end, and that tag.
  void text_and_tag() {
    size_t open = at_;
    while (open < source_.size() &&
           !(source_[open] == '{' && open + 1 < source_.size() &&
             (source_[open + 1] == '{' || source_[open + 1] == '%' || source_[open + 1] == '#'))) {
      ++open;
    }
    const size_t begin = at_;
    size_t end = open;
    const bool tag = open < source_.size();
    const char sign = tag && open + 2 < source_.size() ? source_[open + 2] : ' ';
    if (tag && sign == '-') {
      while (end > begin) {
        const Char c = char_before(source_, end);
        if (!python_space(c.code) || end - c.length < begin) break;
        end -= c.length;
      }
    } else if (tag && sign != '+' && source_[open + 1] != '{') {
      end = without_indent(begin, end);
    }
    if (end > begin) put(Word::Kind::text, source_.substr(begin, end - begin));
    pass(open - begin);
    if (!tag) return;
    line_start_ = false;
    const char kind = source_[at_ + 1];
    pass(sign == '-' || sign == '+' ? 3 : 2);
    if (kind == '#') return comment();
    const bool output = kind == '{';
    put(output ? Word::Kind::open_output : Word::Kind::open_tag, "");
    while (!closed(output)) word();
    put(output ? Word::Kind::close_output : Word::Kind::close_tag, "");
  }

  // lstrip_blocks: blanks between the line's begin and the tag go.
  size_t without_indent(size_t begin, size_t end) const {
    size_t line = end;
    while (line > begin && source_[line - 1] != '\n') --line;
    if (line == begin && !line_start_) return end;
    for (size_t i = line; i < end;) {
      const Char c = char_at(source_, i);
      if (!python_space(c.code)) return end;
      i += c.length;
    }
    return line;
  }

  // What follows the end of a tag: "-" takes all space, a tag of a statement or a comment its line end.
  void after(char sign, bool trims_line) {
    const size_t before = at_;
    if (sign == '-') {
      pass_space();
    } else if (trims_line && sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
      pass(1);
    }
    line_start_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) refuse("a comment {# that is never closed");
    const char sign = end > at_ ? source_[end - 1] : ' ';
    pass(end + 2 - at_);
    after(sign, true);
  }

  bool closed(bool output) {
    pass_space();
    if (at_ >= source_.size()) refuse(output ? "{{ is never closed" : "{% is never closed");
    if (!brackets_.empty()) return false;
    const std::string_view end = output ? "}}" : "%}";
    const bool signed_end = (rest()[0] == '-' || (rest()[0] == '+' && !output)) && rest().substr(1).starts_with(end);
    if (!signed_end && !rest().starts_with(end)) return false;
    const char sign = signed_end ? rest()[0] : ' ';
    pass(signed_end ? 3 : 2);
    after(sign, !output);
    return true;
  }

  void word() {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (starts_name(c)) {
      size_t end = at_;
      while (end < source_.size() && (starts_name(source_[end]) || is_digit(source_[end]))) ++end;
      put(Word::Kind::name, source_.substr(at_, end - at_));
      return pass(end - at_);
    }
    if (c == '"' || c == '\'') return quoted(c);
    sign();
  }

  void number() {
    size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) ||
                                      (source_[end] == '_' && end + 1 < source_.size() && is_digit(source_[end + 1]))))
        ++end;
    };
    digits();
    bool real = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      real = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t power = end + 1;
      if (power < source_.size() && (source_[power] == '+' || source_[power] == '-')) ++power;
      if (power < source_.size() && is_digit(source_[power])) {
        real = true;
        end = power;
        digits();
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    if (!real && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != std::string::npos) {
      refuse(str("the number ", printable(text, 40), " begins with 0"));
    }
    put(real ? Word::Kind::real : Word::Kind::whole, text);
    pass(end - at_);
  }

  void quoted(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse("a quoted text that is never closed");
    put(Word::Kind::quoted, unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    pass(end + 1 - at_);
  }

  uint32_t digits_of(std::string_view text, size_t at, size_t count, uint32_t base) const {
    uint32_t code = 0;
    if (at + count > text.size()) refuse("an escape in a quoted text that lacks digits");
    for (size_t i = at; i < at + count; ++i) {
      const char c = text[i];
      const uint32_t digit = is_digit(c) ? static_cast<uint32_t>(c - '0')
                             : std::isxdigit(static_cast<unsigned char>(c)) != 0
                                 ? static_cast<uint32_t>((c | 32) - 'a') + 10
                                 : 99;
      if (digit >= base) refuse("an escape in a quoted text that lacks digits");
      code = code * base + digit;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) refuse("an escape in a quoted text that is no character");
    return code;
  }

  // As in Python.
  std::string unescaped(std::string_view text) const {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      if (const size_t letter = kLetters.find(c); letter != std::string_view::npos) {
        out += kMeant[letter];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_utf8(out, digits_of(text, i + 1, count, 16));
        i += count;
      } else if (c >= '0' && c <= '7') {
        size_t count = 1;
        while (count < 3 && i + count < text.size() && text[i + count] >= '0' && text[i + count] <= '7') ++count;
        append_utf8(out, digits_of(text, i, count, 8));
        i += count - 1;
      } else if (c == 'N') {
        refuse("\\N{...} in a quoted text is outside the part of Jinja that is read here");
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  void sign() {
    constexpr std::array<std::string_view, 27> kSigns = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", "!"};
    const auto found = std::ranges::find_if(kSigns, [&](std::string_view s) { return rest().starts_with(s); });
    if (found == kSigns.end() || *found == "!") {
      refuse(str("the character \"", printable(rest().substr(0, char_at(source_, at_).length)), "\" within a tag"));
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty() || brackets_.back() != c) refuse(str("a \"", c, "\" that closes nothing"));
      brackets_.pop_back();
    }
    put(Word::Kind::sign, std::string(*found));
    pass(found->size());
  }

  const std::string& where_;
  const std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;  // nothing is before `at_` in its line
  std::string brackets_;    // that close the open ones
  std::vector<Word> words_;
};

}  // namespace

std::vector<Word> words_of(std::string_view source, const std::string& where) { return Lexer(source, where).all(); }

}  // namespace ucas::jinja
