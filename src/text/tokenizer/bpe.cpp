#include "text/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/error.h"
#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

Bpe::Bpe(std::vector<std::pair<std::string, int32_t>> tokens, bool ignore_merges, Start start, UnknownSymbols unknown)
    : tokens_(std::move(tokens)), start_(start), unknown_(unknown), ignore_merges_(ignore_merges) {
  byte_ids_.fill(-1);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto& [bytes, id] = tokens_[i];
    index_.emplace(bytes, i);
    if (bytes.size() == 1) byte_ids_[static_cast<unsigned char>(bytes[0])] = id;
  }
  for (size_t b = 0; b < 256; ++b) fallback_ids_[b] = find(byte_token(static_cast<uint8_t>(b))).value_or(-1);
  all_bytes_ = start_ == Start::bytes && missing_bytes().empty();
  whole_ = std::make_unique<std::atomic<uint8_t>[]>(tokens_.size());
}

std::optional<int32_t> Bpe::find(std::string_view bytes) const {
  const auto found = index_.find(bytes);
  return found == index_.end() ? std::nullopt : std::optional(tokens_[found->second].second);
}

std::vector<uint8_t> Bpe::missing_bytes() const {
  const std::array<int32_t, 256>& ids = start_ == Start::bytes ? byte_ids_ : fallback_ids_;
  std::vector<uint8_t> missing;
  for (size_t b = 0; b < 256; ++b) {
    if (ids[b] < 0) missing.push_back(static_cast<uint8_t>(b));
  }
  return missing;
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::string Bpe::add_merge(std::string_view left, std::string_view right) {
  std::optional<int32_t> a = find(left), b = find(right), merged = find(str(left, right));
  if (!a || !b || !merged) {
    std::string unknown = !a ? std::string(left) : !b ? std::string(right) : str(left, right);
    return str("\"", printable(unknown), "\" is not in the vocabulary");
  }
  if (!merges_.emplace(pair_key(*a, *b), Merge{static_cast<uint32_t>(merges_.size()), *merged}).second) {
    return str("the pair \"", printable(left), "\" \"", printable(right), "\" was merged before");
  }
  return "";
}

bool Bpe::is_whole(size_t index) const {
  uint8_t known = whole_[index].load(std::memory_order_relaxed);
  if (known == 0) {
    std::vector<int32_t> ids;
    const auto& [bytes, id] = tokens_[index];
    merge(bytes, ids);
    known = ids.size() == 1 && ids[0] == id ? 1 : 2;
    whole_[index].store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  const auto token = index_.find(piece);
  if (token == index_.end() || !(ignore_merges_ || is_whole(token->second))) return merge(piece, ids);
  ids.push_back(tokens_[token->second].second);
}

size_t Bpe::start(std::string_view piece, int32_t* symbols) const {
  if (!all_bytes_) return start_with_unknown(piece, symbols);
  for (size_t i = 0; i < piece.size(); ++i) symbols[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  return piece.size();
}

// Hugging Face's order, also where it is odd: an unknown token that waits to grow is put down before the next token,
// but not before a byte.
size_t Bpe::start_with_unknown(std::string_view piece, int32_t* symbols) const {
  size_t count = 0;
  bool waiting = false;  // an unknown token that further ones may join
  for (size_t at = 0; at < piece.size();) {
    const size_t length = start_ == Start::bytes ? 1 : char_at(piece, at).length;
    const std::string_view symbol = piece.substr(at, length);
    at += length;
    const int32_t id = length == 1 ? byte_ids_[static_cast<unsigned char>(symbol[0])] : find(symbol).value_or(-1);
    if (id >= 0) {
      if (std::exchange(waiting, false)) symbols[count++] = *unknown_.token;
      symbols[count++] = id;
      continue;
    }
    const size_t bytes = unknown_.byte_fallback ? fall_back(symbol, symbols + count) : 0;
    count += bytes;
    if (bytes > 0 || !unknown_.token) continue;
    if (waiting && !unknown_.fuse) symbols[count++] = *unknown_.token;
    waiting = true;
  }
  if (waiting) symbols[count++] = *unknown_.token;
  return count;
}

size_t Bpe::fall_back(std::string_view symbol, int32_t* symbols) const {
  const std::string spelled = start_ == Start::bytes ? spelling_of_bytes(symbol) : std::string(symbol);
  for (size_t i = 0; i < spelled.size(); ++i) {
    symbols[i] = fallback_ids_[static_cast<unsigned char>(spelled[i])];
    if (symbols[i] < 0) return 0;
  }
  return spelled.size();
}

// Every adjacent pair that has a merge waits by its rank, then its place. An entry is stale when its pair has changed
// since.
void Bpe::merge(std::string_view piece, std::vector<int32_t>& ids) const {
  constexpr uint32_t kNone = 0xFFFFFFFF;
  UCAS_CHECK(most_symbols(piece.size()) < kNone, "a piece has fewer than 2^32 symbols");
  struct Symbol {
    int32_t id;  // -1: swallowed by its left neighbour
    uint32_t left, right;
  };
  std::vector<int32_t> first(most_symbols(piece.size()));
  const auto count = static_cast<uint32_t>(start(piece, first.data()));
  std::vector<Symbol> symbols(count);
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i] = {first[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1};
  }
  using Waiting = std::pair<uint32_t, uint32_t>;  // rank and place
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  const auto add = [&](uint32_t place) {
    const uint32_t right = symbols[place].right;
    const Merge* merge = right == kNone ? nullptr : find_merge(symbols[place].id, symbols[right].id);
    if (merge != nullptr) waiting.emplace(merge->rank, place);
  };
  for (uint32_t i = 0; i < count; ++i) add(i);
  while (!waiting.empty()) {
    const auto [rank, place] = waiting.top();
    waiting.pop();
    Symbol& symbol = symbols[place];
    if (symbol.id < 0 || symbol.right == kNone) continue;
    const Merge* merge = find_merge(symbol.id, symbols[symbol.right].id);
    if (merge == nullptr || merge->rank != rank) continue;
    symbols[symbol.right].id = -1;
    symbol.id = merge->merged;
    symbol.right = symbols[symbol.right].right;
    if (symbol.right != kNone) symbols[symbol.right].left = place;
    if (symbol.left != kNone) add(symbol.left);
    add(place);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
}

}  // namespace ucas
