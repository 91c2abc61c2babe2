#include "data/md5.h"

#include <bit>
#include <cmath>
#include <string>

namespace ucas {

namespace {

constexpr int kShift[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// floor(2^32 |sin(i + 1)|): RFC 1321 defines the table so.
std::array<uint32_t, 64> sine_table() {
  std::array<uint32_t, 64> table{};
  for (int i = 0; i < 64; ++i)
    table[static_cast<size_t>(i)] = static_cast<uint32_t>(std::fabs(std::sin(i + 1)) * 0x1p32);
  return table;
}

void add_block(std::array<uint32_t, 4>& state, const unsigned char* block) {
  static const std::array<uint32_t, 64> sines = sine_table();
  uint32_t word[16];
  for (int i = 0; i < 16; ++i) {
    const unsigned char* p = block + 4 * i;
    word[i] = uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
  }
  auto [a, b, c, d] = state;
  for (int i = 0; i < 64; ++i) {
    int round = i / 16, index = i;
    uint32_t mixed = 0;
    if (round == 0) {
      mixed = (b & c) | (~b & d);
    } else if (round == 1) {
      mixed = (d & b) | (~d & c);
      index = (5 * i + 1) % 16;
    } else if (round == 2) {
      mixed = b ^ c ^ d;
      index = (3 * i + 5) % 16;
    } else {
      mixed = c ^ (b | ~d);
      index = (7 * i) % 16;
    }
    uint32_t sum = a + mixed + sines[static_cast<size_t>(i)] + word[index];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShift[round][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::array<uint8_t, 16> md5(std::string_view bytes) {
  std::string padded(bytes);
  padded.push_back('\x80');
  padded.append((120 - padded.size() % 64) % 64, '\0');
  uint64_t bits = 8 * static_cast<uint64_t>(bytes.size());
  for (int i = 0; i < 8; ++i) padded.push_back(static_cast<char>(bits >> (8 * i)));

  std::array<uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < padded.size(); at += 64) {
    add_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  }
  std::array<uint8_t, 16> digest{};
  for (size_t i = 0; i < 16; ++i) digest[i] = static_cast<uint8_t>(state[i / 4] >> (8 * (i % 4)));
  return digest;
}

}  // namespace ucas
