#include "text/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "text/tokenizer/word_level.h"

namespace ucas {

namespace {

constexpr int64_t kFileLimit = int64_t{256} << 20;
constexpr size_t kMaxAddedBytes = 512;  // bounds the work per byte of text

// The tables were read already (text/tokenizer/tokenizer_file.h); an empty one of the right type stands in their place.
void check_tables(const JsonObject& model, bool merges, const TokenizerFile& file) {
  const JsonObject vocab = model.child("vocab");
  if (file.vocab.empty()) vocab.refuse("it is empty");
  if (merges) model.children("merges");
}

bool read_no_decoder(const JsonObject& root, TokenizerFile& file) {
  file.decoder.spaced = root.find("decoder") == nullptr;
  return file.decoder.spaced;
}

void read_bpe(const JsonObject& root, const JsonObject& model, TokenizerFile& file) {
  only_settings(model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                        "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (const Json* dropout = model.find("dropout"); dropout != nullptr && *dropout != 0.0) {
    refuse_part(model, "dropout is not supported: the same text must always give the same ids");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(key, "").empty()) refuse_part(model, str(key, " is not supported"));
  }
  file.ignore_merges = model.truth_or("ignore_merges", false);
  file.byte_fallback = model.truth_or("byte_fallback", false);
  file.fuse_unknown = model.truth_or("fuse_unk", false);
  file.unknown = model.text_or("unk_token", "");
  check_tables(model, true, file);
  // None: a text is one piece, as SentencePiece's kind has it where its normalizer writes the spaces.
  const bool byte_level =
      root.find("pre_tokenizer") != nullptr && read_pre_tokenizer(root.child("pre_tokenizer"), file.splitter);
  file.model = byte_level ? TokenizerFile::Model::byte_level_bpe : TokenizerFile::Model::character_bpe;
  if (!read_no_decoder(root, file)) read_decoder(root.child("decoder"), byte_level, file.decoder);
}

void read_word_level(const JsonObject& root, const JsonObject& model, TokenizerFile& file) {
  only_settings(model, {"type", "vocab", "unk_token"});
  file.model = TokenizerFile::Model::word_level;
  file.unknown = model.text_or("unk_token", "");
  check_tables(model, false, file);
  const JsonObject split = root.child("pre_tokenizer");
  if (type_of_part(split) != "Split") {
    refuse_part(split,
                str("the pre-tokenizer ", printable(type_of_part(split)), " is not supported (WordLevel: Split)"));
  }
  std::vector<std::string> words;
  for (const auto& [word, id] : file.vocab) {
    bool special =
        std::any_of(file.added.begin(), file.added.end(), [&](const AddedToken& t) { return t.content == word; });
    if (!special && word != file.unknown) words.push_back(word);
  }
  std::string expected = word_pattern(words);
  if (isolated_expression(split) != expected) {
    refuse_part(split,
                str("WordLevel needs the Split expression that lists the words of the vocabulary, longest first; "
                    "expected \"",
                    printable(expected, 60), "\""));
  }
  if (read_no_decoder(root, file)) return;
  const JsonObject decoder = root.child("decoder");
  if (type_of_part(decoder) != "Fuse") {
    refuse_part(decoder, str("the decoder ", printable(type_of_part(decoder)), " is not supported (WordLevel: Fuse)"));
  }
  read_decoder(decoder, false, file.decoder);
}

AddedToken read_added_token(const JsonObject& node) {
  only_settings(node, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.content = node.text_or("content", "");
  if (token.content.empty()) node.refuse("an empty added token");
  if (token.content.size() > kMaxAddedBytes) node.refuse(str("an added token longer than ", kMaxAddedBytes, " bytes"));
  token.special = node.truth_or("special", false);
  token.normalized = node.truth_or("normalized", !token.special);
  token.lstrip = node.truth_or("lstrip", false);
  token.rstrip = node.truth_or("rstrip", false);
  token.single_word = node.truth_or("single_word", false);
  return token;
}

void read_added_tokens(const JsonObject& root, TokenizerFile& file) {
  if (root.find("added_tokens") == nullptr) return;
  for (const JsonObject& node : root.children("added_tokens")) {
    AddedToken token = read_added_token(node);
    token.id = static_cast<int32_t>(node.whole("id", 0, kMaxTokens - 1));
    file.added.push_back(std::move(token));
  }
}

// A special token of tokenizer_config.json: a string, or an object with "content".
std::optional<std::string> special_token(const JsonObject& config, const char* key) {
  const Json* value = config.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return config.child(key).text_or("content", "");
  return config.text(key);
}

// transformers adds the tokens of added_tokens_decoder to those of tokenizer.json; so does this.
void read_added_tokens_decoder(const JsonObject& config, TokenizerFile& file) {
  if (!config.has("added_tokens_decoder")) return;
  const JsonObject table = config.child("added_tokens_decoder");
  for (const std::string& key : table.keys()) {
    const JsonObject node = table.child(key);
    AddedToken token = read_added_token(node);
    bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoll(key) >= kMaxTokens) {
      node.refuse(str("the key is not an id, expected 0 to ", kMaxTokens - 1));
    }
    token.id = static_cast<int32_t>(std::stoll(key));
    auto same = [&](const AddedToken& t) { return t.id == token.id || t.content == token.content; };
    auto known = std::find_if(file.added.begin(), file.added.end(), same);
    if (known == file.added.end()) {
      file.added.push_back(std::move(token));
    } else if (known->id != token.id || known->content != token.content) {
      node.refuse(str("\"", printable(token.content), "\" has id ", token.id, ", but tokenizer.json says that id ",
                      known->id, " is \"", printable(known->content), "\""));
    }
  }
}

// add_bos_token and add_eos_token of this file say nothing where there is a tokenizer.json: transformers (5) drops
// them.
void read_config(const std::string& path, TokenizerFile& file) {
  if (!exists(path)) return;
  const JsonObject config = JsonObject::read(path, kFileLimit, ErrorKind::tokenizer);
  if (!file.eos) file.eos = special_token(config, "eos_token");
  if (!file.pad) file.pad = special_token(config, "pad_token");
  read_added_tokens_decoder(config, file);
}

// A list of named templates holds one for ordinary chats.
std::string default_template(const JsonObject& config) {
  const Json* value = config.find("chat_template");
  if (value == nullptr) return "";
  if (value->is_string()) return config.text("chat_template");
  for (const JsonObject& one : config.children("chat_template")) {
    if (one.text("name") == "default") return one.text("template");
  }
  config.refuse("chat_template", "a template named \"default\"");
}

// Checkpoints from before the fast form have other files.
void check_there(const std::string& directory, const std::string& path) {
  if (exists(path)) return;
  for (const char* older : {"tokenizer.model", "tekken.json", "vocab.json", "vocab.txt"}) {
    if (!exists(path_join(directory, older))) continue;
    throw Error(ErrorKind::unsupported,
                str(path, ": no such file, but ", older,
                    " is there; only Hugging Face's fast form is read. To write it: python3 -c \"from "
                    "transformers import AutoTokenizer as A; A.from_pretrained('",
                    printable(directory), "').save_pretrained('", printable(directory), "')\""));
  }
}

}  // namespace

