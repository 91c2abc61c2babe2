#include "verify/audit/verify_rows.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "data/problems.h"
#include "results/table.h"
#include "verify/grader.h"
#include "verify/math/read/expr.h"
#include "verify/math/read/parser.h"
#include "verify/registry.h"

namespace ucas {

namespace {

constexpr size_t kBlock = 32;  // answers a thread takes at once

double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[noreturn]] void refuse(const JsonRow& line, const std::string& what) {
  throw Error(ErrorKind::data_line, str(line.where, ": ", what));
}

std::string optional_text(const JsonRow& line, const char* key) {
  auto value = line.value.find(key);
  if (value == line.value.end() || value->is_null()) return "";
  if (!value->is_string()) refuse(line, str("\"", key, "\": expected text"));
  return value->get<std::string>();
}

// {"match_types": [..], "precision": N}: how a suite of Math-Verify's kind configures its extractor. Its other options
// (language, default_parse ..) have no counterpart here.
void read_config(const JsonRow& line, VerifyRow& row) {
  auto config = line.value.find("config");
  if (config == line.value.end() || config->is_null()) return;
  if (!config->is_object()) refuse(line, "\"config\": expected an object");
  auto types = config->find("match_types");
  if (types != config->end()) {
    if (!types->is_array()) refuse(line, "\"config\": \"match_types\": expected a list of texts");
    bool letter = false, other = false;
    for (const Json& type : *types) {
      if (!type.is_string()) refuse(line, "\"config\": \"match_types\": expected a list of texts");
      (type.get<std::string>().ends_with("Letters") ? letter : other) = true;
    }
    row.math.letter = letter && !other;
  }
  auto relations = config->find("allow_set_relation_comp");
  row.math.relation_for_set = relations != config->end() && relations->is_boolean() && relations->get<bool>();
  auto precision = config->find("precision");
  if (precision == config->end() || precision->is_null()) return;
  if (!precision->is_number_integer() || precision->get<int64_t>() < 0 || precision->get<int64_t>() > 1000) {
    refuse(line, "\"config\": \"precision\": expected a number of decimals, 0 to 1000");
  }
  row.math.precision = precision->get<int32_t>();
}

// What every row has besides its right answer.
VerifyRow read_prediction(const JsonRow& line) {
  VerifyRow row;
  const Json& value = line.value;
  row.id = first_key(line, {"id"}).empty() ? str(line.line)
           : value.at("id").is_string()    ? value.at("id").get<std::string>()
                                           : json_text(value.at("id"));
  auto prediction = value.find("prediction");
  if (prediction == value.end()) prediction = value.find("response");
  if (prediction == value.end()) {
    refuse(line, "no \"prediction\" and no \"response\": expected the response of a model as text under one of these");
  }
  if (!prediction->is_string()) {
    refuse(line, str("\"", value.contains("prediction") ? "prediction" : "response", "\": expected text"));
  }
  row.prediction = prediction->get<std::string>();
  auto expected = value.find("expected");
  if (expected != value.end() && !expected->is_null()) {
    if (!expected->is_boolean()) refuse(line, "\"expected\": expected true or false");
    row.expected = expected->get<bool>() ? 1 : 0;
  }
  row.group = optional_text(line, "group");
  return row;
}

VerifyRow read_row(const JsonRow& line, bool kinds) {
  VerifyRow row = read_prediction(line);
  const Json& value = line.value;
  // As problem files and `ucas generate` have it.
  const char* key = value.contains("gold") || !value.contains("answer") ? "gold" : "answer";
  if (!value.contains(key)) refuse(line, "neither \"gold\" nor \"answer\" is there: the right answer");
  if (!value.at(key).is_null()) row.gold = answer_field(line, value.at(key), key, true);
  for (std::string& gold : row.gold) gold = marked_answer(gold);
  if (!kinds) return row;
  row.kind = optional_text(line, "kind");
  if (!row.kind.empty() && row.kind != "bare" && row.kind != "output" && row.kind != "test") {
    refuse(line, str("\"kind\": expected bare, output or test, got ", printable(row.kind, 40),
                     " (with --extract no row needs a kind)"));
  }
  if (row.kind == "test") read_config(line, row);
  return row;
}

constexpr size_t kListed = 300;  // bytes of a text in a listing

void add_share(Table& table, const std::string& name, int64_t count, int64_t all) {
  table.add({name, Cell::count(count), share_text(count, all)});
}

std::string group_table(const std::map<std::string, Tally>& groups) {
  Table table{{"group", "answers", "agree", "false pos", "false neg"}};
  for (const auto& [name, tally] : groups) {
    table.add({group_name(name), Cell::count(tally.known), percent(tally.agreement()),
               Cell::count(tally.false_positive), Cell::count(tally.false_negative)});
  }
  return table.text("  ");
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return str(fixed(seconds * 1e6, 1), " us");
  if (seconds < 1) return str(fixed(seconds * 1e3, 2), " ms");
  return str(fixed(seconds, 2), " s");
}

std::string speed_lines(const Grading& grading) {
  auto count = static_cast<double>(grading.verdicts.size());
  double cpu = 0;
  std::vector<double> sorted = grading.cpu_seconds;
  for (double seconds : sorted) cpu += seconds;
  std::sort(sorted.begin(), sorted.end());
  auto at = [&](double share) {  // nearest rank
    auto rank = static_cast<size_t>(share * count);
    return duration(sorted.empty() ? 0 : sorted[std::min(rank, sorted.size() - 1)]);
  };
  std::string text = str("  ", grouped(static_cast<int64_t>(count / std::max(grading.seconds, 1e-9))), " verdicts/s\n");
  if (cpu == 0) return text;  // processes of their own did it
  return str(text, "  ", grouped(static_cast<int64_t>(count / std::max(cpu, 1e-9))),
             " verdicts per CPU second; each p50 ", at(0.5), ", p99 ", at(0.99), ", max ", at(1), "\n");
}

struct Counts {
  int64_t kinds[4] = {};  // by VerdictKind
  Tally all;
  std::map<std::string, Tally> groups;
};

Counts counts_of(std::span<const VerifyRow> rows, const Grading& grading) {
  Counts counts;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Verdict& verdict = grading.verdicts[i];
    ++counts.kinds[static_cast<int>(verdict.kind)];
    counts.all.add(rows[i], verdict);
    if (rows[i].expected >= 0) counts.groups[rows[i].group].add(rows[i], verdict);
  }
  return counts;
}

