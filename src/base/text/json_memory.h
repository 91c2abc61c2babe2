// What values of JSON take beside the bytes of their text, about: millions of empty lists are some fifty times their
// file. More than `most` bytes and half of the text is Error(ErrorKind::limit). For what builds values as they come.
#pragma once

#include <cstddef>
#include <string>

namespace ucas {

class JsonMemory {
 public:
  static constexpr size_t kItem = 40, kKey = 96, kOpen = 64, kText = 32;  // bytes, as lists grow and nodes are kept
  static constexpr size_t kDocument = size_t{128} << 20, kRows = 2 * kDocument;  // a list of all rows of a file
  // `where` outlives this.
  JsonMemory(size_t text_bytes, const std::string& where, size_t most = kDocument);
  void take(size_t bytes) {
    if (bytes > left_) refuse();
    left_ -= bytes;
  }

 private:
  [[noreturn]] void refuse() const;
  size_t most_, left_;
  const std::string& where_;
};

}  // namespace ucas
