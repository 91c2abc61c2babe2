#include "text/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "text/tokenizer/added_tokens.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

constexpr int64_t kFileLimit = int64_t{256} << 20;
constexpr int64_t kMaxTokens = 4 << 20;
constexpr size_t kMaxTokenBytes = 4096;
constexpr size_t kMaxAddedBytes = 512;  // bounds the work per byte of text

// The parts that say how text is cut and joined: normalizer, pre_tokenizer, post_processor, decoder.

std::string type_of_part(const JsonObject& node) {
  std::string name = node.text_or("type", "");
  if (name.empty()) node.refuse("no \"type\"");
  return name;
}

// Any other key is a setting that this program does not know, and would silently ignore.
void only_settings(const JsonObject& node, std::initializer_list<std::string_view> known) {
  for (const std::string& key : node.keys()) {
    if (std::ranges::find(known, key) == known.end()) {
      node.refuse(str("unknown setting \"", printable(key), "\""));
    }
  }
}

constexpr size_t kMostSteps = 64;         // of one list of parts
constexpr size_t kLongestContent = 1024;  // bytes that a part puts in place of others

[[noreturn]] void refuse_kind(const JsonObject& node, const char* what, const char* known) {
  node.refuse(str("the ", what, " ", printable(type_of_part(node)), " is not supported (known: ", known, ")"));
}

// The parts of a Sequence.
std::vector<JsonObject> steps_of(const JsonObject& node, const char* key) {
  std::vector<JsonObject> steps = node.children(key);
  if (steps.size() > kMostSteps) node.refuse(str(steps.size(), " ", key, ", expected at most ", kMostSteps));
  return steps;
}

// What Replace puts; it is in the text once for each match.
std::string content_of(const JsonObject& node) {
  std::string content = node.text_or("content", "");
  if (content.size() > kLongestContent) {
    node.refuse(str("content of ", content.size(), " bytes, expected at most ", kLongestContent));
  }
  return content;
}

// The text of a key that may not be empty.
std::string some_text(const JsonObject& node, const char* key) {
  std::string text = node.text_or(key, "");
  if (text.empty()) node.refuse(str("\"", key, "\" is empty or absent"));
  return text;
}

std::string one_character(const JsonObject& node, const char* key, const std::string& otherwise) {
  std::string text = node.text_or(key, otherwise);
  if (text.empty() || char_at(text, 0).length != text.size()) {
    node.refuse(str("\"", key, "\" is \"", printable(text), "\", expected one character"));
  }
  return text;
}

// {"String": "..."} or {"Regex": "..."}.
struct PatternText {
  bool regex;
  std::string text;
  std::string where;
};

PatternText pattern_text(const JsonObject& node) {
  const JsonObject pattern = node.child("pattern");
  only_settings(pattern, {"Regex", "String"});
  const bool regex = pattern.has("Regex");
  if (regex == pattern.has("String")) pattern.refuse("expected either \"Regex\" or \"String\"");
  return {regex, some_text(pattern, regex ? "Regex" : "String"), pattern.place()};
}

SplitBehavior behavior_of(const JsonObject& node, const std::string& otherwise) {
  static const std::pair<const char*, SplitBehavior> known[] = {
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next}};
  const std::string name = node.text_or("behavior", otherwise);
  for (const auto& [spelling, behavior] : known) {
    if (name == spelling) return behavior;
  }
  node.refuse(str("the behavior \"", printable(name),
                  "\" is not known (known: Isolated, Removed, Contiguous, MergedWithPrevious, MergedWithNext)"));
}

// ByteLevel's own expression.
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct ByteLevelSettings {
  bool add_prefix_space, use_regex;
};

