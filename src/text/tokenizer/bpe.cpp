#include "text/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "base/error.h"
#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr size_t kShortPiece = 48;  // bytes; up to here the quadratic loop is the faster one

uint64_t mix(uint64_t x) {  // finaliser of MurmurHash3
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  return x ^ x >> 33;
}

size_t power_of_two_above(size_t n) {
  size_t size = 16;
  while (size < n) size *= 2;
  return size;
}

// Places where one rank can be applied, taken from left to right. Nearly all arrive in order; the others wait in a
// heap.
class Places {
 public:
  void add(uint32_t place) {
    if (sorted_.empty() || sorted_.back() <= place) {
      sorted_.push_back(place);
    } else {
      late_.push(place);
    }
  }
  bool empty() const { return next_ == sorted_.size() && late_.empty(); }
  uint32_t take() {
    if (!late_.empty() && (next_ == sorted_.size() || late_.top() < sorted_[next_])) {
      uint32_t place = late_.top();
      late_.pop();
      return place;
    }
    return sorted_[next_++];
  }

 private:
  std::vector<uint32_t> sorted_;
  size_t next_ = 0;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> late_;
};

}  // namespace

Bpe::Bpe(std::vector<std::pair<std::string, int32_t>> tokens, bool ignore_merges, Start start, UnknownSymbols unknown)
    : tokens_(std::move(tokens)), start_(start), unknown_(unknown), ignore_merges_(ignore_merges) {
  slots_.resize(power_of_two_above(tokens_.size() * 2));
  byte_ids_.fill(-1);
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const auto& [bytes, id] = tokens_[i];
    size_t slot = token_slot(bytes);
    if (slots_[slot] != 0) doubled_ = bytes;
    slots_[slot] = static_cast<uint32_t>(i + 1);
    if (bytes.size() == 1) byte_ids_[static_cast<unsigned char>(bytes[0])] = id;
  }
  for (size_t b = 0; b < 256; ++b) fallback_ids_[b] = find(byte_token(static_cast<uint8_t>(b))).value_or(-1);
  all_bytes_ = start_ == Start::bytes && missing_bytes().empty();
  whole_ = std::make_unique<std::atomic<uint8_t>[]>(tokens_.size());
  grow_merges(16);
}

size_t Bpe::token_slot(std::string_view bytes) const {
  size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>{}(bytes)&mask;
  while (slots_[slot] != 0 && tokens_[slots_[slot] - 1].first != bytes) slot = (slot + 1) & mask;
  return slot;
}

std::optional<int32_t> Bpe::find(std::string_view bytes) const {
  uint32_t index = slots_[token_slot(bytes)];
  return index == 0 ? std::nullopt : std::optional(tokens_[index - 1].second);
}

std::vector<uint8_t> Bpe::missing_bytes() const {
  const std::array<int32_t, 256>& ids = start_ == Start::bytes ? byte_ids_ : fallback_ids_;
  std::vector<uint8_t> missing;
  for (size_t b = 0; b < 256; ++b) {
    if (ids[b] < 0) missing.push_back(static_cast<uint8_t>(b));
  }
  return missing;
}

void Bpe::reserve_merges(size_t count) {
  if (merges_.size() < 2 * count) grow_merges(power_of_two_above(2 * count));
}

void Bpe::grow_merges(size_t slots) {
  std::vector<Merge> old = std::exchange(merges_, std::vector<Merge>(slots));
  for (const Merge& merge : old) {
    if (merge.pair == kEmpty) continue;
    size_t slot = mix(merge.pair) & (slots - 1);
    while (merges_[slot].pair != kEmpty) slot = (slot + 1) & (slots - 1);
    merges_[slot] = merge;
  }
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  uint64_t key = pair_key(left, right);
  size_t mask = merges_.size() - 1;
  for (size_t slot = mix(key) & mask; merges_[slot].pair != kEmpty; slot = (slot + 1) & mask) {
    if (merges_[slot].pair == key) return &merges_[slot];
  }
  return nullptr;
}

