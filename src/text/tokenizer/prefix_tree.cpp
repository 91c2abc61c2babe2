#include "text/tokenizer/prefix_tree.h"

#include "base/error.h"

namespace ucas {

void PrefixTree::add(std::string_view word, int32_t value) {
  UCAS_CHECK(!word.empty() && value >= 0, "a word of the prefix tree needs bytes and a value");
  starts_[static_cast<unsigned char>(word[0])] = true;
  uint32_t node = 0;
  for (char byte : word) {
    auto [place, fresh] = edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(ends_.size()));
    if (fresh) ends_.push_back(-1);
    node = place->second;
  }
  ends_[node] = value;
}

PrefixTree::Match PrefixTree::longest(std::string_view text, size_t at) const {
  Match best;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    auto place = edges_.find(edge(node, text[i]));
    if (place == edges_.end()) break;
    node = place->second;
    if (ends_[node] >= 0) best = {i + 1 - at, ends_[node]};
  }
  return best;
}

size_t PrefixTree::next_candidate(std::string_view text, size_t at) const {
  while (at < text.size() && !starts_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

}  // namespace ucas
