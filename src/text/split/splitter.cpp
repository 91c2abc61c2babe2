#include "text/split/splitter.h"

#include <algorithm>

#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

struct Stretch {
  size_t begin, end;
  bool match;
};

// Stretches that match and those between them, in order, as find_matches of Hugging Face's Pattern gives them.
class Stretches {
 public:
  explicit Stretches(std::string_view text) : text_(text) {}

  void match(size_t begin, size_t end) {
    if (begin > done_) list_.push_back({done_, begin, false});
    list_.push_back({begin, end, true});
    done_ = end;
  }
  std::vector<Stretch> finish() {
    if (done_ < text_.size()) list_.push_back({done_, text_.size(), false});
    return std::move(list_);
  }

  void find(const SplitPattern* pattern) {
    for (size_t at = 0; at < text_.size();) {
      size_t end = pattern->piece_end(text_, at);
      match(at, end);
      at = end;
    }
  }
  void find(const Regex& regex) {
    std::string masked;
    std::string_view seen = text_;
    if (!valid_utf8(text_)) seen = masked = mask_broken();
    for (const Regex::Match& found : regex.find_all(seen)) match(found.begin, found.end);
  }
  void find(const std::string& literal) {
    for (size_t at = text_.find(literal); at != std::string_view::npos; at = text_.find(literal, at + literal.size())) {
      match(at, at + literal.size());
    }
  }
  void find(SplitStep::CharTest test) {
    for (size_t at = 0; at < text_.size();) {
      Char c = char_at(text_, at);
      if (test(c.code)) match(at, at + c.length);
      at += c.length;
    }
  }

 private:
  // Bytes that belong to no character become a control character, which is of no class either.
  std::string mask_broken() const {
    std::string masked(text_);
    for (size_t at = 0; at < text_.size();) {
      Char c = char_at(text_, at);
      if (c.code == kInvalid) masked[at] = '\x1A';
      at += c.length;
    }
    return masked;
  }

  std::string_view text_;
  size_t done_ = 0;
  std::vector<Stretch> list_;
};

// Stretches of the same kind in a row become one.
void join_alike(std::vector<Stretch>& list) {
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (kept > 0 && list[kept - 1].match == list[i].match) {
      list[kept - 1].end = list[i].end;
    } else {
      list[kept++] = list[i];
    }
  }
  list.resize(kept);
}

// A match joins the stretch before it, unless that is a match, too.
void join_to_previous(std::vector<Stretch>& list) {
  size_t kept = 0;
  bool after_match = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const Stretch stretch = list[i];
    if (stretch.match && !after_match && kept > 0) {
      list[kept - 1].end = stretch.end;
    } else {
      list[kept++] = stretch;
    }
    after_match = stretch.match;
  }
  list.resize(kept);
}

void join_to_next(std::vector<Stretch>& list) {
  std::vector<Stretch> joined;
  bool before_match = false;
  for (size_t i = list.size(); i-- > 0;) {
    if (list[i].match && !before_match && !joined.empty()) {
      joined.back().begin = list[i].begin;
    } else {
      joined.push_back(list[i]);
    }
    before_match = list[i].match;
  }
  std::reverse(joined.begin(), joined.end());
  list = std::move(joined);
}

struct Piece {
  std::string_view text;
  bool first;  // begins the sequence
};

std::vector<Stretch> stretches_of(const SplitStep& step, std::string_view text) {
  Stretches found(text);
  std::visit([&](const auto& pattern) { found.find(pattern); }, step.pattern);
  std::vector<Stretch> list = found.finish();
  if (step.invert) {
    for (Stretch& stretch : list) stretch.match = !stretch.match;
  }
  switch (step.behavior) {
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::removed:
      std::erase_if(list, [](const Stretch& s) { return s.match; });
      break;
    case SplitBehavior::contiguous:
      join_alike(list);
      break;
    case SplitBehavior::merged_with_previous:
      join_to_previous(list);
      break;
    case SplitBehavior::merged_with_next:
      join_to_next(list);
      break;
  }
  return list;
}

void run(const SplitStep& step, const Piece& piece, std::deque<std::string>&, std::vector<Piece>& out) {
  for (const Stretch& stretch : stretches_of(step, piece.text)) {
    if (stretch.begin == stretch.end) continue;
    out.push_back({piece.text.substr(stretch.begin, stretch.end - stretch.begin), piece.first && stretch.begin == 0});
  }
}

void run(const PrefixSpaceStep&, const Piece& piece, std::deque<std::string>& made, std::vector<Piece>& out) {
  if (piece.text.starts_with(' ')) return out.push_back(piece);
  out.push_back({made.emplace_back(str(' ', piece.text)), piece.first});
}

void run(const MetaspaceStep& step, const Piece& piece, std::deque<std::string>& made, std::vector<Piece>& out) {
  std::string text;
  const bool wanted = step.scheme == PrependScheme::always || (step.scheme == PrependScheme::first && piece.first);
  if (wanted && !piece.text.starts_with(' ') && !piece.text.starts_with(step.replacement)) text = step.replacement;
  for (char byte : piece.text) byte == ' ' ? text += step.replacement : text += byte;
  const Piece whole{made.emplace_back(std::move(text)), piece.first};
  if (!step.split) return out.push_back(whole);
  run(SplitStep{step.replacement, SplitBehavior::merged_with_next}, whole, made, out);
}

bool is_newline(char c) { return c == '\r' || c == '\n'; }

uint8_t class_at(std::string_view text, size_t at) {
  unsigned char byte = static_cast<unsigned char>(text[at]);
  return byte < 0x80 ? char_classes()[byte] : char_class(char_at(text, at).code);
}