constexpr size_t kShown = 1000;  // bytes of a text

const char* name_of(math::ParseStatus status) {
  constexpr const char* names[] = {"ok", "empty", "unparseable", "over budget"};
  return names[static_cast<int>(status)];
}

Reading read(std::string_view text, bool is_response, Extract extract) {
  Reading reading;
  if (is_response) {
    math::Extracted extracted = math::extract_answer(text, extract);
    reading.how = extracted.how;
    if (!extracted.found) {
      reading.tree = "nothing";
      return reading;
    }
    text = extracted.answer;
  }
  reading.text = text.substr(0, kAnswerLimit);
  math::ParseOptions options;
  options.explain = true;
  math::ParseResult parsed = math::parse_math(text, options);
  reading.rewrites = std::move(parsed.rewrites);
  if (parsed.status == math::ParseStatus::ok) {
    reading.tree = math::to_string(parsed.tree);
  } else {
    reading.tree = str(name_of(parsed.status), parsed.reason.empty() ? "" : ": ", parsed.reason);
  }
  return reading;
}

void add_lines(std::vector<std::string>& lines, const char* name, const Reading& reading) {
  lines.push_back(str(pad_right(name, 9), printable(reading.text, kShown),
                      reading.how.empty() ? "" : str("  (", printable(reading.how, kShown), ")")));
  for (const std::string& rewrite : reading.rewrites) lines.push_back(str("  rewrite  ", printable(rewrite, kShown)));
  lines.push_back(str("  read as  ", printable(reading.tree, kShown)));
}

constexpr size_t kExamples = 3, kTailBytes = 80;

const char* place_of(Extract extract) {
  switch (extract) {
    case Extract::strict:
      return "the last \\boxed{}";
    case Extract::lenient:
      return "a box, else the usual phrases";
    case Extract::answer_tag:
      return "the last \\boxed{} inside <answer>..</answer>";
    case Extract::bare:
      break;
  }
  return "the whole text";
}

// The end of a response, where answers are, on one line.
std::string tail_of(std::string_view response) {
  const std::string_view text = trim(response);
  if (text.empty()) return "\"\" (empty)";
  size_t from = text.size() > kTailBytes ? text.size() - kTailBytes : 0;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return str("\"", from > 0 ? ".." : "", printable(text.substr(from), 4 * kTailBytes), "\"");
}

}  // namespace

