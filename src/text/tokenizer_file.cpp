#include "text/tokenizer_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"
#include "base/str.h"
#include "text/tokenizer_json.h"
#include "text/word_level.h"

namespace ucas {

namespace {

constexpr int64_t kFileLimit = int64_t{256} << 20;
constexpr size_t kMaxAddedBytes = 512;  // bounds the work per byte of text

[[noreturn]] void unsupported(const JsonObject& node, const std::string& what) {
  throw Error("unsupported", str(node.place(), ": ", what));
}

std::string type_of(const JsonObject& node) {
  std::string name = node.text_or("type", "");
  if (name.empty()) node.refuse("no \"type\"");
  return name;
}

// Any other key is a setting that this program does not know, and would silently ignore.
void only(const JsonObject& node, std::initializer_list<std::string_view> known) {
  for (const std::string& key : node.keys()) {
    if (std::ranges::find(known, key) == known.end()) {
      unsupported(node, str("unknown setting \"", printable(key), "\""));
    }
  }
}

void read_normalizer(const JsonObject& node, TokenizerFile& file) {
  std::string type = type_of(node);
  if (type == "NFC") {
    only(node, {"type"});
    file.nfc = true;
  } else if (type == "Sequence") {
    only(node, {"type", "normalizers"});
    for (const JsonObject& part : node.children("normalizers")) read_normalizer(part, file);
  } else {
    unsupported(node, str("the normalizer ", printable(type), " is not supported (known: NFC, Sequence)"));
  }
}

// {"Regex": ...}; a literal {"String": ...} has other rules.
std::string split_expression(const JsonObject& split) {
  only(split, {"type", "pattern", "behavior", "invert"});
  if (split.text_or("behavior", "") != "Isolated") unsupported(split, "only behavior Isolated is supported");
  if (split.truth_or("invert", false)) unsupported(split, "invert is not supported");
  const JsonObject pattern = split.child("pattern");
  if (pattern.find("Regex") == nullptr) unsupported(pattern, "only a Regex pattern is supported");
  only(pattern, {"Regex"});
  return pattern.text_or("Regex", "");
}

const SplitPattern* read_split(const JsonObject& split) {
  std::string expression = split_expression(split);
  const SplitPattern* pattern = known_pattern(expression);
  if (pattern == nullptr) {
    unsupported(split, str("the split expression \"", printable(expression, 200), "\" is not known (known: those of ",
                           join(known_pattern_names(), " and "), ")"));
  }
  return pattern;
}

struct ByteLevelSettings {
  bool add_prefix_space, use_regex;
};

ByteLevelSettings read_byte_level(const JsonObject& node) {
  only(node, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return {node.truth_or("add_prefix_space", true), node.truth_or("use_regex", true)};
}

void read_bpe_pre_tokenizer(const JsonObject& node, TokenizerFile& file) {
  if (type_of(node) == "ByteLevel") {
    ByteLevelSettings settings = read_byte_level(node);
    if (!settings.use_regex)
      unsupported(node, "ByteLevel alone with use_regex false (text that is not split) is not supported");
    file.add_prefix_space = settings.add_prefix_space;
    file.pattern = &gpt2_pattern();
    return;
  }
  if (type_of(node) != "Sequence") {
    unsupported(node, str("the pre-tokenizer ", printable(type_of(node)),
                          " is not supported (known: ByteLevel, or a Sequence of ", "Split and ByteLevel)"));
  }
  only(node, {"type", "pretokenizers"});
  std::vector<JsonObject> parts = node.children("pretokenizers");
  if (parts.size() == 1 && type_of(parts[0]) == "ByteLevel") return read_bpe_pre_tokenizer(parts[0], file);
  for (const JsonObject& part : parts) {
    if (type_of(part) != "Split" && type_of(part) != "ByteLevel") {
      unsupported(part,
                  str("the pre-tokenizer ", printable(type_of(part)), " is not supported (known: Split, ByteLevel)"));
    }
  }
  if (parts.size() != 2 || type_of(parts[0]) != "Split" || type_of(parts[1]) != "ByteLevel") {
    unsupported(node, "a Sequence must be one Split, then ByteLevel");
  }
  file.pattern = read_split(parts[0]);
  ByteLevelSettings settings = read_byte_level(parts[1]);
  if (settings.use_regex) unsupported(parts[1], "use_regex true after a Split is not supported");
  if (settings.add_prefix_space) unsupported(parts[1], "add_prefix_space true after a Split is not supported");
}

// Post-processors may only be ones that add nothing: what stands around a prompt is the template's business.
void check_post_processor(const JsonObject& node) {
  std::string type = type_of(node);
  if (type == "ByteLevel") {
    read_byte_level(node);
  } else if (type == "Sequence") {
    only(node, {"type", "processors"});
    for (const JsonObject& part : node.children("processors")) check_post_processor(part);
  } else if (type == "TemplateProcessing") {
    only(node, {"type", "single", "pair", "special_tokens"});
    std::vector<JsonObject> single = node.children("single");
    bool plain = single.size() == 1 && single[0].find("Sequence") != nullptr;
    if (!plain)
      single.empty()
          ? node.refuse("\"single\" is empty")
          : unsupported(single[0],
                        "a template that adds special tokens is not supported; put them into the prompt template");
  } else {
    unsupported(node, str("the post-processor ", printable(type),
                          " is not supported (known: ByteLevel, TemplateProcessing, Sequence)"));
  }
}

// The tables were read already (text/tokenizer_json.h); an empty one of the right type stands in their place.
void check_tables(const JsonObject& model, bool merges, const TokenizerFile& file) {
  const JsonObject vocab = model.child("vocab");
  if (file.vocab.empty()) vocab.refuse("it is empty");
  if (merges) model.children("merges");
}

void read_bpe(const JsonObject& root, const JsonObject& model, TokenizerFile& file) {
  only(model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
               "byte_fallback", "ignore_merges", "vocab", "merges"});
  // unk_token and fuse_unk never matter: every byte has a token (checked when the table is built).
  if (const Json* dropout = model.find("dropout"); dropout != nullptr && *dropout != 0.0) {
    unsupported(model, "dropout is not supported: the same text must always give the same ids");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(key, "").empty()) unsupported(model, str(key, " is not supported"));
  }
  if (model.truth_or("byte_fallback", false))
    unsupported(model, "byte_fallback is not supported (only byte-level vocabularies are)");
  file.ignore_merges = model.truth_or("ignore_merges", false);
  check_tables(model, true, file);
  read_bpe_pre_tokenizer(root.child("pre_tokenizer"), file);
  const JsonObject decoder = root.child("decoder");
  if (type_of(decoder) != "ByteLevel") {
    unsupported(decoder, str("the decoder ", printable(type_of(decoder)), " is not supported (BPE: ByteLevel)"));
  }
  read_byte_level(decoder);
}

void read_word_level(const JsonObject& root, const JsonObject& model, TokenizerFile& file) {
  only(model, {"type", "vocab", "unk_token"});
  file.model = TokenizerFile::Model::word_level;
  file.unknown = model.text_or("unk_token", "");
  check_tables(model, false, file);
  const JsonObject split = root.child("pre_tokenizer");
  if (type_of(split) != "Split") {
    unsupported(split, str("the pre-tokenizer ", printable(type_of(split)), " is not supported (WordLevel: Split)"));
  }
  std::vector<std::string> words;
  for (const auto& [word, id] : file.vocab) {
    bool special =
        std::any_of(file.added.begin(), file.added.end(), [&](const AddedToken& t) { return t.content == word; });
    if (!special && word != file.unknown) words.push_back(word);
  }
  std::string expected = word_pattern(words);
  if (split_expression(split) != expected) {
    unsupported(
        split,
        str("WordLevel needs the Split expression that lists the words of the vocabulary, longest first; expected \"",
            printable(expected, 60), "\""));
  }
  const JsonObject decoder = root.child("decoder");
  if (type_of(decoder) != "Fuse") {
    unsupported(decoder, str("the decoder ", printable(type_of(decoder)), " is not supported (WordLevel: Fuse)"));
  }
  only(decoder, {"type"});
}

AddedToken read_added_token(const JsonObject& node) {
  only(node, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
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

void read_config(const std::string& path, TokenizerFile& file) {
  if (!exists(path)) return;
  const JsonObject config = JsonObject::read(path, kFileLimit, "tokenizer");
  if (!file.eos) file.eos = special_token(config, "eos_token");
  if (!file.pad) file.pad = special_token(config, "pad_token");
  read_added_tokens_decoder(config, file);
}

}  // namespace

TokenizerFile read_tokenizer_file(const std::string& directory) {
  TokenizerFile file;
  file.where = path_join(directory, "tokenizer.json");
  TokenizerTables tables;
  Json json = read_tokenizer_json(file.where, kFileLimit, tables);
  file.vocab = std::move(tables.vocab);
  file.merges = std::move(tables.merges);
  const JsonObject root(json, file.where, "tokenizer");
  only(root, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
              "decoder", "model"});
  // What the last caller of the library asked for, saved with the file; transformers resets both at every call.
  if (root.find("truncation") != nullptr) {
    only(root.child("truncation"), {"direction", "max_length", "strategy", "stride"});
  }
  if (root.find("padding") != nullptr) {
    only(root.child("padding"), {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  }
  read_added_tokens(root, file);
  if (root.find("normalizer") != nullptr) read_normalizer(root.child("normalizer"), file);
  if (root.find("post_processor") != nullptr) check_post_processor(root.child("post_processor"));
  const JsonObject model = root.child("model");
  std::string type = model.text_or("type", model.find("merges") != nullptr ? "BPE" : "");
  if (type == "BPE") {
    read_bpe(root, model, file);
  } else if (type == "WordLevel") {
    read_word_level(root, model, file);
  } else {
    unsupported(model, str("the model ", printable(type), " is not supported (known: BPE, WordLevel)"));
  }
  read_config(path_join(directory, "tokenizer_config.json"), file);
  read_config(path_join(directory, "special_tokens_map.json"), file);
  return file;
}

}  // namespace ucas
