// ucas verify: grades rows of a file with the verifier that training uses.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "data/jsonl.h"
#include "verify/verifier.h"

namespace ucas {

namespace {

struct VerifyConfig {
  std::string out;
  Extract extract = Extract::strict;
  BadRows bad_rows = BadRows::stop;

  void fields(Fields& f) {
    f.field("out", out, "file for the verdicts, a JSON line per row: id, verdict, answer, reason");
    f.choice("extract", extract, {"strict", "lenient", "bare"},
             "where the answer is: in the last box; there or after the usual phrases; the whole prediction");
    f.choice("bad_rows", bad_rows, {"stop", "skip"},
             "a bad row ends the run, or is left out and counted (at most 1 %)");
  }
};

struct Row {
  std::string id, prediction;
  std::vector<std::string> gold;
  int expected = -1;  // 1 right, 0 wrong, -1 not said
};

std::vector<Row> read_rows(const std::string& path, BadRows bad_rows) {
  std::vector<Row> rows;
  read_json_lines(path, bad_rows, [&](const JsonRow& line) {
    Row row;
    const Json& value = line.value;
    row.id = first_key(line, {"id"}).empty() ? str(line.line)
             : value.at("id").is_string()    ? value.at("id").get<std::string>()
                                             : value.at("id").dump();
    auto prediction = value.find("prediction");
    if (prediction == value.end() || !prediction->is_string()) {
      throw Error("data_line", str(line.where, ": \"prediction\": expected text"));
    }
    row.prediction = prediction->get<std::string>();
    if (!value.contains("gold")) throw Error("data_line", str(line.where, ": the field \"gold\" is missing"));
    if (!value.at("gold").is_null()) row.gold = answer_field(line, value.at("gold"), "gold", true);
    auto expected = value.find("expected");
    if (expected != value.end() && !expected->is_null()) {
      if (!expected->is_boolean()) throw Error("data_line", str(line.where, ": \"expected\": expected true or false"));
      row.expected = expected->get<bool>() ? 1 : 0;
    }
    rows.push_back(std::move(row));
  });
  return rows;
}

void write_verdicts(const std::string& path, const std::vector<Row>& rows, const std::vector<Verdict>& verdicts) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    OrderedJson line;
    line["id"] = rows[i].id;
    line["verdict"] = name_of(verdicts[i].kind);
    line["answer"] = verdicts[i].answer;
    line["reason"] = verdicts[i].reason;
    // An answer may be cut inside a character; broken bytes become U+FFFD.
    text += line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }
  write_file(path, text);
}

std::string share_line(const std::string& name, int64_t count, int64_t all) {
  double share = all == 0 ? 0 : static_cast<double>(count) / static_cast<double>(all);
  return str("  ", pad_right(name, 16), pad_left(grouped(count), 9), pad_left(percent(share), 9), "\n");
}

std::string summary(const std::vector<Row>& rows, const std::vector<Verdict>& verdicts, double seconds) {
  int64_t kinds[4] = {}, known = 0, agree = 0, false_positive = 0, false_negative = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    ++kinds[static_cast<int>(verdicts[i].kind)];
    if (rows[i].expected < 0) continue;
    bool paid = verdicts[i].kind == VerdictKind::equal;
    ++known;
    agree += paid == (rows[i].expected == 1);
    false_positive += paid && rows[i].expected == 0;
    false_negative += !paid && rows[i].expected == 1;
  }
  auto all = static_cast<int64_t>(rows.size());
  std::string text;
  for (int kind = 0; kind < 4; ++kind) text += share_line(name_of(static_cast<VerdictKind>(kind)), kinds[kind], all);
  if (known > 0) {
    text += str("where \"expected\" says what is right (", grouped(known), " rows)\n");
    text += share_line("agree", agree, known);
    text += share_line("false positives", false_positive, known);
    text += share_line("false negatives", false_negative, known);
  }
  double rate = static_cast<double>(all) / std::max(seconds, 1e-9);
  return text + str("  ", grouped(static_cast<int64_t>(rate)), " verdicts/s\n");
}

}  // namespace

std::string help_verify() {
  return str(
      "Usage: ucas verify FILE.jsonl [--key value ...]\n\n"
      "Grades answers. Each row has\n"
      "  gold         the right answer: text, a number, or a list of which any one counts\n"
      "  prediction   the response of a model\n"
      "  id           optional; the line number where it is missing\n"
      "  expected     optional true or false: adds agreement, false positives and false negatives\n\n"
      "Verdicts: equal; unequal; unparseable (no answer found, or not in a form that can be compared);\n"
      "over_budget (too long). Only equal is right.\n\n",
      options_help(VerifyConfig{}));
}

int run_verify(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  VerifyConfig config;
  ucas::apply(config, line.settings);
  if (line.positionals.size() != 1) {
    throw Error("usage",
                str("verify: expected one FILE.jsonl, got ", line.positionals.size(), "; see ucas verify --help"));
  }
  const std::string& path = line.positionals[0];
  std::vector<Row> rows = read_rows(path, config.bad_rows);
  std::vector<Answer> answers;
  for (const Row& row : rows) answers.push_back({row.prediction, &row.gold});
  double began = now_seconds();
  std::vector<Verdict> verdicts = make_math_verifier(config.extract)->grade(answers);
  double seconds = now_seconds() - began;
  if (!config.out.empty()) write_verdicts(config.out, rows, verdicts);
  static constexpr const char* kNames[] = {"strict", "lenient", "bare"};
  out(str(printable(path, 400), ": ", grouped(static_cast<int64_t>(rows.size())), " answers, extract ",
          kNames[static_cast<int>(config.extract)], "\n", summary(rows, verdicts, seconds)));
  return kDone;
}

}  // namespace ucas