ByteLevelSettings read_byte_level(const JsonObject& node) {
  only_settings(node, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return {node.truth_or("add_prefix_space", true), node.truth_or("use_regex", true)};
}

SplitStep read_split(const JsonObject& node) {
  only_settings(node, {"type", "pattern", "behavior", "invert"});
  SplitStep step;
  PatternText pattern = pattern_text(node);
  if (!pattern.regex) {
    step.pattern = std::move(pattern.text);
  } else {
    step.pattern = Regex(pattern.text, pattern.where);
  }
  step.behavior = behavior_of(node, "");
  step.invert = node.truth_or("invert", false);
  return step;
}

SplitStep read_digits(const JsonObject& node) {
  only_settings(node, {"type", "individual_digits"});
  const bool each = node.truth_or("individual_digits", false);
  return {&is_numeric, each ? SplitBehavior::isolated : SplitBehavior::contiguous};
}

MetaspaceStep read_metaspace(const JsonObject& node) {
  only_settings(node, {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  MetaspaceStep step;
  step.replacement = one_character(node, "replacement", "\xE2\x96\x81");
  const std::string scheme =
      node.text_or("prepend_scheme", node.truth_or("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    node.refuse(str("the prepend_scheme \"", printable(scheme), "\" is not known (known: always, first, never)"));
  }
  if (scheme != "never" && !node.truth_or("add_prefix_space", true)) {
    node.refuse(str("add_prefix_space is false, but prepend_scheme says ", scheme));
  }
  step.scheme = scheme == "always"  ? PrependScheme::always
                : scheme == "first" ? PrependScheme::first
                                    : PrependScheme::never;
  step.split = node.truth_or("split", true);
  return step;
}

void read_part(const JsonObject& node, Splitter& splitter, bool& byte_level) {
  const std::string type = type_of_part(node);
  if (byte_level) node.refuse(str("the pre-tokenizer ", printable(type), " after ByteLevel is not supported"));
  if (type == "Split") {
    splitter.add(read_split(node));
  } else if (type == "Digits") {
    splitter.add(read_digits(node));
  } else if (type == "Punctuation") {
    only_settings(node, {"type", "behavior"});
    splitter.add(SplitStep{&is_punctuation, behavior_of(node, "Isolated")});
  } else if (type == "Metaspace") {
    splitter.add(read_metaspace(node));
  } else if (type == "ByteLevel") {
    const ByteLevelSettings settings = read_byte_level(node);
    if (settings.add_prefix_space) splitter.add(PrefixSpaceStep{});
    if (settings.use_regex) splitter.add(SplitStep{Regex(kGpt2, "ByteLevel")});
    byte_level = true;
  } else if (type == "Sequence") {
    only_settings(node, {"type", "pretokenizers"});
    for (const JsonObject& part : steps_of(node, "pretokenizers")) read_part(part, splitter, byte_level);
  } else {
    refuse_kind(node, "pre-tokenizer", "ByteLevel, Split, Digits, Punctuation, Metaspace, Sequence");
  }
}

// Ids of a special token of a template.
std::vector<int32_t> template_ids(const JsonObject& root, const std::string& name) {
  const JsonObject table = root.child("special_tokens");
  if (!table.has(name)) root.refuse(str("the template names \"", printable(name), "\", which special_tokens lacks"));
  return table.child(name).ids("ids", kMaxTokens);
}

// The tokens before the text ("A"); those after it would end the prompt. A template around that of an earlier one goes
// outside of it.
void read_template(const JsonObject& node, TokenizerFile& file) {
  only_settings(node, {"type", "single", "pair", "special_tokens"});
  std::vector<int32_t> before;
  int64_t texts = 0;
  for (const JsonObject& part : node.children("single")) {
    only_settings(part, {"Sequence", "SpecialToken"});
    if (part.has("Sequence")) {
      ++texts;
      continue;
    }
    const std::vector<int32_t> ids = template_ids(node, some_text(part.child("SpecialToken"), "id"));
    if (texts == 0) before.insert(before.end(), ids.begin(), ids.end());
  }
  if (texts != 1) node.refuse(str("\"single\" holds the text ", texts, " times, expected once"));
  file.prefix.insert(file.prefix.begin(), before.begin(), before.end());
}

// Replace, ByteFallback, Fuse, Strip: SentencePiece's kind. In another order they would say something else.
void read_piece_decoder(const JsonObject& node, int& reached, DecoderRules& rules) {
  static const char* const order[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
  const std::string type = type_of_part(node);
  const auto place = static_cast<int>(std::ranges::find(order, type) - order);
  if (place == 4)
    refuse_kind(node, "decoder", "ByteLevel, Metaspace, or a Sequence of Replace, ByteFallback, Fuse, Strip");
  if (place == 3 && reached != 2) node.refuse("the decoder Strip is supported only right after Fuse");
  if (place < reached) node.refuse(str("the decoder ", type, " after ", order[reached], " is not supported"));
  reached = place;
  if (type == "Replace") {
    only_settings(node, {"type", "pattern", "content"});
    PatternText pattern = pattern_text(node);
    if (pattern.regex) node.refuse("a decoder that replaces matches of an expression is not supported");
    rules.replacements.emplace_back(std::move(pattern.text), content_of(node));
  } else if (type == "Strip") {
    only_settings(node, {"type", "content", "start", "stop"});
    if (node.whole_or("stop", 0) != 0) node.refuse("a decoder that strips the end (stop) is not supported");
    rules.strip = one_character(node, "content", "");
    rules.strip_start = node.whole_or("start", 0, 0, 1 << 20);
  } else {
    only_settings(node, {"type"});
    if (type == "ByteFallback") rules.byte_fallback = true;
  }
}

void read_normalizer(const JsonObject& node, Normalizer& normalizer) {
  const std::string type = type_of_part(node);
  if (type == "NFC") {
    only_settings(node, {"type"});
    normalizer.add(NfcStep{});
  } else if (type == "Prepend") {
    only_settings(node, {"type", "prepend"});
    normalizer.add(PrependStep{some_text(node, "prepend")});
  } else if (type == "Replace") {
    only_settings(node, {"type", "pattern", "content"});
    PatternText pattern = pattern_text(node);
    ReplaceStep step{pattern.text, content_of(node)};
    if (pattern.regex) step.pattern = Regex(pattern.text, pattern.where);
    normalizer.add(std::move(step));
  } else if (type == "Sequence") {
    only_settings(node, {"type", "normalizers"});
    for (const JsonObject& part : steps_of(node, "normalizers")) read_normalizer(part, normalizer);
  } else {
    refuse_kind(node, "normalizer", "NFC, Prepend, Replace, Sequence");
  }
}

// {"Regex": ...} or {"String": ...} of a Split that isolates its matches, as the word-level form needs it.
std::string isolated_expression(const JsonObject& split) {
  only_settings(split, {"type", "pattern", "behavior", "invert"});
  if (behavior_of(split, "") != SplitBehavior::isolated) split.refuse("WordLevel needs the behavior Isolated");
  if (split.truth_or("invert", false)) split.refuse("WordLevel and invert are not supported together");
  const PatternText pattern = pattern_text(split);
  if (!pattern.regex) split.refuse("WordLevel needs a Regex pattern");
  return pattern.text;
}

// True: it ends in ByteLevel, so that the tokens of the model are spelled in the byte alphabet.
bool read_pre_tokenizer(const JsonObject& node, Splitter& splitter) {
  bool byte_level = false;
  read_part(node, splitter, byte_level);
  return byte_level;
}

void read_post_processor(const JsonObject& node, TokenizerFile& file) {
  const std::string type = type_of_part(node);
  if (type == "ByteLevel") {
    read_byte_level(node);  // moves offsets, no ids
  } else if (type == "TemplateProcessing") {
    read_template(node, file);
  } else if (type == "Sequence") {
    only_settings(node, {"type", "processors"});
    for (const JsonObject& part : steps_of(node, "processors")) read_post_processor(part, file);
  } else {
    refuse_kind(node, "post-processor", "ByteLevel, TemplateProcessing, Sequence");
  }
}

void read_decoder(const JsonObject& node, bool byte_level, DecoderRules& rules) {
  const std::string type = type_of_part(node);
  if (byte_level != (type == "ByteLevel")) {
    node.refuse(str("the decoder ", printable(type), " is not supported with a pre-tokenizer ",
                    byte_level ? "that ends in ByteLevel" : "without ByteLevel"));
  }
  if (byte_level) {
    read_byte_level(node);
    rules.byte_level = true;
  } else if (type == "Metaspace") {
    const MetaspaceStep step = read_metaspace(node);
    rules.replacements.emplace_back(step.replacement, " ");
    if (step.scheme != PrependScheme::never) rules.first_without = step.replacement;
  } else {
    int reached = 0;
    if (type != "Sequence") return read_piece_decoder(node, reached, rules);
    only_settings(node, {"type", "decoders"});
    for (const JsonObject& part : steps_of(node, "decoders")) read_piece_decoder(part, reached, rules);
  }
}

// The model.

void read_vocab(const JsonObject& model, TokenizerFile& file) {
  const JsonObject vocab = model.child("vocab");
  if (vocab.json().empty()) vocab.refuse("it is empty");
  if (std::ssize(vocab.json()) > kMaxTokens) vocab.refuse(str("more than ", kMaxTokens, " tokens"));
  for (const auto& [token, id] : vocab.json().items()) {
    if (token.empty()) vocab.refuse("an empty token");
    if (token.size() > kMaxTokenBytes) vocab.refuse(str("a token longer than ", kMaxTokenBytes, " bytes"));
    const bool whole = id.is_number_integer();
    if (!whole || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMaxTokens) {
      vocab.refuse(str("the id of \"", printable(token), "\" is ", whole ? "" : "not an integer: ",
                       printable(json_text(id), 40), "; expected 0 .. ", kMaxTokens - 1));
    }
    file.vocab.emplace_back(token, id.get<int32_t>());
  }
}

// Each merge as "a b" or ["a", "b"].
void read_merges(const JsonObject& model, TokenizerFile& file) {
  const Json* merges = model.find("merges");
  if (merges == nullptr || !merges->is_array()) model.refuse("merges", "a list of pairs");
  if (std::ssize(*merges) > kMaxTokens) model.refuse(str("merges: more than ", kMaxTokens));
  for (const Json& merge : *merges) {
    std::vector<std::string> parts;
    if (merge.is_string()) parts = split(merge.get_ref<const std::string&>(), ' ');
    if (merge.is_array() && std::ranges::all_of(merge, [](const Json& part) { return part.is_string(); })) {
      parts = merge.get<std::vector<std::string>>();
    }
    if (parts.size() != 2) {
      model.refuse(str("merges[", file.merges.size(), "] is not two tokens: ", printable(json_text(merge))));
    }
    file.merges.emplace_back(std::move(parts[0]), std::move(parts[1]));
  }
}

bool read_no_decoder(const JsonObject& root, TokenizerFile& file) {
  file.decoder.spaced = root.find("decoder") == nullptr;
  return file.decoder.spaced;
}

void read_bpe(const JsonObject& root, const JsonObject& model, TokenizerFile& file) {
  only_settings(model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                        "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (const Json* dropout = model.find("dropout"); dropout != nullptr && *dropout != 0.0) {
    model.refuse("dropout is not supported: the same text must always give the same ids");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(key, "").empty()) model.refuse(str(key, " is not supported"));
  }
  file.ignore_merges = model.truth_or("ignore_merges", false);
  file.byte_fallback = model.truth_or("byte_fallback", false);
  file.fuse_unknown = model.truth_or("fuse_unk", false);
  file.unknown = model.text_or("unk_token", "");
  read_vocab(model, file);
  read_merges(model, file);
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
  read_vocab(model, file);
  const JsonObject split = root.child("pre_tokenizer");
  if (type_of_part(split) != "Split") {
    split.refuse(str("the pre-tokenizer ", printable(type_of_part(split)), " is not supported (WordLevel: Split)"));
  }
  std::vector<std::string> words;
  for (const auto& [word, id] : file.vocab) {
    bool special =
        std::any_of(file.added.begin(), file.added.end(), [&](const AddedToken& t) { return t.content == word; });
    if (!special && word != file.unknown) words.push_back(word);
  }
  std::string expected = word_pattern(words);
  if (isolated_expression(split) != expected) {
    split.refuse(
        str("WordLevel needs the Split expression that lists the words of the vocabulary, longest first; "
            "expected \"",
            printable(expected, 60), "\""));
  }
  if (read_no_decoder(root, file)) return;
  const JsonObject decoder = root.child("decoder");
  if (type_of_part(decoder) != "Fuse") {
    decoder.refuse(str("the decoder ", printable(type_of_part(decoder)), " is not supported (WordLevel: Fuse)"));
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
  const Json json = parse_json_rows(read_file(file.where, kFileLimit), file.where);
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
    model.refuse(str("the model ", printable(type), " is not supported (known: BPE, WordLevel)"));
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