std::vector<VerifyRow> read_verify_rows(const std::string& path, BadRows bad_rows, bool kinds) {
  std::vector<VerifyRow> rows;
  read_json_lines(path, bad_rows, [&](const JsonRow& line) { rows.push_back(read_row(line, kinds)); });
  return rows;
}

std::vector<VerifyRow> read_code_rows(const std::string& path, BadRows bad_rows, const Grader& grader) {
  std::vector<VerifyRow> rows;
  read_json_lines(path, bad_rows, [&](const JsonRow& line) {
    VerifyRow row = read_prediction(line);
    const auto gold = line.value.find("gold");
    if (gold == line.value.end() || gold->is_null()) {
      row.gold = {gold_of_tests(line)};
    } else if (gold->is_object()) {
      row.gold = {gold_of_tests({*gold, line.where, line.line})};
    } else {
      std::string text;  // a list: an assert each
      for (const std::string& one : answer_field(line, *gold, "gold", true)) text += one + "\n";
      const std::string lists = gold_of_truth(line, text);  // verl's
      row.gold = {lists.empty() ? text : lists};
    }
    if (trim(row.gold.front()).empty()) {
      refuse(line, "no tests: expected \"gold\", \"test\", \"test_list\", \"input_output\" or \"public_test_cases\"");
    }
    grader.check_gold(row.gold, line.where);
    rows.push_back(std::move(row));
  });
  return rows;
}

std::vector<Answer> answers_of(std::span<const VerifyRow> rows, std::optional<Extract> extract) {
  std::vector<Answer> answers;
  answers.reserve(rows.size());
  for (const VerifyRow& row : rows) {
    Answer answer{row.prediction, &row.gold};
    answer.extract = extract.value_or(row.kind == "bare" ? Extract::bare
                                      : row.kind.empty() ? Extract::strict
                                                         : Extract::lenient);
    answer.math = row.math;
    answer.math.gold_is_response = row.kind == "test" && !extract;
    answers.push_back(answer);
  }
  return answers;
}

Grading grade_rows(const Grader& grader, std::span<const Answer> answers, int64_t threads) {
  Grading result;
  result.verdicts.resize(answers.size());
  result.cpu_seconds.resize(answers.size());
  if (grader.is_slow()) {  // it has threads of its own, and processes
    const double slow_began = now_seconds();
    result.verdicts = grader.grade(answers);
    note_over_budget(result.verdicts);
    result.seconds = now_seconds() - slow_began;
    return result;
  }
  double began = now_seconds();
  share_out(answers.size(), kBlock, threads, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      double answer_began = thread_cpu_seconds();
      result.verdicts[i] = std::move(grader.grade(answers.subspan(i, 1)).front());
      result.cpu_seconds[i] = thread_cpu_seconds() - answer_began;
    }
  });
  note_over_budget(result.verdicts);
  result.seconds = now_seconds() - began;
  return result;
}

void write_verdicts(const std::string& path, std::span<const VerifyRow> rows, std::span<const Verdict> verdicts,
                    std::span<const Answer> explained, bool scores) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    OrderedJson line;
    line["id"] = rows[i].id;
    line["verdict"] = name_of(verdicts[i].kind);
    line["answer"] = verdicts[i].answer;
    line["reason"] = verdicts[i].reason;
    if (scores) line["score"] = verdicts[i].score;
    if (!explained.empty()) line["explanation"] = to_lines(explain(explained[i], Extract::strict));
    // An answer may be cut inside a character; broken bytes become U+FFFD.
    text += json_text(line) + "\n";
  }
  write_output(path, text);
}

void Tally::add(const VerifyRow& row, const Verdict& verdict) {
  if (row.expected < 0) return;
  ++known;
  agree += is_rewarded(verdict) == (row.expected == 1);
  false_positive += is_rewarded(verdict) && row.expected == 0;
  false_negative += !is_rewarded(verdict) && row.expected == 1;
}

std::string alternatives_text(const std::vector<std::string>& alternatives) {
  std::string text;
  for (const std::string& one : alternatives) text += str(text.empty() ? "" : " | ", printable(one, kListed));
  return text.empty() ? "(none)" : text;
}

std::string group_name(const std::string& name) { return name.empty() ? "(none)" : printable(name, 40); }

