// ucas verify: grades rows of a file with the grader that training uses, or a run's stored responses again.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "cli/commands/verify_run.h"
#include "verify/audit/verify_rows.h"
#include "verify/registry.h"

namespace ucas {

namespace {

// One of an enum's names, as an option says it.
template <class Enum>
Enum named(const char* option, const std::string& word) {
  const auto known = names(Enum{});
  const auto found = std::ranges::find(known, word);
  if (found != known.end()) return static_cast<Enum>(found - known.begin());
  const std::vector<std::string> expected(known.begin(), known.end());
  throw Error(ErrorKind::config, str(option, " ", printable(word, 40), ": expected one of ", join(expected, ", "),
                                     did_you_mean(word, expected)));
}

enum class AnswerKind { math, code };
constexpr std::array<const char*, 2> names(AnswerKind) { return {"math", "code"}; }

struct VerifyConfig {
  AnswerKind kind = AnswerKind::math;
  code::CodeOptions code;
  std::string out;
  std::string extract;
  int64_t threads = 0;
  int64_t show = 0;
  BadRows bad_rows = BadRows::stop;
  std::string grader;
  bool explain = false, json = false;
  std::string gold, answer;

  void fields(Fields& f) {
    f.field(
        "out", out,
        "JSONL file for verdicts, one row each: id, verdict, answer, reason, and the score of programs; empty = none");
    f.choice("kind", kind, "kind of predictions: answers to mathematics problems, or programs to run on tests");
    f.field("extract", extract,
            "answer extraction: strict = last box; lenient = or usual phrases; answer_tag = last box in the last "
            "<answer>; bare = whole prediction; empty = by the row's \"kind\"");
    f.field("grader", grader,
            "grader: math, letter, choice, numeric, countdown, of a run also code; empty = math, of a run the recorded "
            "one");
    f.field(
        "explain", explain,
        "show how gold and answer were parsed and which rule decided, for --gold, for rows of --show, and in --out");
    f.field("json", json, "print the summary of a file as one JSON object instead of text");
    f.field("gold", gold, "right answer to grade --answer against, instead of a file");
    f.field("answer", answer, "answer to grade: the last box, or the whole text without a box");
    f.field("threads", threads, Range{0, 1024}, "CPU threads; 0 = all cores; verdicts do not depend on the number");
    f.field("show", show, Range{0, 1e9}, "number of rows to list with an unexpected verdict");
    f.choice("bad_rows", bad_rows, kBadRowsHelp);
    f.section("code", code);
  }

  std::optional<Extract> extract_mode() const {
    if (extract.empty()) return std::nullopt;
    return named<Extract>("--extract", extract);
  }
  GraderKind grader_kind() const { return grader.empty() ? GraderKind::math : named<GraderKind>("--grader", grader); }
};

// ucas verify FILE --kind code. Programs may stand alone: without --extract a text without ``` is one.
int grade_programs(const std::string& path, const VerifyConfig& config, std::optional<Extract> extract) {
  if (config.explain || !config.grader.empty()) {
    throw Error(ErrorKind::usage, "verify: --kind code has one grader; leave --explain and --grader out");
  }
  const auto grader = make_grader(GraderKind::code, {extract.value_or(Extract::lenient), config.code});
  const std::vector<VerifyRow> rows = read_code_rows(path, config.bad_rows, *grader);
  std::vector<Answer> answers;
  for (const VerifyRow& row : rows) answers.push_back({row.prediction, &row.gold});
  const std::string with = grader->circumstances();
  const Grading grading = grade_rows(*grader, answers, config.threads);
  if (!config.out.empty()) write_verdicts(config.out, rows, grading.verdicts, {}, true);
  if (config.json) {
    out(verify_json(path, rows, grading));
    return kDone;
  }
  out(str(printable(path, 400), ": ", grouped(static_cast<int64_t>(rows.size())), " programs, ", with, "\n",
          verify_summary(rows, grading)));
  if (config.show > 0) out(str("\n", disagreements(rows, grading.verdicts, config.show, {})));
  return kDone;
}

// ucas verify --gold G --answer A
int grade_one(const VerifyConfig& config, std::optional<Extract> extract) {
  std::vector<std::string> gold = {config.gold};
  Answer answer{config.answer, &gold};
  bool box = config.answer.find("\\boxed") != std::string::npos || config.answer.find("\\fbox") != std::string::npos;
  answer.extract = extract.value_or(box ? Extract::strict : Extract::bare);
  if (config.explain) {
    for (const std::string& line : to_lines(ucas::explain(answer, Extract::strict))) out(line + "\n");
    return kDone;
  }
  Verdict verdict = make_grader(config.grader_kind())->grade({&answer, 1}).front();
  out(str(name_of(verdict.kind), ": ", verdict.reason, "\n"));
  return kDone;
}

// ucas verify RUN
int regrade_run(const std::string& run, const VerifyConfig& config, std::optional<Extract> extract) {
  if (config.explain || !config.out.empty() || !config.gold.empty() || !config.answer.empty()) {
    throw Error(ErrorKind::usage, "verify: of a run, take --grader, --extract, --show and --json alone");
  }
  RegradeOptions options{.extract = extract, .json = config.json};
  if (!config.grader.empty()) options.grader = config.grader_kind();
  if (config.show > 0) options.shown = config.show;
  return verify_run(run, options);
}

bool says_kind(std::span<const VerifyRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [](const VerifyRow& row) { return !row.kind.empty(); });
}

}  // namespace

