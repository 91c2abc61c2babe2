// `ucas verify-run`: is an evaluation what its card says?
#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "cli/command.h"
#include "evaluate/results/card_check.h"

namespace ucas {

namespace {

struct VerifyRunOptions {
  std::string data, model, name;
  int64_t shown = 20;
  void fields(Fields& f) {
    f.field("data", data, "directory of the problem files to compare with the run card");
    f.field(
        "model", model,
        "checkpoint directory to compare with the run card; also checks that each text matches the stored token ids");
    f.field("name", name, "evaluation eval/NAME to check; empty = all evaluations with a run card");
    f.field("shown", shown, Range{1, 1e6}, "number of differences to list per evaluation");
  }
};

std::string counted(int64_t n, const char* one, const char* many) { return str(grouped(n), " ", n == 1 ? one : many); }

// True if all is as the card says.
bool report(const std::string& run, const std::string& name, const CardCheck& check, int64_t shown) {
  out(str(path_join(run, str("eval/", name)), ": card ", check.card, ", ", check.made, ", ucas ", check.version, "\n"));
  out(str("  checked: ", counted(check.problems, "problem", "problems"), ", ",
          counted(check.responses, "response", "responses"), " graded again, ",
          counted(check.figures, "number", "numbers"), " computed again, ", counted(check.hashes, "hash", "hashes"),
          check.decoded > 0 ? str(", ", counted(check.decoded, "text", "texts"), " decoded again") : "", "\n"));
  for (const std::string& remark : check.remarks) out(str("  note: ", remark, "\n"));
  int64_t listed = 0;
  for (const CardFinding& f : check.findings) {
    if (listed++ == shown) break;
    out(str("  DIFFERS ", f.place, ": ", f.field, ": stored ", f.stored, ", found ", f.recomputed, "\n"));
  }
  const auto all = static_cast<int64_t>(check.findings.size());
  if (all > shown) out(str("  and ", grouped(all - shown), " more (--shown N lists more)\n"));
  out(all == 0 ? "  all as stored\n" : str("  ", counted(all, "difference", "differences"), "\n"));
  return all == 0;
}

}  // namespace

std::string options_verify_run() { return options_help(VerifyRunOptions{}); }

int run_verify_run(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  VerifyRunOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.empty()) {
    throw Error(ErrorKind::usage, "verify-run: no run directory given, expected ucas verify-run RUN...");
  }
  bool same = true;
  for (const std::string& run : line.positionals) {
    std::vector<std::string> names = carded_evaluations(run);
    if (!options.name.empty()) names = {options.name};
    if (names.empty()) {
      throw Error(ErrorKind::path, str(run,
                                       ": no eval/NAME.card.json; expected a run directory with an evaluation by `ucas "
                                       "evaluate --out`, a demo or a study"));
    }
    for (const std::string& name : names) {
      same = report(run, name, check_card(run, name, {options.data, options.model}), options.shown) && same;
    }
  }
  return same ? kDone : kDiffers;
}

}  // namespace ucas
