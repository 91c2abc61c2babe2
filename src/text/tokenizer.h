// Text <-> token ids, from a Hugging Face tokenizer.json (byte-level BPE, or the word-level form of the embedded task).
// Fed by prompts (data/templates) and decoded responses; owns the vocabulary.
// Unknown components of the file are refused by name at load, never at encode: Error("tokenizer" or "unsupported").
// Threads: all const functions may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

class Tokenizer {
 public:
  // `directory` holds tokenizer.json; tokenizer_config.json and special_tokens_map.json are read if they are there.
  static Tokenizer load(const std::string& directory);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  enum class Special { as_text, parse };  // does "<|endoftext|>" in the text mean the token, or its characters?
  std::vector<int32_t> encode(std::string_view text, Special special = Special::parse) const;
  // Bytes as they are. An id that names no token decodes to nothing, as in Hugging Face: a model may have more rows
  // than its tokenizer has tokens, and sample one. A negative id is an Error("tokenizer").
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;
  std::string token_text(int32_t id) const;  // what this one token decodes to, bytes

  int64_t vocab_size() const;                                  // highest id + 1, added tokens included
  std::optional<int32_t> id_of(std::string_view token) const;  // by its text in the file
  std::vector<int32_t> eos_ids() const;                        // eos_token of tokenizer_config.json, if any
  std::optional<int32_t> pad_id() const;
  const std::string& directory() const;  // where it was loaded from (files are passed through)

  // Turns a growing id sequence into text, holding back bytes of an unfinished UTF-8 character.
  class Stream {
   public:
    explicit Stream(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
    std::string push(int32_t id);  // the text that became complete
    std::string finish();          // what was held back, with U+FFFD for broken bytes

   private:
    const Tokenizer* tokenizer_;
    std::string held_;
  };

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The files of a checkpoint directory that are its tokenizer's: tokenizer.json, and what may stand beside it.
const std::vector<std::string>& tokenizer_files();
// Copies those that are there from one checkpoint directory to another, byte for byte.
void copy_tokenizer_files(const std::string& from, const std::string& to);

}  // namespace ucas
