// `ucas check TOKENIZER --ids FILE`: the comparison with ids that another tokenizer wrote.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/commands/check.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

using Ids = std::vector<int32_t>;

std::string token_shown(const Tokenizer& tokenizer, int32_t id) {
  bool known = id >= 0 && id < tokenizer.vocab_size();
  return str(id, known ? str(" \"", printable(tokenizer.token_text(id)), "\"") : " (not a token)");
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

}  // namespace

int compare_ids(const std::string& directory, const CheckOptions& options) {
  const Tokenizer tokenizer = Tokenizer::load(directory);
  const std::string bytes = read_file(options.ids);
  constexpr auto special = Tokenizer::Special::parse;
  int64_t rows = 0, identical = 0, line_number = 0;
  for (size_t at = 0; at < bytes.size();) {
    size_t end = std::min(bytes.find('\n', at), bytes.size());
    std::string_view line = std::string_view(bytes).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (trim(line).empty()) continue;
    Row row = read_row(line, str(options.ids, ":", line_number));
    Ids got = options.prompt ? tokenizer.encode_prompt(row.text, special) : tokenizer.encode(row.text, special);
    std::string decoded = options.decode ? replace_invalid(tokenizer.decode(row.ids)) : "";
    bool decodes = !options.decode || decoded == row.decoded;
    ++rows;
    if (got == row.ids && decodes) {
      ++identical;
      continue;
    }
    if (rows - identical > options.show) continue;
    out(str("row ", rows, row.name, ", line ", line_number, ":\n"));
    if (got != row.ids) out(describe(tokenizer, row, got));
    if (!decodes) {
      out(str("  the ids decode to \"", printable(decoded, 400), "\"\n  expected          \"",
              printable(row.decoded, 400), "\"\n"));
    }
  }
  if (rows == 0) throw Error(ErrorKind::empty, str(options.ids, ": no rows"));
  out(str(identical, " of ", rows, " identical\n"));
  return identical == rows ? kDone : kDiffers;
}

}  // namespace ucas
