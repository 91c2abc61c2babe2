// A set of byte strings and the longest of them that starts at a place in a text: added tokens and word-level words.
// Threads: const functions may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ucas {

class PrefixTree {
 public:
  struct Match {
    size_t length = 0;  // 0: nothing matches
    int32_t value = -1;
  };

  void add(std::string_view word, int32_t value);  // not empty; a word added again takes the new value
  Match longest(std::string_view text, size_t at) const;
  bool empty() const { return ends_.size() == 1; }
  // First place at or after `at` where a word may start; text.size() if there is none.
  size_t next_candidate(std::string_view text, size_t at) const;

 private:
  static uint64_t edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<unsigned char>(byte); }

  std::unordered_map<uint64_t, uint32_t> edges_;  // (node, byte) -> node
  std::vector<int32_t> ends_{-1};                 // value of the word that ends at this node, or -1
  std::array<bool, 256> starts_{};
};

}  // namespace ucas
