#include "text/tokenizer_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "text/tokenizer_json.h"
#include "text/word_level.h"

namespace ucas {

namespace {

constexpr int64_t kFileLimit = int64_t{256} << 20;
constexpr size_t kMaxAddedBytes = 512;  // bounds the work per byte of text

// A place in the file, for messages: tokenizer.json: pre_tokenizer.pretokenizers[0].
struct Node {
  const Json& json;
  std::string where;
  const char* separator = ".";  // between where and a key: ": " after a file name

  [[noreturn]] void refuse(const std::string& what) const { throw Error("unsupported", str(where, ": ", what)); }
  [[noreturn]] void wrong(const std::string& what) const { throw Error("tokenizer", str(where, ": ", what)); }

  const Json* find(const char* key) const {
    if (!json.is_object()) wrong(str("expected an object, got ", json.type_name()));
    auto place = json.find(key);
    return place == json.end() || place->is_null() ? nullptr : &*place;
  }
  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) wrong(str(key, " is not true or false"));
    return value->get<bool>();
  }
  std::string text(const char* key, const std::string& otherwise = "") const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) wrong(str(key, " is not a string"));
    return value->get<std::string>();
  }
  Node child(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) wrong(str(key, " is missing"));
    return {*value, str(where, separator, key)};
  }
  std::vector<Node> children(const char* key) const {
    Node list = child(key);
    if (!list.json.is_array()) list.wrong(str("expected a list, got ", list.json.type_name()));
    std::vector<Node> nodes;
    for (size_t i = 0; i < list.json.size(); ++i) nodes.push_back({list.json[i], str(list.where, "[", i, "]")});
    return nodes;
  }
  std::string type() const {
    std::string name = text("type");
    if (name.empty()) wrong("no \"type\"");
    return name;
  }
  // Any other key is a setting that this program does not know, and would silently ignore.
  void only(std::initializer_list<const char*> known) const {
    for (const auto& [key, value] : json.items()) {
      if (std::none_of(known.begin(), known.end(), [&](const char* k) { return key == k; })) {
        refuse(str("unknown setting \"", printable(key), "\""));
      }
    }
  }
};

void read_normalizer(const Node& node, TokenizerFile& file) {
  std::string type = node.type();
  if (type == "NFC") {
    node.only({"type"});
    file.nfc = true;
  } else if (type == "Sequence") {
    node.only({"type", "normalizers"});
    for (const Node& part : node.children("normalizers")) read_normalizer(part, file);
  } else {
    node.refuse(str("the normalizer ", printable(type), " is not supported (known: NFC, Sequence)"));
  }
}

// {"Regex": ...}; a literal {"String": ...} has other rules.
std::string split_expression(const Node& split) {
  split.only({"type", "pattern", "behavior", "invert"});
  if (split.text("behavior") != "Isolated") split.refuse("only behavior Isolated is supported");
  if (split.flag("invert", false)) split.refuse("invert is not supported");
  Node pattern = split.child("pattern");
  if (pattern.find("Regex") == nullptr) pattern.refuse("only a Regex pattern is supported");
  pattern.only({"Regex"});
  return pattern.text("Regex");
}

const SplitPattern* read_split(const Node& split) {
  std::string expression = split_expression(split);
  const SplitPattern* pattern = known_pattern(expression);
  if (pattern == nullptr) {
    split.refuse(str("the split expression \"", printable(expression, 200), "\" is not known (known: those of ",
                     join(known_pattern_names(), " and "), ")"));
  }
  return pattern;
}

struct ByteLevelSettings {
  bool add_prefix_space, use_regex;
};

ByteLevelSettings read_byte_level(const Node& node) {
  node.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return {node.flag("add_prefix_space", true), node.flag("use_regex", true)};
}

