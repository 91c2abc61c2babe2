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

}  // namespace

bool is_numeric(uint32_t code) {
  // Rust's char::is_numeric knows Unicode 17 already.
  return (char_class(code) & kNumber) != 0 || (code >= 0x11DE0 && code <= 0x11DE9) ||
         (code >= 0x16FF4 && code <= 0x16FF6);
}

bool is_punctuation(uint32_t code) { return (char_class(code) & kPunctuation) != 0; }

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

}  // namespace ucas