size_t length_at(std::string_view text, size_t at) {
  return static_cast<unsigned char>(text[at]) < 0x80 ? 1 : char_at(text, at).length;
}

// Past the characters from `at` whose class has a bit of `wanted`, or (wanted 0) none of letter, number and space.
size_t run_end(std::string_view text, size_t at, uint8_t wanted) {
  const uint8_t* classes = char_classes();
  while (at < text.size()) {
    unsigned char byte = static_cast<unsigned char>(text[at]);
    Char c = byte < 0x80 ? Char{byte, 1} : char_at(text, at);
    uint8_t kind = c.code < 0x110000 ? classes[c.code] : uint8_t{0};
    if (wanted != 0 ? (kind & wanted) == 0 : (kind & (kLetter | kNumber | kSpace)) != 0) break;
    at += c.length;
  }
  return at;
}

bool is_other(uint8_t kind) { return (kind & (kLetter | kNumber | kSpace)) == 0; }

// 's 't 're 've 'm 'll 'd after an apostrophe at `at`; returns the end, or `at` when there is none.
size_t contraction_end(std::string_view text, size_t at, bool fold_case) {
  auto letter = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    char c = text[i];
    return fold_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  char a = letter(at + 1), b = letter(at + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
  // U+017F (long s) is the one other character that folds to a letter of the list.
  if (fold_case && text.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  return at;
}

// \s+(?!\S)|\s+ on the run [at, end): the last character is left for what follows, unless nothing follows.
size_t space_end(std::string_view text, size_t at, size_t end) {
  if (end == text.size()) return end;
  size_t last = end - char_before(text, end).length;
  return last > at ? last : end;
}

// '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_end(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    size_t end = contraction_end(text, at, false);
    if (end > at) return end;
  }
  size_t first = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  uint8_t kind = class_at(text, first);
  if ((kind & kSpace) != 0) return space_end(text, at, run_end(text, at, kSpace));
  return run_end(text, first, kind & (kLetter | kNumber));
}

// At most `most` characters of \p{N} from `at` on.
size_t digits_end(std::string_view text, size_t at, int most) {
  for (; most > 0 && at < text.size() && (class_at(text, at) & kNumber) != 0; --most) at += length_at(text, at);
  return at;
}

// Qwen2 and Llama 3, alternative by alternative; they part at how many digits are one piece.
template <int kDigits>
size_t qwen2_end(std::string_view text, size_t at) {
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)
  if (text[at] == '\'') {
    size_t end = contraction_end(text, at, true);
    if (end > at) return end;
  }
  uint8_t kind = class_at(text, at);
  size_t next = at + length_at(text, at);
  uint8_t next_kind = next < text.size() ? class_at(text, next) : uint8_t{0};
  // [^\r\n\p{L}\p{N}]?\p{L}+
  if ((kind & kLetter) != 0) return run_end(text, next, kLetter);
  if ((kind & kNumber) == 0 && !is_newline(text[at]) && (next_kind & kLetter) != 0) return run_end(text, next, kLetter);
  // \p{N}{1,kDigits}
  if ((kind & kNumber) != 0) return digits_end(text, next, kDigits - 1);
  // [ ]?[^\s\p{L}\p{N}]+[\r\n]*
  bool space_then_other = text[at] == ' ' && next < text.size() && is_other(next_kind);
  if (is_other(kind) || space_then_other) {
    size_t end = run_end(text, next, 0);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  // \s*[\r\n]+ : up to the last newline of the run of white space
  size_t end = run_end(text, at, kSpace);
  for (size_t i = end; i > at; --i) {
    if (is_newline(text[i - 1])) return i;
  }
  // \s+(?!\S)|\s+
  return space_end(text, at, end);
}

constexpr SplitPattern kPatterns[] = {
    {"GPT-2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", gpt2_end},
    {"Qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen2_end<1>},
    {"Llama 3",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     qwen2_end<3>},
};

}  // namespace

bool is_numeric(uint32_t code) {
  // Rust's char::is_numeric knows Unicode 17 already.
  return (char_class(code) & kNumber) != 0 || (code >= 0x11DE0 && code <= 0x11DE9) ||
         (code >= 0x16FF4 && code <= 0x16FF6);
}

bool is_punctuation(uint32_t code) { return (char_class(code) & kPunctuation) != 0; }

const SplitPattern* Splitter::only_pattern() const {
  const auto* step = steps_.size() == 1 ? std::get_if<SplitStep>(&steps_[0]) : nullptr;
  const auto* pattern = step != nullptr ? std::get_if<const SplitPattern*>(&step->pattern) : nullptr;

  const bool plain = pattern != nullptr && step->behavior == SplitBehavior::isolated;
  return plain ? *pattern : nullptr;
}

Splitter::Pieces Splitter::cut(std::string_view text, bool first) const {
  Pieces out;
  std::vector<Piece> pieces, next;
  if (!text.empty()) pieces.push_back({text, first});
  for (const SplitterStep& step : steps_) {
    next.clear();
    std::visit(
        [&](const auto& s) {
          for (const Piece& piece : pieces) run(s, piece, out.made, next);
        },
        step);
    pieces.swap(next);
  }
  out.text.reserve(pieces.size());
  for (const Piece& piece : pieces) out.text.push_back(piece.text);
  return out;
}

const SplitPattern& gpt2_pattern() { return kPatterns[0]; }

const SplitPattern* known_pattern(std::string_view expression) {
  for (const SplitPattern& pattern : kPatterns) {
    if (expression == pattern.expression) return &pattern;
  }
  return nullptr;
}

}  // namespace ucas
