#include "text/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "text/unicode/unicode.h"

namespace ucas {

void refuse_part(const JsonObject& node, const std::string& what) {
  throw Error(ErrorKind::tokenizer, str(node.place(), ": ", what));
}

std::string type_of_part(const JsonObject& node) {
  std::string name = node.text_or("type", "");
  if (name.empty()) node.refuse("no \"type\"");
  return name;
}

void only_settings(const JsonObject& node, std::initializer_list<std::string_view> known) {
  for (const std::string& key : node.keys()) {
    if (std::ranges::find(known, key) == known.end()) {
      refuse_part(node, str("unknown setting \"", printable(key), "\""));
    }
  }
}

namespace {

constexpr size_t kMostSteps = 64;         // of one list of parts
constexpr size_t kLongestContent = 1024;  // bytes that a part puts in place of others

[[noreturn]] void refuse_kind(const JsonObject& node, const char* what, const char* known) {
  refuse_part(node, str("the ", what, " ", printable(type_of_part(node)), " is not supported (known: ", known, ")"));
}

// The parts of a Sequence.
std::vector<JsonObject> steps_of(const JsonObject& node, const char* key) {
  std::vector<JsonObject> steps = node.children(key);
  if (steps.size() > kMostSteps) refuse_part(node, str(steps.size(), " ", key, ", expected at most ", kMostSteps));
  return steps;
}

// What Replace puts; it stands in the text once for each place that fits.
std::string content_of(const JsonObject& node) {
  std::string content = node.text_or("content", "");
  if (content.size() > kLongestContent) {
    refuse_part(node, str("content of ", content.size(), " bytes, expected at most ", kLongestContent));
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
  refuse_part(node, str("the behavior \"", printable(name),
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
    refuse_part(node, str("the prepend_scheme \"", printable(scheme), "\" is not known (known: always, first, never)"));
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
  if (byte_level) refuse_part(node, str("the pre-tokenizer ", printable(type), " after ByteLevel is not supported"));
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

// What stands before and after the text ("A"). A template around that of an earlier one goes outside of it.
void read_template(const JsonObject& node, TokenizerFile& file) {
  only_settings(node, {"type", "single", "pair", "special_tokens"});
  std::vector<int32_t> before, after;
  int64_t texts = 0;
  for (const JsonObject& part : node.children("single")) {
    only_settings(part, {"Sequence", "SpecialToken"});
    if (part.has("Sequence")) {
      ++texts;
      continue;
    }
    std::vector<int32_t>& side = texts == 0 ? before : after;
    const std::vector<int32_t> ids = template_ids(node, some_text(part.child("SpecialToken"), "id"));
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (texts != 1) node.refuse(str("\"single\" holds the text ", texts, " times, expected once"));
  file.prefix.insert(file.prefix.begin(), before.begin(), before.end());
  file.suffix.insert(file.suffix.end(), after.begin(), after.end());
}

// Replace, ByteFallback, Fuse, Strip: SentencePiece's kind. In another order they would say something else.
void read_piece_decoder(const JsonObject& node, int& reached, DecoderRules& rules) {
  static const char* const order[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
  const std::string type = type_of_part(node);
  const auto place = static_cast<int>(std::ranges::find(order, type) - order);
  if (place == 4)
    refuse_kind(node, "decoder", "ByteLevel, Metaspace, or a Sequence of Replace, ByteFallback, Fuse, Strip");
  if (place == 3 && reached != 2) refuse_part(node, "the decoder Strip is supported only right after Fuse");
  if (place < reached) refuse_part(node, str("the decoder ", type, " after ", order[reached], " is not supported"));
  reached = place;
  if (type == "Replace") {
    only_settings(node, {"type", "pattern", "content"});
    PatternText pattern = pattern_text(node);
    if (pattern.regex) refuse_part(node, "a decoder that replaces matches of an expression is not supported");
    rules.replacements.emplace_back(std::move(pattern.text), content_of(node));
  } else if (type == "Strip") {
    only_settings(node, {"type", "content", "start", "stop"});
    if (node.whole_or("stop", 0) != 0) refuse_part(node, "a decoder that strips the end (stop) is not supported");
    rules.strip = one_character(node, "content", "");
    rules.strip_start = node.whole_or("start", 0, 0, 1 << 20);
  } else {
    only_settings(node, {"type"});
    if (type == "ByteFallback") rules.byte_fallback = true;
  }
}

}  // namespace

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

std::string isolated_expression(const JsonObject& split) {
  only_settings(split, {"type", "pattern", "behavior", "invert"});
  if (behavior_of(split, "") != SplitBehavior::isolated) refuse_part(split, "WordLevel needs the behavior Isolated");
  if (split.truth_or("invert", false)) refuse_part(split, "WordLevel and invert are not supported together");
  const PatternText pattern = pattern_text(split);
  if (!pattern.regex) refuse_part(split, "WordLevel needs a Regex pattern");
  return pattern.text;
}

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
    refuse_part(node, str("the decoder ", printable(type), " is not supported with a pre-tokenizer ",
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

}  // namespace ucas
