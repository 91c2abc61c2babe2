#include "text/unicode/unicode.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"

namespace ucas {

namespace {

constexpr uint32_t kHangulS = 0xAC00, kHangulL = 0x1100, kHangulV = 0x1161, kHangulT = 0x11A7;
constexpr uint32_t kHangulLCount = 19, kHangulVCount = 21, kHangulTCount = 28;
constexpr uint32_t kHangulSCount = kHangulLCount * kHangulVCount * kHangulTCount;

unsigned char byte_at(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

// text/unicode/tables.txt, made by tools/make_unicode_tables.py, which says what its sections are.
struct UnicodeTables {
  std::map<std::string, std::vector<CodeRange>, std::less<>> ranges;  // by section
  std::vector<std::pair<CodeRange, uint8_t>> combining;               // sorted; the class is never 0
  struct Decomposition {
    uint32_t code, first, second;  // canonical; 0: of one character
  };
  std::vector<Decomposition> decompositions, compositions;  // sorted by code; by (first, second)
};

uint32_t read_code(const char*& at, const char* end) {
  uint32_t code = 0;
  const auto read = std::from_chars(at, end, code, 16);
  UCAS_CHECK(read.ec == std::errc(), "text/unicode/tables.txt: expected a code");
  at = read.ptr;
  return code;
}

void sort_tables(UnicodeTables& tables) {
  for (const auto& [section, ranges] : tables.ranges) {
    if (section[0] > '9') continue;
    for (const CodeRange& range : ranges) tables.combining.emplace_back(range, std::stoi(section));
  }
  std::ranges::sort(tables.combining, {}, [](const auto& row) { return row.first.first; });
  std::ranges::sort(tables.compositions, {}, [](const auto& row) { return std::pair(row.first, row.second); });
}

UnicodeTables read_tables(std::string_view text) {
  UnicodeTables tables;
  std::vector<CodeRange>* section = nullptr;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    if (*at == '@') {
      const char* line = std::find(at, end, '\n');
      section = &tables.ranges[std::string(at + 1, line)];
      at = line;
    } else {
      UCAS_CHECK(section != nullptr, "text/unicode/tables.txt: expected a section");
      const uint32_t code = read_code(at, end);
      if (const char mark = *at; mark == '=' || mark == ':') {
        const uint32_t first = read_code(++at, end), second = *at == '+' ? read_code(++at, end) : 0;
        tables.decompositions.push_back({code, first, second});
        if (mark == '=') tables.compositions.push_back({code, first, second});
      } else {
        section->push_back({code, mark == '-' ? read_code(++at, end) : code});
      }
    }
    ++at;  // a space or the end of a line
  }
  sort_tables(tables);
  return tables;
}

const UnicodeTables& tables() {
  static const UnicodeTables read = read_tables(embedded("text/unicode/tables.txt").value());
  return read;
}

uint8_t combining_class(uint32_t code) {
  const auto& table = tables().combining;
  auto row = std::ranges::upper_bound(table, code, {}, [](const auto& r) { return r.first.first; });
  return row != table.begin() && code <= (row - 1)->first.last ? (row - 1)->second : uint8_t{0};
}

void decompose(uint32_t code, std::vector<uint32_t>& out) {
  if (code - kHangulS < kHangulSCount) {
    uint32_t index = code - kHangulS;
    out.push_back(kHangulL + index / (kHangulVCount * kHangulTCount));
    out.push_back(kHangulV + index / kHangulTCount % kHangulVCount);
    if (index % kHangulTCount != 0) out.push_back(kHangulT + index % kHangulTCount);
    return;
  }
  const auto& table = tables().decompositions;
  const auto row = std::ranges::lower_bound(table, code, {}, &UnicodeTables::Decomposition::code);
  if (row == table.end() || row->code != code) {
    out.push_back(code);
    return;
  }
  decompose(row->first, out);
  if (row->second != 0) decompose(row->second, out);
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
  const auto& table = tables().compositions;
  const auto row = std::ranges::lower_bound(table, std::pair(first, second), {},
                                            [](const auto& c) { return std::pair(c.first, c.second); });
  return row != table.end() && row->first == first && row->second == second ? row->code : 0;
}

// A stretch that starts at a character which never combines with its predecessor; UAX #15, D117.
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
    // Blocked by a character of the same or a higher class in between; nothing between is never blocked.
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

std::vector<CodeRange> category_ranges(std::string_view category) {
  std::vector<CodeRange> all, joined;
  for (const auto& [section, ranges] : tables().ranges) {
    const bool is_category = section.size() == 2 && section[0] >= 'A' && section[0] <= 'Z';
    if (is_category && section.starts_with(category)) all.insert(all.end(), ranges.begin(), ranges.end());
  }
  std::ranges::sort(all, {}, &CodeRange::first);
  for (const CodeRange& range : all) {
    if (!joined.empty() && joined.back().last + 1 == range.first) {
      joined.back().last = range.last;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

const uint8_t* char_classes() {
  static const std::unique_ptr<uint8_t[]> table = [] {
    auto classes = std::make_unique<uint8_t[]>(0x110000);
    const auto mark = [&](const std::vector<CodeRange>& ranges, uint8_t flag) {
      for (const CodeRange& range : ranges) {
        for (uint32_t code = range.first; code <= range.last; ++code) classes[code] |= flag;
      }
    };
    mark(category_ranges("L"), kLetter | kWord);
    mark(category_ranges("N"), kNumber);
    for (const char* category : {"M", "Nd", "Nl", "Pc"}) mark(category_ranges(category), kWord);
    const auto& more = tables().ranges;
    mark(more.at("word"), kWord);
    mark(more.at("space"), kSpace);
    mark(more.at("composing"), kComposing);
    mark(more.at("punctuation"), kPunctuation);
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

namespace {

struct Alphabet {
  std::array<uint32_t, 256> code{};   // byte -> character
  std::array<int16_t, 0x144> byte{};  // character -> byte, or -1
};

// Printable Latin-1 characters map to themselves, the other bytes for U+0100, U+0101 ... in order.
const Alphabet& alphabet() {
  static const Alphabet made = [] {
    Alphabet a;
    a.byte.fill(-1);
    uint32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      a.code[b] = printable ? static_cast<uint32_t>(b) : next++;
      a.byte[a.code[b]] = static_cast<int16_t>(b);
    }
    return a;
  }();
  return made;
}

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  const Alphabet& a = alphabet();
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t at = 0; at < spelling.size();) {
    Char c = char_at(spelling, at);
    if (c.code >= a.byte.size() || a.byte[c.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(a.byte[c.code]));
    at += c.length;
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelling;
  for (char byte : bytes) append_utf8(spelling, alphabet().code[static_cast<unsigned char>(byte)]);
  return spelling;
}

std::string byte_token(uint8_t byte) {
  const char* digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

std::optional<uint8_t> byte_of_token(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(&spelling[3], &spelling[5], value, 16);
  if (error != std::errc() || end != &spelling[5]) return std::nullopt;
  return static_cast<uint8_t>(value);
}

}  // namespace ucas
