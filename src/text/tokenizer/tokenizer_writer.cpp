#include "text/tokenizer/tokenizer_writer.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "text/split/pretokenizer.h"
#include "text/tokenizer/tokenizer_file.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/byte_level.h"

namespace ucas {

namespace {

constexpr int64_t kTokenizerLimit = int64_t{256} << 20;
constexpr size_t kLongestToken = 4096, kLongestAdded = 512;  // bytes, as text/tokenizer/tokenizer_file reads them

using Tables = TokenizerTablesOfOthers;

OrderedJson byte_level_step(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

OrderedJson split_step(const char* expression) {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}

OrderedJson digits_step() { return {{"type", "Digits"}, {"individual_digits", true}}; }

OrderedJson sequence_of(std::vector<OrderedJson> steps) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

OrderedJson split_then_bytes(const char* expression) {
  return sequence_of({split_step(expression), byte_level_step(false)});
}

constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N})"
                                R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

OrderedJson gpt2_steps() { return byte_level_step(true); }
OrderedJson smollm_steps() { return sequence_of({digits_step(), byte_level_step(true)}); }
OrderedJson qwen2_steps() { return split_then_bytes(qwen2_pattern().expression); }
OrderedJson llama3_steps() { return split_then_bytes(llama3_pattern().expression); }
OrderedJson tekken_steps() { return split_then_bytes(kTekken); }
OrderedJson deepseek_coder_steps() {
  return sequence_of({split_step(R"([\r\n])"), split_step(R"(\s?\p{L}+)"), split_step(R"(\s?\p{P}+)"),
                      split_step("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), digits_step(), byte_level_step(false)});
}

// How a text is cut, by GGML's name.
struct Splitting {
  std::string_view name;
  OrderedJson (*steps)();
  bool nfc = false;            // a normalizer before it
  bool ignore_merges = false;  // a piece that is a token is not merged from its bytes
  bool begins = false;         // where the file does not say whether a text is begun with a token
};

constexpr Splitting kSplittings[] = {
    {"gpt-2", gpt2_steps},
    {"smollm", smollm_steps},
    {"starcoder", smollm_steps},
    {"qwen2", qwen2_steps, true},
    {"deepseek-r1-qwen", qwen2_steps},
    {"llama-bpe", llama3_steps, false, true, true},
    {"llama-v3", llama3_steps, false, true, true},
    {"llama3", llama3_steps, false, true, true},
    {"tekken", tekken_steps, false, true, true},
    {"deepseek-coder", deepseek_coder_steps},
};

const Splitting& find_splitting(const Tables& tables) {
  const Splitting* row = std::ranges::find(kSplittings, tables.pre, &Splitting::name);
  if (row != std::end(kSplittings)) return *row;
  std::vector<std::string> names;
  for (const Splitting& splitting : kSplittings) names.emplace_back(splitting.name);
  throw Error(ErrorKind::unsupported, str(tables.where, ": how it cuts a text is ",
                                          tables.pre.empty() ? "not named" : str("\"", printable(tables.pre), "\""),
                                          " (tokenizer.ggml.pre); ucas knows ", join(names, ", ")));
}

// What a pre_tokenizer does, without what changes no token: where offsets are trimmed.
std::string essence(const Json& step) {
  if (!step.is_object()) return "";
  const std::string type = step.value("type", "");
  if (type == "Sequence") {
    std::string all;
    for (const Json& inner : step.value("pretokenizers", Json::array())) all += essence(inner);
    return all;
  }
  if (type == "ByteLevel") {
    return str("bytes ", step.value("use_regex", true), step.value("add_prefix_space", true), ";");
  }
  if (type == "Digits") return str("digits ", step.value("individual_digits", false), ";");
  return json_text(step) + ";";
}

bool is_nfc(const Json& normalizer) {
  if (!normalizer.is_object()) return false;
  if (normalizer.value("type", "") == "NFC") return true;
  const Json inner = normalizer.value("normalizers", Json::array());
  return inner.size() == 1 && is_nfc(inner[0]);
}

// GGML's name of how a tokenizer.json cuts a text. Where GGML takes a piece that is a token as it is and the file
// merges it from its bytes, the two agree as long as merges make every token, as those of a trained vocabulary do.
std::string splitting_name(const std::string& path) {
  TokenizerTables tables;
  const Json json = read_tokenizer_json(path, kTokenizerLimit, tables);
  const Json pre = json.value("pre_tokenizer", Json()), normalizer = json.value("normalizer", Json());
  const bool ignore_merges = json.value("model", Json::object()).value("ignore_merges", false);
  for (const Splitting& splitting : kSplittings) {
    if (essence(Json::parse(splitting.steps().dump())) == essence(pre) && splitting.nfc == is_nfc(normalizer) &&
        (splitting.nfc || normalizer.is_null()) && (splitting.ignore_merges || !ignore_merges)) {
      return std::string(splitting.name);
    }
  }
  throw Error(ErrorKind::unsupported,
              str(printable(path, 400),
                  ": llama.cpp has no name for how it cuts a text (pre_tokenizer, normalizer, ignore_merges) "
                  "among those that ucas knows; a GGUF file is not made of it"));
}

bool is_added(TokenKind kind) { return kind == TokenKind::control || kind == TokenKind::user_defined; }
bool is_added(const Tables& tables, size_t id) {
  return is_added(tables.kinds[id]) || (!tables.scores.empty() && tables.kinds[id] == TokenKind::unknown);
}

[[noreturn]] void refuse(const Tables& tables, const std::string& what) {
  throw Error(ErrorKind::tokenizer, str(tables.where, ": ", what));
}

// Rows of the embedding beyond the vocabulary are padded with names of their own.
void drop_padding(Tables& tables) {
  while (!tables.tokens.empty() && tables.kinds.back() == TokenKind::unused &&
         tables.tokens.back() == str("[PAD", tables.tokens.size() - 1, "]")) {
    tables.tokens.pop_back();
    tables.kinds.pop_back();
  }
}

void check_tokens(const Tables& tables) {
  if (tables.tokens.empty()) refuse(tables, "no tokens");
  if (static_cast<int64_t>(tables.tokens.size()) > kMaxTokens)
    refuse(tables, str(tables.tokens.size(), " tokens, at most ", kMaxTokens));
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < tables.tokens.size(); ++id) {
    const std::string& token = tables.tokens[id];
    const auto fail = [&](const std::string& what) {
      refuse(tables, str("token ", id, " (\"", printable(token), "\"): ", what));
    };
    const bool added = is_added(tables, id);
    const size_t longest = added ? kLongestAdded : kLongestToken;
    if (token.empty()) fail("it is empty");
    if (token.size() > longest) fail(str(token.size(), " bytes, at most ", longest));
    if (!seen.insert(token).second)
      throw Error(ErrorKind::dup_key, str(tables.where, ": the token \"", printable(token), "\" stands twice"));
    if (!added && tables.scores.empty() && !bytes_of_spelling(token)) fail("not spelled in the byte-level alphabet");
  }
  for (size_t i = 0; i < tables.merges.size(); ++i) {
    const std::string& merge = tables.merges[i];
    const size_t space = merge.find(' ');
    const auto fail = [&](const char* what) {
      refuse(tables, str("merge ", i, " (\"", printable(merge), "\"): ", what));
    };
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) fail("expected two tokens");
    const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
    if (!seen.contains(left) || !seen.contains(right)) fail("a part that is no token");
    if (!seen.contains(left + right)) fail("its result is no token");
  }
}

// A special token of tokenizer_config.json by its id.
const std::string& token_of(const Tables& tables, const char* what, int64_t id) {
  if (id >= 0 && id < static_cast<int64_t>(tables.tokens.size())) return tables.tokens[static_cast<size_t>(id)];
  refuse(tables, str("the id of its ", what, " token is ", id, ", there are ", tables.tokens.size(), " tokens"));
}

OrderedJson added_tokens(const Tables& tables) {
  OrderedJson added = OrderedJson::array();
  for (size_t id = 0; id < tables.tokens.size(); ++id) {
    if (!is_added(tables, id)) continue;
    added.push_back({{"id", id},
                     {"content", tables.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", tables.kinds[id] != TokenKind::user_defined}});
  }
  return added;
}

// What stands around a text: null, or the tokens that begin and end it.
OrderedJson template_step(const Tables& tables, bool begins) {
  OrderedJson single = OrderedJson::array(), tokens = OrderedJson::object();
  const auto put = [&](int64_t id, const char* what) {
    const std::string& token = token_of(tables, what, id);
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    tokens[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
  };
  if (begins && tables.begin) put(*tables.begin, "first");
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (tables.ends.value_or(false) && tables.end) put(*tables.end, "last");
  if (tokens.empty()) return nullptr;
  OrderedJson pair = single, second = single;
  for (OrderedJson& part : second) {
    if (part.contains("Sequence")) part["Sequence"]["id"] = "B";
    part.begin().value()["type_id"] = 1;
    pair.push_back(part);
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

OrderedJson post_processor(const Tables& tables, bool begins) {
  const OrderedJson step = byte_level_step(true), around = template_step(tables, begins);
  if (around.is_null()) return step;
  return {{"type", "Sequence"}, {"processors", {step, around}}};
}

// The merges that SentencePiece's scores come to, as transformers makes them: each way to put a token together from
// two, the highest score first. Tokens that are no pieces of text take no part.
std::vector<std::pair<std::string, std::string>> merges_of_scores(const Tables& tables) {
  std::unordered_map<std::string_view, size_t> ids;
  const auto is_piece = [&](size_t id) {
    return tables.kinds[id] == TokenKind::normal || tables.kinds[id] == TokenKind::user_defined;
  };
  for (size_t id = 0; id < tables.tokens.size(); ++id)
    if (is_piece(id)) ids.emplace(tables.tokens[id], id);
  struct Merge {
    size_t whole, left, right;     // ids
    size_t left_size, right_size;  // characters
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < tables.tokens.size(); ++id) {
    if (!is_piece(id)) continue;
    const std::string_view token = tables.tokens[id];
    const auto begins = [](char byte) { return (byte & 0xC0) != 0x80; };  // a character
    const size_t characters = static_cast<size_t>(std::ranges::count_if(token, begins)), first = merges.size();
    for (size_t at = 1, before = 1; at < token.size(); ++at) {
      if (!begins(token[at])) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left != ids.end() && right != ids.end())
        merges.push_back({id, left->second, right->second, before, characters - before});
      ++before;
    }
    std::sort(merges.begin() + static_cast<int64_t>(first), merges.end(),
              [](const Merge& a, const Merge& b) { return std::pair(a.left, a.right) < std::pair(b.left, b.right); });
  }
  std::ranges::stable_sort(merges, std::ranges::greater(), [&](const Merge& m) {
    return std::tuple(tables.scores[m.whole], m.left_size, m.right_size);
  });
  std::vector<std::pair<std::string, std::string>> list;
  list.reserve(merges.size());
  for (const Merge& m : merges) list.emplace_back(tables.tokens[m.left], tables.tokens[m.right]);
  return list;
}

constexpr const char* kSpacePiece = "\u2581";

// Gemma's components around the tables.
OrderedJson sentencepiece_normalizer() {
  return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpacePiece}};
}
OrderedJson sentencepiece_steps() {
  return {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
}
OrderedJson sentencepiece_decoder() {
  const OrderedJson space = {{"type", "Replace"}, {"pattern", {{"String", kSpacePiece}}}, {"content", " "}};
  return {{"type", "Sequence"}, {"decoders", {space, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
}

// All but the two tables, which can be large: they are written as text.
struct Parts {
  OrderedJson normalizer, pre_tokenizer, post_processor, decoder, unknown;
  bool bytes_fall_back = false, ignore_merges = false;  // the first with fuse_unk
};

Parts byte_level_parts(const Tables& tables) {
  const Splitting& splitting = find_splitting(tables);
  return {.normalizer = splitting.nfc ? OrderedJson{{"type", "NFC"}} : OrderedJson(nullptr),
          .pre_tokenizer = splitting.steps(),
          .post_processor = post_processor(tables, tables.begins.value_or(splitting.begins)),
          .decoder = byte_level_step(true),
          .unknown = nullptr,
          .ignore_merges = splitting.ignore_merges};
}

Parts sentencepiece_parts(const Tables& tables) {
  return {.normalizer = sentencepiece_normalizer(),
          .pre_tokenizer = sentencepiece_steps(),
          .post_processor = template_step(tables, tables.begins.value_or(true)),
          .decoder = sentencepiece_decoder(),
          .unknown = tables.unknown ? OrderedJson(token_of(tables, "unknown", *tables.unknown)) : OrderedJson(nullptr),
          .bytes_fall_back = true};
}

std::string tokenizer_json(const Tables& tables, const Parts& parts) {
  std::string text =
      str("{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":", added_tokens(tables).dump(),
          ",\n\"normalizer\":", parts.normalizer.dump(), ",\n\"pre_tokenizer\":", parts.pre_tokenizer.dump(),
          ",\n\"post_processor\":", parts.post_processor.dump(), ",\n\"decoder\":", parts.decoder.dump(),
          ",\n\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":", parts.unknown.dump(),
          ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":", parts.bytes_fall_back,
          ",\"byte_fallback\":", parts.bytes_fall_back, ",\"ignore_merges\":", parts.ignore_merges, ",\n\"vocab\":{");
  for (size_t id = 0; id < tables.tokens.size(); ++id) {
    append(text, str(id == 0 ? "" : ",\n", OrderedJson(tables.tokens[id]).dump(), ":", id));
  }
  text += "},\n\"merges\":[";
  // A piece of SentencePiece's kind may hold a space: such merges are pairs.
  if (parts.bytes_fall_back) {
    const auto merges = merges_of_scores(tables);
    for (size_t i = 0; i < merges.size(); ++i) {
      append(text, str(i == 0 ? "" : ",\n", OrderedJson{merges[i].first, merges[i].second}.dump()));
    }
  }
  for (size_t i = 0; i < tables.merges.size(); ++i) {
    append(text, str(i == 0 ? "" : ",\n", OrderedJson(tables.merges[i]).dump()));
  }
  return text + "]}}\n";
}

std::string config_json(const Tables& tables) {
  OrderedJson config;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  const std::pair<const char*, std::optional<int64_t>> special[] = {
      {"bos_token", tables.begin}, {"eos_token", tables.end}, {"pad_token", tables.pad}, {"unk_token", tables.unknown}};
  for (const auto& [key, id] : special) {
    if (id) config[key] = token_of(tables, key, *id);
  }
  if (tables.longest > 0) config["model_max_length"] = tables.longest;
  config["clean_up_tokenization_spaces"] = false;
  return config.dump(2) + "\n";
}

}  // namespace

TokenizerTexts write_tokenizer(TokenizerTablesOfOthers tables) {
  const bool pieces = !tables.scores.empty();
  if (!pieces) find_splitting(tables);
  if (pieces && tables.scores.size() != tables.tokens.size())
    refuse(tables, str(tables.scores.size(), " scores for ", tables.tokens.size(), " tokens"));
  if (tables.kinds.size() != tables.tokens.size())
    refuse(tables, str(tables.kinds.size(), " kinds of tokens (token_type) for ", tables.tokens.size(), " tokens"));
  drop_padding(tables);
  check_tokens(tables);
  const Parts parts = pieces ? sentencepiece_parts(tables) : byte_level_parts(tables);
  return {tokenizer_json(tables, parts), config_json(tables), tables.chat_template};
}

TokenizerTablesOfOthers tables_for_others(const std::string& directory, int64_t rows) {
  const TokenizerFile file = read_tokenizer_file(directory);
  const auto unsupported = [&](const std::string& what) {
    throw Error(ErrorKind::unsupported, str(printable(file.where, 400), ": ", what, "; a GGUF file is not made of it"));
  };
  if (file.model != TokenizerFile::Model::byte_level_bpe) unsupported("no byte-level BPE");
  if (file.vocab.empty() || rows < 1) unsupported("no tokens");
  Tables tables;
  tables.where = file.where;
  tables.pre = splitting_name(file.where);
  tables.tokens.resize(static_cast<size_t>(rows));
  tables.kinds.assign(static_cast<size_t>(rows), TokenKind::unused);
  const auto put = [&](int64_t id, const std::string& token, TokenKind kind) {
    if (id >= rows) refuse(tables, str("token ", id, " of an embedding of ", rows, " rows"));
    tables.tokens[static_cast<size_t>(id)] = token;
    tables.kinds[static_cast<size_t>(id)] = kind;
  };
  for (const auto& [token, id] : file.vocab) put(id, token, TokenKind::normal);
  for (const AddedToken& token : file.added) {
    put(token.id, token.content, token.special ? TokenKind::control : TokenKind::user_defined);
  }
  for (size_t id = 0; id < tables.tokens.size(); ++id) {
    if (tables.kinds[id] == TokenKind::unused) tables.tokens[id] = str("[PAD", id, "]");
  }
  for (const auto& [left, right] : file.merges) tables.merges.push_back(str(left, " ", right));
  const ChatFiles chat = read_chat_files(directory);
  tables.chat_template = chat.text;
  const auto id_of = [&](const std::string& text) -> std::optional<int64_t> {
    const auto at = std::ranges::find(tables.tokens, text);
    if (at == tables.tokens.end()) return std::nullopt;
    return at - tables.tokens.begin();
  };
  for (const auto& [key, text] : chat.tokens) {
    if (key == "bos_token") tables.begin = id_of(text);
    if (key == "eos_token") tables.end = id_of(text);
    if (key == "pad_token") tables.pad = id_of(text);
    if (key == "unk_token") tables.unknown = id_of(text);
  }
  const auto around = [&](const std::vector<int32_t>& ids, std::optional<int64_t>& named, const char* what) {
    if (ids.empty()) return false;
    if (ids.size() > 1 || (named && *named != ids.front()))
      unsupported(str("what its post_processor puts ", what, " a text is not the one token that is named so"));
    named = ids.front();
    return true;
  };
  tables.begins = around(file.prefix, tables.begin, "before");
  tables.ends = around(file.suffix, tables.end, "after");
  return tables;
}

void save_tokenizer(const TokenizerTexts& texts, const std::string& directory) {
  write_file(path_join(directory, "tokenizer.json"), texts.tokenizer);
  write_file(path_join(directory, "tokenizer_config.json"), texts.config);
  if (!texts.chat_template.empty()) write_file(path_join(directory, "chat_template.jinja"), texts.chat_template);
}

}  // namespace ucas
