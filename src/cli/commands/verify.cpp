// ucas verify: grades rows of a file with the grader that training uses, or a run's stored responses again.
#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "config/train_config.h"
#include "evaluate/responses_file.h"
#include "records/outputs.h"
#include "records/run/rollouts.h"
#include "records/run/run_directory.h"
#include "records/run_record.h"
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
  bool explain = false;
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

// ucas verify FILE --kind code. Programs may be without a fence: without --extract a text without ``` is one.
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

// ------------------------------------------------------------------------- ucas verify RUN: which verdicts flip

struct RegradeOptions {
  std::optional<GraderKind> grader;  // instead of the recorded ones
  std::optional<Extract> extract;
  int64_t shown = 20;  // flips to list for each part of the run
};

// A response with its verdict before and now.
struct Regraded {
  std::string id, before, now, answer, gold;
  int64_t sample = 0;
};

// An evaluation, or all steps of a training.
struct RegradedPart {
  std::string place, by;
  std::vector<std::string> remarks;
  int64_t responses = 0;
  std::vector<Regraded> flips;
  std::map<std::string, int64_t> kinds;  // "equal -> unequal"
  bool counts_differ = false;            // of right samples whose verdicts are not stored one by one
  bool same() const { return flips.empty() && !counts_differ; }

  void add(Regraded response) {
    if (response.before == response.now) return;
    ++kinds[str(response.before, " -> ", response.now)];
    flips.push_back(std::move(response));
  }
};

std::string by_words(const RegradeOptions& options) {
  return str(options.grader ? word_of(*options.grader) : "the recorded grader",
             options.extract ? str(", ", word_of(*options.extract)) : "");
}

bool overridden(const RegradeOptions& options) { return options.grader || options.extract; }

std::string verdict_text(const SampledResponse& response) {
  return name_of(response.verdict.value_or(VerdictKind::unparseable));
}

// Stored verdicts are those of the greedy responses and of the first few samples; under another grader all are graded
// under both.
RegradedPart regrade(const RunRecord& run, const EvalRecord& evaluation, const RegradeOptions& options) {
  const std::string folder = path_join(run.path, "eval");
  RegradedPart part{.place = path_join(folder, evaluation.name), .by = by_words(options)};
  Asked asked = *evaluation.asked;
  if (asked.grader_version != kGraderVersion) {
    part.remarks.push_back(str("graded then by version ", asked.grader_version, " of the grader, now by version ",
                               kGraderVersion, ": verdicts may differ for that reason alone"));
  }
  const std::vector<Problem> problems = problems_of(evaluation);
  EvalConfig config = evaluation.config;
  config.stored_responses = config.samples;
  config.bootstrap_draws = 0;  // no interval of it is read
  const Graders recorded = graders_of(asked);
  const std::vector<Responses> responses =
      by_problem(problems, read_outputs(path_join(folder, evaluation.name + ".outputs.jsonl")).outputs, config.greedy,
                 config.samples);
  std::vector<ProblemRow> before = evaluation.rows;
  if (overridden(options)) before = score(problems, responses, recorded, config).rows;
  for (AskedSet& set : asked.sets) {
    set.grader = options.grader.value_or(set.grader);
    set.extract = options.extract.value_or(set.extract);
  }
  const std::vector<ProblemRow> now = score(problems, responses, graders_of(asked), config).rows;
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string gold = join(now[i].gold, " or ");
    const auto add = [&](const SampledResponse& was, const SampledResponse& is, int64_t sample) {
      part.add({now[i].id, verdict_text(was), verdict_text(is), is.answer, gold, sample});
    };
    if (before[i].greedy && now[i].greedy) add(*before[i].greedy, *now[i].greedy, kGreedySample);
    const size_t both = std::min(before[i].responses.size(), now[i].responses.size());
    for (size_t k = 0; k < both; ++k) add(before[i].responses[k], now[i].responses[k], static_cast<int64_t>(k));
    part.responses += (now[i].greedy ? 1 : 0) + std::ssize(now[i].responses);
    if (before[i].correct != now[i].correct && both < now[i].responses.size()) {
      part.counts_differ = true;
      part.remarks.push_back(str(printable(now[i].id, 60), ": ", before[i].correct, " of ", before[i].samples,
                                 " samples were right, now ", now[i].correct));
    }
  }
  return part;
}

