#include "text/unicode/unicode.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "text/unicode/unicode_tables.h"

namespace ucas {

namespace {

constexpr uint32_t kHangulS = 0xAC00, kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7;
constexpr uint32_t kHangulLCount = 19, kHangulVCount = 21, kHangulTCount = 28;
constexpr uint32_t kHangulSCount = kHangulLCount * kHangulVCount * kHangulTCount;

unsigned char byte_at(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

// Table 3-7 of the Unicode standard: how long the sequence is that this lead byte opens, and the range of byte two.
struct Lead {
  size_t length;
  unsigned char low, high;
};

Lead lead(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, byte == 0xE0 ? uint8_t{0xA0} : uint8_t{0x80}, byte == 0xED ? uint8_t{0x9F} : uint8_t{0xBF}};
  if (byte < 0xF5)
    return {4, byte == 0xF0 ? uint8_t{0x90} : uint8_t{0x80}, byte == 0xF4 ? uint8_t{0x8F} : uint8_t{0xBF}};
  return {0, 0, 0};
}

// Bytes from `at` that fit a well-formed character: all of it, or its beginning (then length < wanted).
size_t well_formed_prefix(std::string_view text, size_t at, const Lead& l) {
  size_t n = 1;
  while (n < l.length && at + n < text.size()) {
    unsigned char byte = byte_at(text, at + n);
    if (byte < (n == 1 ? l.low : 0x80) || byte > (n == 1 ? l.high : 0xBF)) break;
    ++n;
  }
  return n;
}

uint8_t combining_class(uint32_t code) {
  std::span<const unicode::CombiningRange> table(unicode::kCombining, unicode::kCombiningCount);
  auto row = std::upper_bound(table.begin(), table.end(), code,
                              [](uint32_t c, const unicode::CombiningRange& r) { return c < r.first; });
  return row != table.begin() && code <= (row - 1)->last ? (row - 1)->combining : uint8_t{0};
}

void decompose(uint32_t code, std::vector<uint32_t>& out) {
  if (code - kHangulS < kHangulSCount) {
    uint32_t index = code - kHangulS;
    out.push_back(kHangulL + index / (kHangulVCount * kHangulTCount));
    out.push_back(kHangulV + index / kHangulTCount % kHangulVCount);
    if (index % kHangulTCount != 0) out.push_back(kHangulT + index % kHangulTCount);
    return;
  }
  std::span<const unicode::Decomposition> table(unicode::kDecompositions, unicode::kDecompositionsCount);
  auto row = std::lower_bound(table.begin(), table.end(), code,
                              [](const unicode::Decomposition& d, uint32_t c) { return d.code < c; });
  if (row == table.end() || row->code != code) {
    out.push_back(code);
    return;
  }
  const uint32_t* parts = unicode::kDecompositionPool + row->offset;
  out.insert(out.end(), parts, parts + row->length);
}

// The primary composite of a pair, or 0.
uint32_t compose(uint32_t first, uint32_t second) {
  if (first - kHangulL < kHangulLCount && second - kHangulV < kHangulVCount) {
    return kHangulS + ((first - kHangulL) * kHangulVCount + (second - kHangulV)) * kHangulTCount;
  }
  if (first - kHangulS < kHangulSCount && (first - kHangulS) % kHangulTCount == 0 && second > kHangulT &&
      second < kHangulT + kHangulTCount) {
    return first + (second - kHangulT);
  }
  std::span<const unicode::Composition> table(unicode::kCompositions, unicode::kCompositionsCount);
  auto row = std::lower_bound(table.begin(), table.end(), std::pair(first, second),
                              [](const unicode::Composition& c, const std::pair<uint32_t, uint32_t>& key) {
                                return std::pair(c.first, c.second) < key;
                              });
  return row != table.end() && row->first == first && row->second == second ? row->composed : 0;
}

// A stretch that starts at a character which never combines with what stands before it; UAX #15, D117.
void normalize_stretch(std::vector<uint32_t>& codes, std::string& out) {
  struct Mark {
    uint32_t code;
    uint8_t combining;
  };
  std::vector<uint32_t> full;
  for (uint32_t code : codes) decompose(code, full);
  std::vector<Mark> marks;
  for (uint32_t code : full) marks.push_back({code, combining_class(code)});
  for (size_t i = 0; i < marks.size();) {  // canonical ordering of each run of non-starters
    size_t end = i;
    while (end < marks.size() && marks[end].combining != 0) ++end;
    std::stable_sort(marks.begin() + i, marks.begin() + end,
                     [](const Mark& a, const Mark& b) { return a.combining < b.combining; });
    i = end + 1;
  }
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t starter = kNone, kept = 0;
  for (Mark mark : marks) {
    // Blocked when something of the same or a higher class stands between; nothing between is never blocked.
    bool blocked = starter == kNone || (kept > starter + 1 && marks[kept - 1].combining >= mark.combining);
    uint32_t composed = blocked ? 0 : compose(marks[starter].code, mark.code);
    if (composed != 0) {
      marks[starter].code = composed;
      continue;
    }
    marks[kept] = mark;
    if (mark.combining == 0) starter = kept;
    ++kept;
  }
  for (size_t i = 0; i < kept; ++i) append_utf8(out, marks[i].code);
}

}  // namespace

Char char_at(std::string_view text, size_t at) {
  unsigned char first = byte_at(text, at);
  if (first < 0x80) return {first, 1};
  Lead l = lead(first);
  if (l.length == 0 || well_formed_prefix(text, at, l) < l.length) return {kInvalid, 1};
  uint32_t code = first & (0x7F >> l.length);
  for (size_t i = 1; i < l.length; ++i) code = code << 6 | (byte_at(text, at + i) & 0x3F);
  return {code, l.length};
}

Char char_before(std::string_view text, size_t end) {
  for (size_t length = 1; length <= 4 && length <= end; ++length) {
    if ((byte_at(text, end - length) & 0xC0) == 0x80) continue;
    Char found = char_at(text.substr(0, end), end - length);
    return found.length == length ? found : Char{kInvalid, 1};
  }
  return {kInvalid, 1};
}

void append_utf8(std::string& out, uint32_t code) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

size_t unfinished_tail(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    size_t at = text.size() - length;
    if ((byte_at(text, at) & 0xC0) == 0x80) continue;
    Lead l = lead(byte_at(text, at));
    return l.length > length && well_formed_prefix(text, at, l) == length ? length : 0;
  }
  return 0;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Lead l = lead(byte_at(text, at));
    size_t fits = l.length == 0 ? 1 : well_formed_prefix(text, at, l);
    if (l.length != 0 && fits == l.length) {
      out.append(text, at, fits);
    } else {
      out += "\xEF\xBF\xBD";
    }
    at += fits;
  }
  return out;
}

