#include "verify/audit/verify_rows.h"

#include <time.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "data/code_problems.h"
#include "data/problems.h"
#include "verify/audit/explain.h"
#include "verify/grader.h"

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

// What every row has beside its right answer.
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

}  // namespace ucas
