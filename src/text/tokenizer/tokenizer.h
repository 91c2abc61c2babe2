// Text <-> token ids, from a Hugging Face tokenizer.json: byte-level BPE (GPT-2, Qwen, Llama 3, DeepSeek), BPE of
// characters with byte fallback (Llama 2, Mistral), or the word-level form of the embedded task.
// What a file's post-processor puts before a text (the BOS of Llama and DeepSeek) begins a prompt, once:
// encode_prompt() and begin_prompt() put it there unless it is there already, as in templates that name it
// themselves. encode() never adds it (Hugging Face's add_special_tokens = False), so that responses and parts of a
// prompt get none. What it puts after a text (an EOS) would end the prompt, and is left to the caller. Fed by prompts
// (data/prompts/templates) and decoded responses; owns the vocabulary. Unknown components of the file are refused by
// name at load, never at encode: Error(ErrorKind::tokenizer). Threads: all const functions may be called from any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/normalizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

class Tokenizer {
 public:
  // `directory` holds tokenizer.json; tokenizer_config.json and special_tokens_map.json are read if they are there.
  static Tokenizer load(const std::string& directory);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  enum class Special { as_text, parse };  // does "<|endoftext|>" in the text mean the token, or its characters?
  // Does the text begin the sequence? Some files of SentencePiece's kind begin that, and only that, with a space.
  enum class Place { beginning, later };
  std::vector<int32_t> encode(std::string_view text, Special special = Special::parse,
                              Place place = Place::beginning) const;
  // What a chat template has rendered, as it is (it brings its own BOS): the template's special tokens are tokens, the
  // same characters in the data are text.
  std::vector<int32_t> encode(const MarkedText& text, Place place = Place::beginning) const;
  // The parts of `text` that Special::parse takes for special tokens, and perhaps some that overlap them.
  std::vector<std::string_view> specials_in(std::string_view text) const;
  std::vector<int32_t> encode_prompt(std::string_view text, Special special = Special::parse) const;
  void begin_prompt(std::vector<int32_t>& ids) const;  // prefix() before them, unless they begin with it
  const std::vector<int32_t>& prefix() const;          // what the post-processor puts before a text
  // Byte-level: bytes as they are. SentencePiece's kind: as Hugging Face, without the space in front, and bytes of
  // "<0xE2>" tokens that are not UTF-8 together become a U+FFFD each; no spaces are cleaned up (transformers 5 does not
  // do that for BPE either, whatever clean_up_tokenization_spaces says). An id that names no token decodes to nothing,
  // as in Hugging Face: a model may have more rows than its tokenizer has tokens, and sample one. A negative id is an
  // Error(ErrorKind::tokenizer).
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;
  std::string token_text(int32_t id) const;  // what this one token is within a text, bytes
  // How many bytes of the text encode() drops or maps to the unknown token, since a byte-level vocabulary has no token
  // for them (SmolLM2's lacks 21 of 256); 0 where it has all.
  int64_t unencodable_bytes(std::string_view text) const;
  bool lacks_bytes() const;

  int64_t vocab_size() const;                                  // highest id + 1, added tokens included
  std::optional<int32_t> id_of(std::string_view token) const;  // by its text in the file
  std::vector<int32_t> eos_ids() const;                        // eos_token of tokenizer_config.json, if any
  std::optional<int32_t> pad_id() const;
  const std::string& directory() const;  // where it was loaded from (files are passed through)

  // Turns a growing id sequence into text, holding back bytes of an unfinished UTF-8 character.
  class Stream {
   public:
    explicit Stream(const Tokenizer& tokenizer);
    std::string push(int32_t id);  // the text that became complete
    std::string finish();          // what was held back, with U+FFFD for broken bytes

   private:
    const Tokenizer* tokenizer_;
    TokenTexts::Joiner joiner_;
    std::string held_;
  };

 private:
  std::vector<int32_t> encode_marked(std::string_view text, bool as_text, bool first, std::string_view origin) const;

  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The files of a checkpoint directory that are its tokenizer's: tokenizer.json, and what may accompany it.
const std::vector<std::string>& tokenizer_files();
// Copies those that are there from one checkpoint directory to another, byte for byte.
void copy_tokenizer_files(const std::string& from, const std::string& to);

}  // namespace ucas
