// `ucas check FILE... --summary` and `ucas check TOKENIZER --ids FILE`.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/commands/check.h"
#include "data/problems.h"
#include "data/rows/jsonl.h"
#include "hf/hub.h"
#include "results/table.h"
#include "text/tokenizer/tokenizer.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

// A file's problems, or why it has none.
struct DataFindings {
  FileSummary file;
  ProblemsSummary problems;
  std::vector<Problem> first;
  Lengths tokens;
  std::string refusal;
};

DataFindings look_into(const std::string& path, const CheckOptions& options, const Tokenizer* tokenizer) {
  DataFindings found{.file = summarize_file(path), .problems = {}, .first = {}, .tokens = {}, .refusal = {}};
  try {
    ProblemOptions reading;
    reading.labels = false;
    reading.columns = options.columns;
    const std::vector<Problem> problems = read_problems({path}, reading);
    check_tests(problems);
    found.problems = summarize_problems(problems);
    for (const Problem& problem : problems) {
      if (static_cast<int64_t>(found.first.size()) < options.show) found.first.push_back(problem);
      if (tokenizer != nullptr) found.tokens.add(std::ssize(tokenizer->encode(problem.text)));
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data_line) throw;
    found.refusal = error.what();
  }
  return found;
}

std::string share_of(int64_t n, int64_t all) { return str(grouped(n), n == all ? "" : str(" of ", grouped(all))); }

std::string lengths_text(const Lengths& lengths) {
  return lengths.empty()
             ? ""
             : str(grouped(lengths.at(0)), " .. ", grouped(lengths.at(0.5)), " .. ", grouped(lengths.at(1)));
}

// "812 whole number, 3 prose", the most frequent first.
std::string counts_text(const std::map<std::string, int64_t>& counts, size_t most = 8) {
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [name, n] : counts) order.emplace_back(-n, name);
  std::ranges::sort(order);
  std::vector<std::string> parts;
  for (const auto& [n, name] : order) parts.push_back(str(grouped(-n), " ", printable(name, 60)));
  if (parts.size() > most) {
    const size_t more = parts.size() - most;
    parts.resize(most);
    parts.push_back(str("and ", more, " more"));
  }
  return join(parts, ", ");
}

std::string columns_text(const FileSummary& file) {
  Table table{.head = {"column", "type", "rows", "empty", "length: least .. median .. most", "first"},
              .rows = {},
              .align = "llrrll"};
  for (const ColumnSummary& column : file.columns) {
    std::vector<std::string> types;
    for (const auto& [type, n] : column.types) types.push_back(type);
    table.rows.push_back({printable(column.name, 40), join(types, " or "), grouped(column.rows), grouped(column.empty),
                          lengths_text(column.lengths), printable(column.example, 40)});
  }
  return table.text("  ");
}

std::string problems_text(const DataFindings& found) {
  if (!found.refusal.empty()) return str("\nas problems: not read: ", found.refusal, "\n");
  const ProblemsSummary& p = found.problems;
  std::string text = str("\nas problems: ", grouped(p.problems), "\n  right answers   ", counts_text(p.kinds), "\n");
  if (p.alternatives.size() > 1 || !p.alternatives.contains("1")) {
    text += str("  alternatives    ", counts_text(p.alternatives), " (rows, right answers of each)\n");
  }
  text += str("  sources         ", counts_text(p.sources), "\n  question        ", lengths_text(p.questions),
              " characters");
  if (!found.tokens.empty()) {
    text += str("; ", lengths_text(found.tokens), " tokens, 99 % within ", grouped(found.tokens.at(0.99)),
                ", before the template");
  }
  text += "\n";
  if (p.conversations > 0) text += str("  conversations   ", share_of(p.conversations, p.problems), "\n");
  if (p.with_system > 0) text += str("  system message  ", share_of(p.with_system, p.problems), "\n");
  text += str("  duplicates      ", grouped(p.repeated_questions), " questions repeated",
              p.contradictions > 0 ? str(", ", grouped(p.contradictions), " of them with another answer") : "",
              p.repeated_ids > 0 ? str("; ", grouped(p.repeated_ids), " ids repeated") : "", "\n");
  for (const std::string& example : p.examples) text += str("    ", example, "\n");
  for (const Problem& problem : found.first) {
    text += str("\n  ", printable(problem.id, 80), "\n    question: ", printable(trim(problem.text), 400),
                "\n    answer:   ", problem.gold.empty() ? "(none)" : printable(join(problem.gold, " | "), 200), "\n");
  }
  return text;
}

using Ids = std::vector<int32_t>;

// Where two lists part: a few tokens before the place, a few after, and the tokens there.
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

int summarize_data(const std::vector<std::string>& files, const CheckOptions& options) {
  std::optional<Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) tokenizer = Tokenizer::load(options.tokenizer);
  bool first = true;
  for (const std::string& path : data_files(files)) {
    const DataFindings found = look_into(path, options, tokenizer ? &*tokenizer : nullptr);
    out(str(std::exchange(first, false) ? "" : "\n", printable(path, 400), ": ", grouped(found.file.rows), " rows\n\n",
            columns_text(found.file), problems_text(found)));
  }
  return kDone;
}

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
