#include "cli/gguf_checkpoint.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

TokenizerTexts tokenizer_of(const GgufFile& file, const ModelConfig& config) {
  const auto key = [](const char* end) { return str("tokenizer.ggml.", end); };
  const auto model = file.text(key("model"));
  if (!model) file.missing(key("model"));
  const bool pieces = *model == "llama" && config.family->block.window == Window::pattern;
  if (*model != "gpt2" && !pieces)
    file.refuse(ErrorKind::unsupported, key("model"),
                "ucas converts byte-level BPE, \"gpt2\", and of gemma3 SentencePiece, \"llama\"");
  // Readers of such files take true where the key is not there.
  if (pieces && file.truth(key("add_space_prefix")).value_or(true))
    file.refuse(ErrorKind::unsupported, key("add_space_prefix"), "expected false, as Gemma's files have it");
  const auto id = [&](const char* end) { return file.integer(key(end), 0, config.vocab_size - 1); };
  TokenizerTablesOfOthers tables;
  tables.where = file.path();
  tables.pre = file.text(key("pre")).value_or("");
  for (const char* needed : {"tokens", "token_type", pieces ? "scores" : "merges"}) {
    if (file.find(key(needed)) == nullptr) file.missing(key(needed));
  }
  tables.tokens = file.texts(key("tokens"));
  for (int64_t kind : file.integers(key("token_type"), 1, 6)) tables.kinds.push_back(static_cast<TokenKind>(kind));
  if (pieces) {
    tables.scores = file.floats(key("scores"));
  } else {
    tables.merges = file.texts(key("merges"));
  }
  tables.begin = id("bos_token_id");
  tables.end = id("eos_token_id");
  tables.pad = id("padding_token_id");
  tables.unknown = id("unknown_token_id");
  tables.begins = file.truth(key("add_bos_token"));
  tables.ends = file.truth(key("add_eos_token"));
  tables.chat_template = file.text("tokenizer.chat_template").value_or("");
  tables.longest = config.max_position_embeddings;
  if (static_cast<int64_t>(tables.tokens.size()) > config.vocab_size)
    file.refuse(ErrorKind::shape, key("tokens"), str("the embedding has ", config.vocab_size, " rows"));
  return write_tokenizer(std::move(tables));
}

}  // namespace

GgufCheckpoint::GgufCheckpoint(const std::string& path, const std::string& torch_dtype)
    : file(path),
      config(gguf_model_config(file, torch_dtype)),
      weights(gguf_weights(file, config)),
      tokenizer(tokenizer_of(file, config)) {}

bool is_gguf(const std::string& path) {
  char head[kGgufMagic.size()] = {};
  if (file_size(path) < static_cast<int64_t>(sizeof head)) return false;
  read_at(path, 0, head, sizeof head);
  return std::string_view(head, sizeof head) == kGgufMagic;
}

}  // namespace ucas