std::string options_verify() { return options_help(VerifyConfig{}); }

int run_verify(const Words& words) {
  CommandLine line = parse_command_line(words, {"explain", "json"});
  VerifyConfig config;
  ucas::apply(config, line.settings);
  std::optional<Extract> extract = config.extract_mode();
  if (line.positionals.size() == 1 && is_directory(line.positionals[0])) {
    return regrade_run(line.positionals[0], config, extract);
  }
  if (config.json && (config.show > 0 || !config.gold.empty())) {
    throw Error(ErrorKind::usage, "verify: --json is of the summary of a file; leave --show and --gold out");
  }
  if (config.grader_kind() == GraderKind::code && config.kind != AnswerKind::code) {
    throw Error(ErrorKind::usage, "verify: --grader code is of a run; of a file give --kind code");
  }
  if (config.explain && config.grader_kind() != GraderKind::math) {
    throw Error(ErrorKind::usage, "verify: --explain is of the grader math; leave --grader out");
  }
  if (!config.gold.empty() || !config.answer.empty()) {
    if (!line.positionals.empty() || !config.out.empty() || config.kind == AnswerKind::code) {
      throw Error(ErrorKind::usage,
                  "verify: --gold and --answer grade one answer of mathematics, without a file or --out");
    }
    return grade_one(config, extract);
  }
  if (line.positionals.size() != 1) {
    throw Error(ErrorKind::usage,
                str("verify: expected one FILE.jsonl, got ", line.positionals.size(), "; see ucas verify --help"));
  }
  if (config.kind == AnswerKind::code) return grade_programs(line.positionals[0], config, extract);
  const std::string& path = line.positionals[0];
  std::vector<VerifyRow> rows = read_verify_rows(path, config.bad_rows, !extract);
  std::vector<Answer> answers = answers_of(rows, extract);
  std::string title = str(printable(path, 400), ": ", grouped(rows.size()), " answers, extract ",
                          extract           ? word_of(*extract)
                          : says_kind(rows) ? "by kind"
                                            : "strict",
                          config.grader.empty() ? "" : str(", grader ", config.grader), "\n");
  Grading grading = grade_rows(*make_grader(config.grader_kind()), answers, config.threads);
  if (!config.out.empty())
    write_verdicts(config.out, rows, grading.verdicts, config.explain ? answers : std::span<Answer>{});
  if (config.json) {
    out(verify_json(path, rows, grading));
    return kDone;
  }
  out(title + verify_summary(rows, grading));
  if (config.show > 0)
    out(str("\n", disagreements(rows, grading.verdicts, config.show, config.explain ? answers : std::span<Answer>{})));
  return kDone;
}

}  // namespace ucas
