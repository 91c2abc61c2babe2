// `ucas tokenize`: text to ids and back, and the comparison with ids that another tokenizer wrote.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "hf/hub.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

using Ids = std::vector<int32_t>;

struct Config {
  std::string tokenizer;
  std::string check;
  bool decode = false;
  bool tokens = false;
  bool as_text = false;
  bool prompt = false;
  int64_t show = 5;

  void fields(Fields& f) {
    f.field("tokenizer", tokenizer, OptionNames::tokenizer,
            "directory with tokenizer.json (and tokenizer_config.json)");
    f.field("check", check, "JSONL file of rows {text, ids} to compare with, instead of reading standard input");
    f.field("decode", decode, "decode ids to text; with --check, also compare the decoded text");
    f.field("tokens", tokens, "print the text of each token next to the token id");
    f.field("as-text", as_text, "treat special tokens in the input as plain text");
    f.field("prompt", prompt, "add the post-processor's prefix (BOS) to each text, as for a prompt");
    f.field("show", show, Range{0, 1e6}, "number of differences to print with --check");
  }
};

std::string token_shown(const Tokenizer& tokenizer, int32_t id) {
  bool known = id >= 0 && id < tokenizer.vocab_size();
  return str(id, known ? str(" \"", printable(tokenizer.token_text(id)), "\"") : " (not a token)");
}

std::string ids_line(const Ids& ids) {
  std::string line;
  for (int32_t id : ids) line += str(line.empty() ? "" : " ", id);
  return line;
}

Ids encoded(const Tokenizer& tokenizer, const Config& config, std::string_view text) {
  auto special = config.as_text ? Tokenizer::Special::as_text : Tokenizer::Special::parse;
  return config.prompt ? tokenizer.encode_prompt(text, special) : tokenizer.encode(text, special);
}

struct Row {
  std::string name, text, decoded;
  Ids ids;
};

Json parse_row(std::string_view line, const std::string& where) try {
  return parse_json(line, where);
} catch (const Error& error) {
  throw Error(ErrorKind::data_line, error.what());
}

Row read_row(std::string_view line, const std::string& where) {
  Json json = parse_row(line, where);
  auto wrong = [&](const char* what) {
    throw Error(ErrorKind::data_line, str(where, ": ", what, "; expected {\"text\": \"...\", \"ids\": [1, 2, 3]}"));
  };
  if (!json.is_object()) wrong("not an object");
  if (!json.contains("text") || !json["text"].is_string()) wrong("no string \"text\"");
  if (!json.contains("ids") || !json["ids"].is_array()) wrong("no list \"ids\"");
  Row row;
  row.text = json["text"].get<std::string>();
  for (const Json& id : json["ids"]) {
    bool fits = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!fits) wrong("\"ids\" holds something that is not a token id");
    row.ids.push_back(id.get<int32_t>());
  }
  // Where normalising changes the text, decoding gives the normalised one.
  bool has_decoded = json.contains("decoded") && json["decoded"].is_string();
  row.decoded = has_decoded ? json["decoded"].get<std::string>() : row.text;
  if (json.contains("id") && json["id"].is_string())
    row.name = str(" (", printable(json["id"].get<std::string>()), ")");
  return row;
}

std::string describe(const Tokenizer& tokenizer, const Row& row, const Ids& got) {
  std::string text = str("  text      \"", printable(row.text, 400), "\"\n");
  size_t common = std::mismatch(row.ids.begin(), row.ids.end(), got.begin(), got.end()).first - row.ids.begin();
  auto around = [&](const Ids& ids) {  // a few tokens before the place, a few after
    size_t begin = common > 4 ? common - 4 : 0, end = std::min(ids.size(), common + 8);
    std::string line = begin > 0 ? "..." : "";
    for (size_t i = begin; i < end; ++i) line += str(line.empty() ? "" : " ", ids[i]);
    return line + (end < ids.size() ? " ..." : "");
  };
  auto at = [&](const Ids& ids) {
    return common < ids.size() ? token_shown(tokenizer, ids[common]) : std::string("the end");
  };
  std::string before = tokenizer.decode(std::span(row.ids).first(common));
  return text + str("  expected  ", around(row.ids), "\n  got       ", around(got), "\n  they part at token ", common,
                    ", after \"", printable(before.substr(before.size() - std::min<size_t>(before.size(), 40))),
                    "\": expected ", at(row.ids), ", got ", at(got), "\n");
}