// The stored steps of a training, by its own settings.
RegradedPart regrade_rollouts(const RunRecord& run, const RegradeOptions& options) {
  RegradedPart part{.place = path_join(run.path, "rollouts"), .by = by_words(options)};
  const RewardConfig reward = make_train_config(read_toml(path_join(run.path, "config.toml"))).reward;
  if (reward.from_outside() && !options.grader) {
    part.remarks.push_back(str("not graded: the verdicts are those of ", reward.scorer(), "; name a --grader"));
    return part;
  }
  GraderSetup setup = reward.setup();
  setup.extract = options.extract.value_or(setup.extract);
  std::map<std::string, GraderKind> by_source;
  if (!options.grader) by_source = parse_graders(reward.graders, "reward.graders");
  const Graders graders = make_graders(options.grader.value_or(reward.grader), by_source, setup);
  for (const std::string& name : list_directory(part.place)) {
    if (parse_step_name(name) < 0 || !name.ends_with(".jsonl")) continue;
    const std::vector<StoredResponse> stored = read_rollouts(path_join(part.place, name), part.remarks);
    std::vector<Problem> problems(stored.size());
    std::vector<GradeItem> items;
    for (size_t i = 0; i < stored.size(); ++i) {
      problems[i].id = stored[i].problem, problems[i].source = stored[i].source, problems[i].gold = stored[i].gold;
      items.push_back({&problems[i], stored[i].response});
    }
    const std::vector<Verdict> verdicts = grade_all(graders, items);
    part.responses += std::ssize(stored);
    for (size_t i = 0; i < stored.size(); ++i) {
      if (!stored[i].verdict) continue;
      const bool cut = !stored[i].finished && reward.truncated == Truncated::wrong;
      const VerdictKind now = cut && verdicts[i].kind == VerdictKind::equal ? VerdictKind::unequal : verdicts[i].kind;
      part.add({str("step ", parse_step_name(name), ", ", stored[i].problem), name_of(*stored[i].verdict), name_of(now),
                verdicts[i].answer, join(stored[i].gold, " or "), stored[i].sample});
    }
  }
  return part;
}

std::string text_of(const RegradedPart& part, int64_t shown) {
  std::string text =
      str(printable(part.place, 400), ": ", many(part.responses, "response"), " graded again by ", part.by, "\n");
  for (const std::string& remark : part.remarks) text += str("  note: ", remark, "\n");
  if (part.flips.empty()) return text + (part.same() ? "  no verdict flips\n" : "  no stored verdict flips\n");
  for (const auto& [kind, count] : part.kinds) text += str("  ", kind, ": ", grouped(count), "\n");
  int64_t listed = 0;
  for (const Regraded& r : part.flips) {
    if (listed++ == shown) break;
    text += str("    ", printable(r.id, 80), r.sample < 0 ? ", greedy" : str(", sample ", r.sample), ": ", r.before,
                " -> ", r.now, r.answer.empty() ? "" : str(", read as ", printable(r.answer, 60)), ", right is ",
                printable(r.gold, 60), "\n");
  }
  const auto all = std::ssize(part.flips);
  return all > shown ? str(text, "    and ", grouped(all - shown), " more (--show N lists more)\n") : text;
}

// Exit code: kDiffers where the recorded grader no longer says what it said.
int verify_run(const std::string& path, const RegradeOptions& options) {
  const RunRecord run = read_run(path);
  std::vector<RegradedPart> parts;
  for (const EvalRecord& evaluation : run.evaluations) {
    const std::string outputs = path_join(run.path, str("eval/", evaluation.name, ".outputs.jsonl"));
    if (evaluation.asked && exists(outputs)) parts.push_back(regrade(run, evaluation, options));
  }
  const std::string rollouts = path_join(run.path, "rollouts");
  if (exists(path_join(run.path, "config.toml")) && is_directory(rollouts) && !list_directory(rollouts).empty()) {
    parts.push_back(regrade_rollouts(run, options));
  }
  if (parts.empty()) {
    throw Error(ErrorKind::path, str(printable(path, 400),
                                     ": no stored responses: expected eval/NAME.outputs.jsonl of `ucas evaluate "
                                     "--out`, or rollouts/ of a training"));
  }
  bool same = true;
  for (const RegradedPart& part : parts) {
    same = same && part.same();
    out(text_of(part, options.shown));
  }
  return same || overridden(options) ? kDone : kDiffers;
}

int regrade_run(const std::string& run, const VerifyConfig& config, std::optional<Extract> extract) {
  if (config.explain || !config.out.empty() || !config.gold.empty() || !config.answer.empty()) {
    throw Error(ErrorKind::usage, "verify: of a run, take --grader, --extract and --show alone");
  }
  RegradeOptions options{.extract = extract};
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
  CommandLine line = parse_command_line(words, {"explain"});
  VerifyConfig config;
  ucas::apply(config, line.settings);
  std::optional<Extract> extract = config.extract_mode();
  if (line.positionals.size() == 1 && is_directory(line.positionals[0])) {
    return regrade_run(line.positionals[0], config, extract);
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
  out(title + verify_summary(rows, grading));
  if (config.show > 0)
    out(str("\n", disagreements(rows, grading.verdicts, config.show, config.explain ? answers : std::span<Answer>{})));
  return kDone;
}

}  // namespace ucas