std::string verify_summary(std::span<const VerifyRow> rows, const Grading& grading) {
  const auto [kinds, all, groups] = counts_of(rows, grading);
  Table verdicts;
  for (int kind = 0; kind < 4; ++kind) {
    add_share(verdicts, name_of(static_cast<VerdictKind>(kind)), kinds[kind], std::ssize(rows));
  }
  std::string text = verdicts.text("  ");
  if (all.known > 0) {
    Table agreement;
    add_share(agreement, "agree", all.agree, all.known);
    add_share(agreement, "false positives", all.false_positive, all.known);
    add_share(agreement, "false negatives", all.false_negative, all.known);
    text += str("where \"expected\" says what is right (", grouped(all.known), " rows)\n", agreement.text("  "));
    if (groups.size() > 1) text += group_table(groups);
  }
  return text + speed_lines(grading);
}

std::string disagreements(std::span<const VerifyRow> rows, std::span<const Verdict> verdicts, int64_t limit,
                          std::span<const Answer> explained) {
  std::string text;
  int64_t shown = 0, all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const VerifyRow& row = rows[i];
    if (row.expected < 0 || is_rewarded(verdicts[i]) == (row.expected == 1)) continue;
    if (++all > limit) continue;
    ++shown;
    text += str("\n", printable(row.id, 80), row.group.empty() ? "" : str(" (", printable(row.group, 40), ")"), ": ",
                row.expected == 1 ? "right" : "wrong", ", graded ", name_of(verdicts[i].kind), ": ", verdicts[i].reason,
                "\n  gold       ", alternatives_text(row.gold), "\n  extracted  ",
                verdicts[i].answer.empty() ? "(nothing)" : printable(verdicts[i].answer, kListed), "\n");
    if (row.prediction != verdicts[i].answer) {
      bool cut = row.prediction.size() > kListed;  // an answer is at the end
      std::string_view tail = std::string_view(row.prediction).substr(cut ? row.prediction.size() - kListed : 0);
      text += str("  prediction ", cut ? "..." : "", printable(tail, kListed), "\n");
    }
    if (explained.empty()) continue;
    for (const std::string& line : to_lines(explain(explained[i], Extract::strict))) text += str("    ", line, "\n");
  }
  return str(many(all, "disagreement"), shown < all ? str(", the first ", grouped(shown), " of them") : "", "\n", text);
}

Explanation explain(const Answer& answer, Extract extract) {
  Explanation result;
  extract = answer.extract.value_or(extract);
  if (answer.gold != nullptr) {
    for (const std::string& gold : *answer.gold) {
      result.gold.push_back(read(gold, answer.math.gold_is_response, Extract::lenient));
    }
  }
  result.answer = read(answer.response, true, extract);
  result.verdict = make_grader(GraderKind::math, extract)->grade({&answer, 1}).front();
  return result;
}

std::vector<std::string> to_lines(const Explanation& explanation) {
  std::vector<std::string> lines;
  for (const Reading& gold : explanation.gold) add_lines(lines, "gold", gold);
  add_lines(lines, "answer", explanation.answer);
  lines.push_back(str(pad_right("verdict", 9), name_of(explanation.verdict.kind), ": ", explanation.verdict.reason));
  return lines;
}

std::string unreadable_in_words(double share, int64_t of, std::span<const std::string_view> responses,
                                GraderKind grader, Extract used, const std::string& option) {
  std::string text = str("no answer was found in ", percent(share), " of ", grouped(of), " responses");
  const bool reads_text = grader == GraderKind::math || grader == GraderKind::numeric;
  if (reads_text) {
    text += str(" (", option, " ", word_of(used), ": ", place_of(used), ")");
    for (Extract other : {Extract::lenient, Extract::strict, Extract::answer_tag}) {
      if (other == used) continue;
      const auto found = std::ranges::count_if(
          responses, [&](std::string_view response) { return math::extract_answer(response, other).found; });
      if (found == 0) continue;
      text += str("; ", grouped(found), " of ", grouped(std::ssize(responses)), " of these hold one for ", option, " ",
                  word_of(other));
      break;
    }
  } else {
    text += str(" (grader ", word_of(grader), ")");
  }
  std::vector<std::string> shown;
  for (size_t i = 0; i < responses.size() && shown.size() < kExamples;
       i += std::max<size_t>(1, responses.size() / kExamples)) {
    shown.push_back(tail_of(responses[i]));
  }
  return shown.empty() ? text : str(text, "; such as ", join(shown, ", "));
}

}  // namespace ucas