int check(const Tokenizer& tokenizer, const Config& config) {
  std::string bytes = read_file(config.check);
  int64_t rows = 0, identical = 0, line_number = 0;
  for (size_t at = 0; at < bytes.size();) {
    size_t end = std::min(bytes.find('\n', at), bytes.size());
    std::string_view line = std::string_view(bytes).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (trim(line).empty()) continue;
    Row row = read_row(line, str(config.check, ":", line_number));
    Ids got = encoded(tokenizer, config, row.text);
    std::string decoded = config.decode ? replace_invalid(tokenizer.decode(row.ids)) : "";
    bool decodes = !config.decode || decoded == row.decoded;
    ++rows;
    if (got == row.ids && decodes) {
      ++identical;
      continue;
    }
    if (rows - identical > config.show) continue;
    out(str("row ", rows, row.name, ", line ", line_number, ":\n"));
    if (got != row.ids) out(describe(tokenizer, row, got));
    if (!decodes) {
      out(str("  the ids decode to \"", printable(decoded, 400), "\"\n  expected          \"",
              printable(row.decoded, 400), "\"\n"));
    }
  }
  if (rows == 0) throw Error(ErrorKind::empty, str(config.check, ": no rows"));
  out(str(identical, " of ", rows, " identical\n"));
  return identical == rows ? kDone : kDiffers;
}

Ids parse_ids(const std::string& line, const Tokenizer& tokenizer, int64_t line_number) {
  Ids ids;
  for (const std::string& word : split(line, ' ')) {
    if (trim(word).empty()) continue;
    std::string digits(trim(word));
    bool number = digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!number || std::stoll(digits) >= tokenizer.vocab_size()) {
      throw Error(ErrorKind::data_line, str("standard input:", line_number, ": \"", printable(digits),
                                            "\" is not a token id; expected 0 .. ", tokenizer.vocab_size() - 1));
    }
    ids.push_back(static_cast<int32_t>(std::stoll(digits)));
  }
  return ids;
}

int convert(const Tokenizer& tokenizer, const Config& config) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    Ids ids = config.decode ? parse_ids(line, tokenizer, number) : encoded(tokenizer, config, line);
    std::string text;
    if (config.tokens) {
      for (int32_t id : ids) text += token_shown(tokenizer, id) + "\n";
    } else {
      text = (config.decode ? tokenizer.decode(ids) : ids_line(ids)) + "\n";
    }
    if (!out(text)) break;
  }
  return kDone;
}

}  // namespace

int run_tokenize(const Words& words) {
  CommandLine line = parse_command_line(words, {"decode", "tokens", "as-text", "prompt"});
  Config config;
  ucas::apply(config, line.settings);  // qualified: std::apply would be found too
  if (!line.positionals.empty()) {
    throw Error(ErrorKind::usage, str("tokenize: unexpected \"", printable(line.positionals[0]),
                                      "\"; the directory is given as --tokenizer DIR, the text on standard input"));
  }
  if (config.tokenizer.empty()) throw Error(ErrorKind::usage, "tokenize: --tokenizer DIR is missing");
  resolve_hub_names(config);
  Tokenizer tokenizer = Tokenizer::load(config.tokenizer);
  return config.check.empty() ? convert(tokenizer, config) : check(tokenizer, config);
}

std::string options_tokenize() { return options_help(Config{}); }

}  // namespace ucas
