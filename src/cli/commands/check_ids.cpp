// `ucas check TOKENIZER --ids FILE`: the comparison with ids that another tokenizer wrote.
#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/commands/check.h"
#include "data/rows/jsonl.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

using Ids = std::vector<int32_t>;

// Where two lists part: a few tokens before the place, a few after, and what stands there.
std::string describe(const Tokenizer& tokenizer, const std::string& text, const Ids& expected, const Ids& got) {
  const auto common = static_cast<size_t>(std::ranges::mismatch(expected, got).in1 - expected.begin());
  const auto around = [&](const Ids& ids) {
    const size_t begin = common > 4 ? common - 4 : 0, end = std::min(ids.size(), common + 8);
    std::string line = begin > 0 ? "..." : "";
    for (size_t i = begin; i < end; ++i) line += str(line.empty() ? "" : " ", ids[i]);
    const bool known = common < ids.size() && ids[common] < tokenizer.vocab_size();
    return str(line, end < ids.size() ? " ..." : "",
               known ? str("  (\"", printable(tokenizer.token_text(ids[common])), "\")") : "");
  };
  return str("  text      \"", printable(text, 400), "\"\n  expected  ", around(expected), "\n  got       ",
             around(got), "\n  they part at token ", common, "\n");
}

}  // namespace

int compare_ids(const std::string& directory, const CheckOptions& options) {
  const Tokenizer tokenizer = Tokenizer::load(directory);
  constexpr auto special = Tokenizer::Special::parse;
  int64_t differing = 0;
  const LineCounts counts = read_json_lines(options.ids, BadRows::stop, [&](const JsonRow& row) {
    const JsonObject fields(row.value, row.where);
    const std::string text = fields.text("text"), expected = fields.text_or("decoded", text);
    const Ids ids = ids_field(row, "ids", INT32_MAX);
    const Ids got = options.prompt ? tokenizer.encode_prompt(text, special) : tokenizer.encode(text, special);
    // Where normalising changes the text, decoding gives the normalised one ("decoded").
    const std::string decoded = options.decode ? replace_invalid(tokenizer.decode(ids)) : expected;
    if ((got == ids && decoded == expected) || ++differing > options.show) return;
    out(row.where + ":\n");
    if (got != ids) out(describe(tokenizer, text, ids, got));
    if (decoded == expected) return;
    out(str("  the ids decode to \"", printable(decoded, 400), "\"\n  expected          \"", printable(expected, 400),
            "\"\n"));
  });
  out(str(counts.rows - differing, " of ", counts.rows, " identical\n"));
  return differing == 0 ? kDone : kDiffers;
}

}  // namespace ucas