void read_bpe_pre_tokenizer(const Node& node, TokenizerFile& file) {
  if (node.type() == "ByteLevel") {
    ByteLevelSettings settings = read_byte_level(node);
    if (!settings.use_regex)
      node.refuse("ByteLevel alone with use_regex false (text that is not split) is not supported");
    file.add_prefix_space = settings.add_prefix_space;
    file.pattern = &gpt2_pattern();
    return;
  }
  if (node.type() != "Sequence") {
    node.refuse(str("the pre-tokenizer ", printable(node.type()),
                    " is not supported (known: ByteLevel, or a Sequence of ", "Split and ByteLevel)"));
  }
  node.only({"type", "pretokenizers"});
  std::vector<Node> parts = node.children("pretokenizers");
  if (parts.size() == 1 && parts[0].type() == "ByteLevel") return read_bpe_pre_tokenizer(parts[0], file);
  for (const Node& part : parts) {
    if (part.type() != "Split" && part.type() != "ByteLevel") {
      part.refuse(str("the pre-tokenizer ", printable(part.type()), " is not supported (known: Split, ByteLevel)"));
    }
  }
  if (parts.size() != 2 || parts[0].type() != "Split" || parts[1].type() != "ByteLevel") {
    node.refuse("a Sequence must be one Split, then ByteLevel");
  }
  file.pattern = read_split(parts[0]);
  ByteLevelSettings settings = read_byte_level(parts[1]);
  if (settings.use_regex) parts[1].refuse("use_regex true after a Split is not supported");
  if (settings.add_prefix_space) parts[1].refuse("add_prefix_space true after a Split is not supported");
}

// Post-processors may only be ones that add nothing: what stands around a prompt is the template's business.
void check_post_processor(const Node& node) {
  std::string type = node.type();
  if (type == "ByteLevel") {
    read_byte_level(node);
  } else if (type == "Sequence") {
    node.only({"type", "processors"});
    for (const Node& part : node.children("processors")) check_post_processor(part);
  } else if (type == "TemplateProcessing") {
    node.only({"type", "single", "pair", "special_tokens"});
    std::vector<Node> single = node.children("single");
    bool plain = single.size() == 1 && single[0].find("Sequence") != nullptr;
    if (!plain)
      single.empty()
          ? node.wrong("\"single\" is empty")
          : single[0].refuse("a template that adds special tokens is not supported; put them into the prompt template");
  } else {
    node.refuse(str("the post-processor ", printable(type),
                    " is not supported (known: ByteLevel, TemplateProcessing, Sequence)"));
  }
}

int32_t checked_id(const Node& node, const Json& value, const std::string& token) {
  if (!value.is_number_integer()) node.wrong(str("the id of \"", printable(token), "\" is not an integer"));
  bool huge = value.is_number_unsigned() && value.get<uint64_t>() >= static_cast<uint64_t>(kMaxTokens);
  int64_t id = huge ? kMaxTokens : value.get<int64_t>();
  if (id < 0 || id >= kMaxTokens) {
    node.wrong(str("the id of \"", printable(token), "\" is ", value.dump(), "; expected 0 .. ", kMaxTokens - 1));
  }
  return static_cast<int32_t>(id);
}

// The tables were read already (text/tokenizer_json.h); an empty one of the right type stands in their place.
void check_tables(const Node& model, bool merges, const TokenizerFile& file) {
  Node vocab = model.child("vocab");
  if (!vocab.json.is_object()) vocab.wrong(str("expected an object, got ", vocab.json.type_name()));
  if (file.vocab.empty()) vocab.wrong("it is empty");
  if (!merges) return;
  Node list = model.child("merges");
  if (!list.json.is_array()) list.wrong(str("expected a list, got ", list.json.type_name()));
}

void read_bpe(const Node& root, const Node& model, TokenizerFile& file) {
  model.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  // unk_token and fuse_unk never matter: every byte has a token (checked when the table is built).
  if (const Json* dropout = model.find("dropout"); dropout != nullptr && *dropout != 0.0) {
    model.refuse("dropout is not supported: the same text must always give the same ids");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text(key).empty()) model.refuse(str(key, " is not supported"));
  }
  if (model.flag("byte_fallback", false))
    model.refuse("byte_fallback is not supported (only byte-level vocabularies are)");
  file.ignore_merges = model.flag("ignore_merges", false);
  check_tables(model, true, file);
  read_bpe_pre_tokenizer(root.child("pre_tokenizer"), file);
  Node decoder = root.child("decoder");
  if (decoder.type() != "ByteLevel") {
    decoder.refuse(str("the decoder ", printable(decoder.type()), " is not supported (BPE: ByteLevel)"));
  }
  read_byte_level(decoder);
}