TokenizerFile read_tokenizer_file(const std::string& path) try {
  TokenizerFile file;
  const bool alone = path.ends_with(".json") && !is_directory(path);
  const std::string directory = alone ? std::filesystem::path(path).parent_path().string() : path;
  file.where = alone ? path : path_join(directory, "tokenizer.json");
  check_there(directory, file.where);
  TokenizerTables tables;
  Json json = read_tokenizer_json(file.where, kFileLimit, tables);
  file.vocab = std::move(tables.vocab);
  file.merges = std::move(tables.merges);
  const JsonObject root(json, file.where, ErrorKind::tokenizer);
  only_settings(root, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                       "post_processor", "decoder", "model"});
  // What the last caller of the library asked for, saved with the file; transformers resets both at every call.
  if (root.find("truncation") != nullptr) {
    only_settings(root.child("truncation"), {"direction", "max_length", "strategy", "stride"});
  }
  if (root.find("padding") != nullptr) {
    only_settings(root.child("padding"),
                  {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  }
  read_added_tokens(root, file);
  if (root.find("normalizer") != nullptr) read_normalizer(root.child("normalizer"), file.normalizer);
  if (root.find("post_processor") != nullptr) read_post_processor(root.child("post_processor"), file);
  const JsonObject model = root.child("model");
  std::string type = model.text_or("type", model.find("merges") != nullptr ? "BPE" : "");
  if (type == "BPE") {
    read_bpe(root, model, file);
  } else if (type == "WordLevel") {
    read_word_level(root, model, file);
  } else {
    refuse_part(model, str("the model ", printable(type), " is not supported (known: BPE, WordLevel)"));
  }
  read_config(path_join(directory, "tokenizer_config.json"), file);
  read_config(path_join(directory, "special_tokens_map.json"), file);
  return file;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::header_json) throw;
  throw Error(ErrorKind::tokenizer, error.what());
}

ChatFiles read_chat_files(const std::string& directory) {
  ChatFiles out;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string path = path_join(directory, name);
    if (!exists(path)) continue;
    const JsonObject config = JsonObject::read(path, kFileLimit, ErrorKind::tokenizer);
    for (const char* key : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
      const bool known = std::ranges::any_of(out.tokens, [&](const auto& token) { return token.first == key; });
      if (const auto text = special_token(config, key); text && !known) out.tokens.emplace_back(key, *text);
    }
    if (!out.text.empty()) continue;
    out.text = default_template(config);
    if (!out.text.empty()) out.where = path;
  }
  if (const std::string path = path_join(directory, "chat_template.jinja"); exists(path)) {
    out.text = read_file(path, kFileLimit);
    out.where = path;
  }
  return out;
}

}  // namespace ucas
