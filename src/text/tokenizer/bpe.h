// Byte-pair encoding: a piece starts as its bytes (GPT-2's kind) or as its characters (SentencePiece's kind), then the
// adjacent pair of lowest rank, leftmost first, becomes one token until no pair has a merge. O(n log n) in the length
// of the piece, also for 10^7 equal bytes. Threads: const functions may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ucas {

// What a byte or character that is no token becomes, before anything is merged: the tokens "<0xE2>" ... of its bytes,
// where all of them are there and that is asked for; else the unknown token (with `fuse` one for many in a row), if
// there is one; else nothing, so that its neighbours may merge. The bytes of a byte are those of its spelling in
// GPT-2's alphabet, as in Hugging Face.
struct UnknownSymbols {
  bool byte_fallback = false, fuse = false;
  std::optional<int32_t> token;
};

class Bpe {
 public:
  enum class Start { bytes, characters };
  // tokens[i] = (bytes, id). No bytes may come twice.
  Bpe(std::vector<std::pair<std::string, int32_t>> tokens, bool ignore_merges, Start start = Start::bytes,
      UnknownSymbols unknown = {});
  // The bytes that have no token ("<0x0A>" where pieces start as characters), in order.
  std::vector<uint8_t> missing_bytes() const;
  // In order of rank. Both parts and their concatenation must be tokens, and no pair may come twice: otherwise a
  // message saying which is wrong, "" when all went well.
  std::string add_merge(std::string_view left, std::string_view right);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const;
  std::optional<int32_t> find(std::string_view bytes) const;

 private:
  struct Merge {
    uint32_t rank;
    int32_t merged;
  };
  static uint64_t pair_key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  const Merge* find_merge(int32_t left, int32_t right) const;  // nullptr: no merge
  void merge(std::string_view piece, std::vector<int32_t>& ids) const;
  size_t start(std::string_view piece, int32_t* symbols) const;  // how many there are: at most most_symbols()
  size_t start_with_unknown(std::string_view piece, int32_t* symbols) const;
  size_t fall_back(std::string_view symbol, int32_t* symbols) const;  // how many; 0: a byte of it has no token
  // A byte falls back to the one or two bytes of its spelling.
  size_t most_symbols(size_t bytes) const { return unknown_.byte_fallback ? 2 * bytes : bytes; }
  bool is_whole(size_t index) const;  // does merging the bytes of tokens_[index] give that token alone?

  std::vector<std::pair<std::string, int32_t>> tokens_;
  std::unordered_map<std::string_view, size_t> index_;  // in tokens_, whose bytes its keys are
  std::unordered_map<uint64_t, Merge> merges_;          // by pair_key()
  std::array<int32_t, 256> byte_ids_{};                 // of tokens that are one byte
  std::array<int32_t, 256> fallback_ids_{};             // of "<0x00>" ...
  Start start_;
  UnknownSymbols unknown_;
  bool all_bytes_ = false;  // pieces start as bytes, and each of them is a token
  bool ignore_merges_;
  // Lazily filled per token: 0 not known yet, 1 whole, 2 not (merges may not reach a token, or cross it).
  std::unique_ptr<std::atomic<uint8_t>[]> whole_;
};

}  // namespace ucas