const uint8_t* char_classes() {
  static const std::unique_ptr<uint8_t[]> table = [] {
    auto classes = std::make_unique<uint8_t[]>(0x110000);
    auto mark = [&](const unicode::CodeRange* ranges, size_t count, uint8_t flag) {
      for (const unicode::CodeRange& range : std::span(ranges, count)) {
        for (uint32_t code = range.first; code <= range.last; ++code) classes[code] |= flag;
      }
    };
    mark(unicode::kLetterRanges, unicode::kLetterRangesCount, kLetter);
    mark(unicode::kNumberRanges, unicode::kNumberRangesCount, kNumber);
    mark(unicode::kSpaceRanges, unicode::kSpaceRangesCount, kSpace);
    mark(unicode::kWordRanges, unicode::kWordRangesCount, kWord);
    mark(unicode::kComposingRanges, unicode::kComposingRangesCount, kComposing);
    mark(unicode::kPunctuationRanges, unicode::kPunctuationRangesCount, kPunctuation);
    return classes;
  }();
  return table.get();
}

bool may_change_under_nfc(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (byte_at(text, at) < 0xCC) {  // below U+0300 everything is in NFC
      ++at;
      continue;
    }
    Char c = char_at(text, at);
    if ((char_class(c.code) & kComposing) != 0) return true;
    at += c.length;
  }
  return false;
}

std::string nfc(std::string_view text) {
  if (!may_change_under_nfc(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  std::vector<uint32_t> stretch;
  bool composing = false;  // does the stretch hold anything that may change?
  auto flush = [&] {
    if (composing) {
      normalize_stretch(stretch, out);
    } else {
      for (uint32_t code : stretch) append_utf8(out, code);
    }
    stretch.clear();
    composing = false;
  };
  for (size_t at = 0; at < text.size();) {
    Char c = char_at(text, at);
    bool joins = (char_class(c.code) & kComposing) != 0;
    if (!joins) flush();
    if (c.code == kInvalid) {
      out.push_back(text[at]);
    } else {
      stretch.push_back(c.code);
    }
    composing |= joins;
    at += c.length;
  }
  flush();
  return out;
}

}  // namespace ucas
