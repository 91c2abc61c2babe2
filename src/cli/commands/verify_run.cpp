// `ucas verify-run`: is an evaluation what its card says?
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/fields.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "evaluate/results/card_check.h"

namespace ucas {

namespace {

struct VerifyRunOptions {
  std::string data, model, name;
  int64_t shown = 20;
  bool json = false;
  void fields(Fields& f) {
    f.field("data", data, "directory of the problem files to compare with the run card");
    f.field(
        "model", model,
        "checkpoint directory to compare with the run card; also checks that each text matches the stored token ids");
    f.field("name", name, "evaluation eval/NAME to check; empty = all evaluations with a run card");
    f.field("json", json, "print one JSON object with all differences instead of text");
    f.field("shown", shown, Range{1, 1e6}, "number of differences to list per evaluation");
  }
};

void report(const std::string& run, const std::string& name, const CardCheck& check, int64_t shown) {
  out(str(path_join(run, str("eval/", name)), ": card ", check.card, ", ", check.made, ", ucas ", check.version, "\n"));
  out(str("  checked: ", many(check.problems, "problem"), ", ", many(check.responses, "response"), " graded again, ",
          many(check.figures, "number"), " computed again, ", grouped(check.hashes),
          check.hashes == 1 ? " hash" : " hashes",
          check.decoded > 0 ? str(", ", many(check.decoded, "text"), " decoded again") : "", "\n"));
  for (const std::string& remark : check.remarks) out(str("  note: ", remark, "\n"));
  int64_t listed = 0;
  for (const CardFinding& f : check.findings) {
    if (listed++ == shown) break;
    out(str("  DIFFERS ", f.place, ": ", f.field, ": stored ", f.stored, ", found ", f.recomputed, "\n"));
  }
  const auto all = static_cast<int64_t>(check.findings.size());
  if (all > shown) out(str("  and ", grouped(all - shown), " more (--shown N lists more)\n"));
  out(all == 0 ? "  all as stored\n" : str("  ", many(all, "difference"), "\n"));
}

OrderedJson json_of(const std::string& run, const std::string& name, const CardCheck& check) {
  OrderedJson object = {{"run", run},
                        {"name", name},
                        {"card", check.card},
                        {"made", check.made},
                        {"version", check.version},
                        {"checked",
                         {{"problems", check.problems},
                          {"responses", check.responses},
                          {"figures", check.figures},
                          {"hashes", check.hashes},
                          {"decoded", check.decoded}}},
                        {"as_stored", check.findings.empty()},
                        {"differences", OrderedJson::array()},
                        {"notes", check.remarks}};
  for (const CardFinding& f : check.findings) {
    object["differences"].push_back(
        {{"place", f.place}, {"field", f.field}, {"stored", f.stored}, {"found", f.recomputed}});
  }
  return object;
}

}  // namespace

std::string options_verify_run() { return options_help(VerifyRunOptions{}); }

int run_verify_run(const Words& words) {
  CommandLine line = parse_command_line(words, {"json"});
  VerifyRunOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.empty()) {
    throw Error(ErrorKind::usage, "verify-run: no run directory given, expected ucas verify-run RUN...");
  }
  bool same = true;
  OrderedJson all = OrderedJson::array();
  for (const std::string& run : line.positionals) {
    std::vector<std::string> names = carded_evaluations(run);
    if (!options.name.empty()) names = {options.name};
    if (names.empty()) {
      throw Error(ErrorKind::path, str(run,
                                       ": no eval/NAME.card.json; expected a run directory with an evaluation by `ucas "
                                       "evaluate --out`, a demo or a study"));
    }
    for (const std::string& name : names) {
      const CardCheck check = check_card(run, name, {options.data, options.model});
      if (!options.json) report(run, name, check, options.shown);
      if (options.json) all.push_back(json_of(run, name, check));
      same = same && check.findings.empty();
    }
  }
  if (options.json) out(json_text(OrderedJson{{"evaluations", all}}, 2) + "\n");
  return same ? kDone : kDiffers;
}

}  // namespace ucas