std::string Bpe::add_merge(std::string_view left, std::string_view right) {
  std::optional<int32_t> a = find(left), b = find(right), merged = find(str(left, right));
  if (!a || !b || !merged) {
    std::string unknown = !a ? std::string(left) : !b ? std::string(right) : str(left, right);
    return str("\"", printable(unknown), "\" is not in the vocabulary");
  }
  if (find_merge(*a, *b) != nullptr) {
    return str("the pair \"", printable(left), "\" \"", printable(right), "\" was merged before");
  }
  reserve_merges(merge_count_ + 1);
  uint64_t key = pair_key(*a, *b);
  size_t slot = mix(key) & (merges_.size() - 1);
  while (merges_[slot].pair != kEmpty) slot = (slot + 1) & (merges_.size() - 1);
  merges_[slot] = {key, static_cast<uint32_t>(merge_count_++), *merged};
  return "";
}

bool Bpe::is_whole(size_t index) const {
  uint8_t known = whole_[index].load(std::memory_order_relaxed);
  if (known == 0) {
    std::vector<int32_t> ids;
    const auto& [bytes, id] = tokens_[index];
    bytes.size() <= kShortPiece ? merge_short(bytes, ids) : merge_long(bytes, ids);
    known = ids.size() == 1 && ids[0] == id ? 1 : 2;
    whole_[index].store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (uint32_t index = slots_[token_slot(piece)]; index != 0 && (ignore_merges_ || is_whole(index - 1))) {
    ids.push_back(tokens_[index - 1].second);
  } else if (piece.size() <= kShortPiece) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
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

void Bpe::merge_short(std::string_view piece, std::vector<int32_t>& ids) const {
  struct Symbol {
    int32_t id;
    uint32_t rank;   // of the merge with the next symbol
    int32_t merged;  // its result
  };
  const bool fits = piece.size() <= kShortPiece;
  std::array<Symbol, 2 * kShortPiece> on_stack;
  std::array<int32_t, 2 * kShortPiece> start_on_stack;
  std::vector<Symbol> on_heap(fits ? 0 : most_symbols(piece.size()));
  std::vector<int32_t> start_on_heap(fits ? 0 : most_symbols(piece.size()));
  Symbol* symbols = fits ? on_stack.data() : on_heap.data();
  int32_t* first = fits ? start_on_stack.data() : start_on_heap.data();
  size_t count = start(piece, first);
  auto look_up = [&](size_t i) {
    const Merge* merge = i + 1 < count ? find_merge(symbols[i].id, symbols[i + 1].id) : nullptr;
    symbols[i].rank = merge != nullptr ? merge->rank : kNoRank;
    symbols[i].merged = merge != nullptr ? merge->merged : -1;
  };
  for (size_t i = 0; i < count; ++i) symbols[i].id = first[i];
  for (size_t i = 0; i < count; ++i) look_up(i);
  while (true) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (count == 0 || symbols[best].rank == kNoRank) break;
    symbols[best].id = symbols[best].merged;
    std::copy(symbols + best + 2, symbols + count, symbols + best + 1);
    --count;
    look_up(best);
    if (best > 0) look_up(best - 1);
  }
  for (size_t i = 0; i < count; ++i) ids.push_back(symbols[i].id);
}

// Every adjacent pair that has a merge waits under its rank. Ranks are taken from the lowest up; a merge may bring
// lower ranks in, which then go first. A place is stale when its pair has changed since.
void Bpe::merge_long(std::string_view piece, std::vector<int32_t>& ids) const {
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
  std::map<uint32_t, Places> waiting;  // by rank
  auto add = [&](uint32_t place) {
    uint32_t right = symbols[place].right;
    if (right == kNone) return;
    const Merge* merge = find_merge(symbols[place].id, symbols[right].id);
    if (merge != nullptr) waiting[merge->rank].add(place);
  };
  for (uint32_t i = 0; i < count; ++i) add(i);
  while (!waiting.empty()) {
    auto lowest = waiting.begin();
    if (lowest->second.empty()) {
      waiting.erase(lowest);
      continue;
    }
    uint32_t place = lowest->second.take();
    Symbol& symbol = symbols[place];
    if (symbol.id < 0 || symbol.right == kNone) continue;
    const Merge* merge = find_merge(symbol.id, symbols[symbol.right].id);
    if (merge == nullptr || merge->rank != lowest->first) continue;
    symbols[symbol.right].id = -1;
    symbol.id = merge->merged;
    symbol.right = symbols[symbol.right].right;
    if (symbol.right != kNone) symbols[symbol.right].left = place;
    if (symbol.left != kNone) add(symbol.left);
    add(place);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (symbols[i].id >= 0) ids.push_back(symbols[i].id);
  }
}

}  // namespace ucas
