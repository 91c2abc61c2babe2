#include "text/unicode/byte_level.h"

#include <array>
#include <charconv>

#include "text/unicode/unicode.h"

namespace ucas {

namespace {

struct Alphabet {
  std::array<uint32_t, 256> code{};   // byte -> character
  std::array<int16_t, 0x144> byte{};  // character -> byte, or -1
};

// Printable Latin-1 characters stand for themselves, the other bytes for U+0100, U+0101 ... in order.
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