void read_word_level(const Node& root, const Node& model, TokenizerFile& file) {
  model.only({"type", "vocab", "unk_token"});
  file.model = TokenizerFile::Model::word_level;
  file.unknown = model.text("unk_token");
  check_tables(model, false, file);
  Node split = root.child("pre_tokenizer");
  if (split.type() != "Split") {
    split.refuse(str("the pre-tokenizer ", printable(split.type()), " is not supported (WordLevel: Split)"));
  }
  std::vector<std::string> words;
  for (const auto& [word, id] : file.vocab) {
    bool special =
        std::any_of(file.added.begin(), file.added.end(), [&](const AddedToken& t) { return t.content == word; });
    if (!special && word != file.unknown) words.push_back(word);
  }
  std::string expected = word_pattern(words);
  if (split_expression(split) != expected) {
    split.refuse(
        str("WordLevel needs the Split expression that lists the words of the vocabulary, longest first; expected \"",
            printable(expected, 60), "\""));
  }
  Node decoder = root.child("decoder");
  if (decoder.type() != "Fuse") {
    decoder.refuse(str("the decoder ", printable(decoder.type()), " is not supported (WordLevel: Fuse)"));
  }
  decoder.only({"type"});
}

AddedToken read_added_token(const Node& node) {
  node.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.content = node.text("content");
  if (token.content.empty()) node.wrong("an empty added token");
  if (token.content.size() > kMaxAddedBytes) node.wrong(str("an added token longer than ", kMaxAddedBytes, " bytes"));
  token.special = node.flag("special", false);
  token.normalized = node.flag("normalized", !token.special);
  token.lstrip = node.flag("lstrip", false);
  token.rstrip = node.flag("rstrip", false);
  token.single_word = node.flag("single_word", false);
  return token;
}

void read_added_tokens(const Node& root, TokenizerFile& file) {
  if (root.find("added_tokens") == nullptr) return;
  for (const Node& node : root.children("added_tokens")) {
    AddedToken token = read_added_token(node);
    token.id = checked_id(node, node.child("id").json, token.content);
    file.added.push_back(std::move(token));
  }
}

// A special token of tokenizer_config.json: a string, or an object with "content".
std::optional<std::string> special_token(const Node& config, const char* key) {
  const Json* value = config.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return Node{*value, str(config.where, ": ", key)}.text("content");
  return config.text(key);
}

// transformers adds the tokens of added_tokens_decoder to those of tokenizer.json; so does this.
void read_added_tokens_decoder(const Node& config, TokenizerFile& file) {
  const Json* table = config.find("added_tokens_decoder");
  if (table == nullptr) return;
  if (!table->is_object()) config.wrong("added_tokens_decoder is not an object");
  for (const auto& [key, value] : table->items()) {
    Node node{value, str(config.where, ": added_tokens_decoder.", printable(key))};
    AddedToken token = read_added_token(node);
    bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) node.wrong("the key is not an id");
    token.id = checked_id(node, std::stoll(key), token.content);
    auto same = [&](const AddedToken& t) { return t.id == token.id || t.content == token.content; };
    auto known = std::find_if(file.added.begin(), file.added.end(), same);
    if (known == file.added.end()) {
      file.added.push_back(std::move(token));
    } else if (known->id != token.id || known->content != token.content) {
      node.wrong(str("\"", printable(token.content), "\" has id ", token.id, ", but tokenizer.json says that id ",
                     known->id, " is \"", printable(known->content), "\""));
    }
  }
}

void read_config(const std::string& path, TokenizerFile& file) {
  if (!exists(path)) return;
  Json json = read_json(path, kFileLimit);
  Node config{json, path, ": "};
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
  Node root{json, file.where, ": "};
  if (!json.is_object()) root.wrong(str("expected an object, got ", json.type_name()));
  root.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
             "decoder", "model"});
  // What the last caller of the library asked for, saved with the file; transformers resets both at every call.
  if (root.find("truncation") != nullptr) {
    root.child("truncation").only({"direction", "max_length", "strategy", "stride"});
  }
  if (root.find("padding") != nullptr) {
    root.child("padding").only({"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  }
  read_added_tokens(root, file);
  if (root.find("normalizer") != nullptr) read_normalizer(root.child("normalizer"), file);
  if (root.find("post_processor") != nullptr) check_post_processor(root.child("post_processor"));
  Node model = root.child("model");
  std::string type = model.text("type", model.find("merges") != nullptr ? "BPE" : "");
  if (type == "BPE") {
    read_bpe(root, model, file);
  } else if (type == "WordLevel") {
    read_word_level(root, model, file);
  } else {
    model.refuse(str("the model ", printable(type), " is not supported (known: BPE, WordLevel)"));
  }
  read_config(path_join(directory, "tokenizer_config.json"), file);
  read_config(path_join(directory, "special_tokens_map.json"), file);
  return file;
}

}  // namespace ucas
