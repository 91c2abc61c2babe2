// `ucas diagnose`: of a training, why its reward went as it did; of samples of a model, which confidence would protect
// rare right responses.
#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "evaluate/responses_file.h"
#include "records/run_record.h"
#include "report/diagnosis.h"
#include "results/compare/answers.h"
#include "results/compare/diagnosis.h"

namespace ucas {

namespace {

struct DiagnoseLine {
  std::string data;
  int64_t opening = 1;
  double rare = 0.25;
  RareBy rare_by = RareBy::opening;
  bool confidence = false;
  void fields(Fields& f) {
    f.field("confidence", confidence,
            "report which confidence would protect rare right responses, from the evaluation that --data names");
    f.field("data", data, "evaluation of the run, by the name in eval/NAME.json; empty = the only one");
    f.field("opening", opening, Range{1, 1000}, "number of first words of a response that identify a strategy");
    f.choice("rare_by", rare_by,
             "rarity criterion for right responses: opening (--opening words), accuracy of the problem, or lowest mean "
             "log-prob");
    f.field("rare", rare, Range{0, 1},
            "maximum fraction of a problem's responses that is rare; with --rare_by logprob, of the right responses");
  }
};

std::vector<SignalledGroup> from_evaluation(const std::string& path, const DiagnoseLine& options,
                                            DiagnosisReport& report) {
  const std::vector<RunRecord> run = {read_run(path)};
  const std::string name = choose_evaluation(run, options.data);
  const EvalRecord& evaluation = *std::ranges::find(run[0].evaluations, name, &EvalRecord::name);
  const std::vector<ProblemRow> rows = rows_with_all_samples(path_join(path, "eval"), evaluation);
  int64_t samples = 0, stored = 0;
  for (const ProblemRow& row : rows) {
    samples += row.samples;
    stored += std::ssize(row.responses);
  }
  const std::string where = printable(path_join(path, "eval/" + name), 400);
  if (samples == 0) {
    throw Error(ErrorKind::empty,
                str(where, ": no samples, expected several of each problem: ucas evaluate --samples 64"));
  }
  report.source = str(where, ": ", grouped(stored), " samples of ", grouped(std::ssize(rows)), " problems");
  if (stored < samples) {
    report.remarks.push_back(str(grouped(stored), " of ", grouped(samples),
                                 " samples are stored; for the others evaluate again with --stored_responses ",
                                 evaluation.config.samples));
  }
  return signalled_groups(rows, options.opening);
}

// A run directory with a log, asked for nothing that concerns confidences.
bool asks_for_causes(const std::string& path, const DiagnoseLine& options) {
  return !options.confidence && options.data.empty() && is_directory(path) && exists(path_join(path, "steps.jsonl"));
}

int say_causes(const std::string& path) {
  const RunRecord run = read_run(path);
  if (run.steps.empty()) {
    throw Error(ErrorKind::empty, str(printable(path, 400),
                                      "/steps.jsonl: no step yet, expected at least one; wait for the "
                                      "first, or look at what ucas train says"));
  }
  std::vector<std::string> remarks = run.remarks;
  const std::vector<StoredResponse> stored = read_stored(path, remarks);
  RunDiagnosis diagnosis = diagnose_run(run, stored);
  diagnosis.remarks = std::move(remarks);
  out(diagnosis_text(run, diagnosis));
  return kDone;
}

}  // namespace

std::string options_diagnose() { return options_help(DiagnoseLine{}); }

int run_diagnose(const Words& words) {
  CommandLine line = parse_command_line(words, {"confidence"});
  DiagnoseLine options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 1) {
    throw Error(ErrorKind::usage, str("diagnose: expected one run directory, got ", line.positionals.size(),
                                      "; see ucas diagnose --help"));
  }
  const std::string& path = line.positionals[0];
  if (asks_for_causes(path, options)) return say_causes(path);
  DiagnosisReport report;
  report.opening = options.opening;
  report.options = {.rare = options.rare, .rare_by = options.rare_by};
  report.found = diagnose(from_evaluation(path, options, report), report.options);
  out(diagnosis_text(report));
  return kDone;
}

}  // namespace ucas
