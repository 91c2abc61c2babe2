// Inputs out of inputs: a few changes of bytes, numbers, words and pieces at a time. The same seed gives the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ucas::fuzz {

class Mutator {
 public:
  // `seeds`: where words come from, beside those that every format knows.
  Mutator(uint64_t seed, const std::vector<std::string>& seeds, size_t most_bytes);
  std::string change(const std::string& input, const std::string& other);
  size_t below(size_t n);  // 0 .. n - 1

 private:
  void once(std::string& text, const std::string& other);
  void change_byte(std::string& text);
  void change_piece(std::string& text, const std::string& other);
  void change_number(std::string& text);
  void change_word(std::string& text);
  const std::string& word();

  uint64_t state_;
  const size_t most_;
  std::vector<std::string> words_;
};

}  // namespace ucas::fuzz
