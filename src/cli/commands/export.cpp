// `ucas export`: a checkpoint of a run as a directory for others: the model's files and a card.
#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "hf/hub.h"
#include "hf/peft.h"
#include "records/run/manifest.h"
#include "records/run/run_directory.h"
#include "report/model_card.h"

namespace ucas {

namespace {

struct ExportOptions {
  std::string out;
  int64_t step = 0;
  void fields(Fields& f) {
    f.field("out", out, "directory to create");
    f.field("step", step, Range{0, 1e9}, "step of the checkpoint to export; 0 = the newest complete checkpoint");
  }
};

// The step asked for, or the newest, whose every byte is as it was sealed.
int64_t whole_checkpoint(const RunDirectory& run, int64_t asked) {
  std::vector<int64_t> steps;
  if (is_directory(run.checkpoints())) {
    for (const std::string& name : list_directory(run.checkpoints())) steps.push_back(parse_step_name(name));
  }
  std::erase_if(steps, [&](int64_t step) { return step < 0 || (asked > 0 && step != asked); });
  std::ranges::sort(steps, std::greater{});
  for (int64_t step : steps) {
    const SealCheck check = check_seal(run.checkpoint(step), true);
    if (check.problem.empty()) return step;
    const std::string what = str(printable(run.checkpoint(step), 400), ": ", check.problem);
    if (check.unread) throw Error(ErrorKind::io, what, kIoFailure);
    warn(what);
  }
  throw Error(ErrorKind::path,
              str(printable(run.checkpoints(), 400), ": ",
                  asked > 0 ? str("no whole checkpoint of step ", asked, "; leave --step out for the newest")
                            : "no whole checkpoint yet"));
}

}  // namespace

std::string options_export() { return options_help(ExportOptions{}); }

int run_export(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  ExportOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 1) {
    throw Error(ErrorKind::usage, "give one run directory or adapter; see `ucas export --help`");
  }
  if (options.out.empty()) throw Error(ErrorKind::usage, "--out DIR is missing: where the model goes");
  check_output(options.out);
  if (const std::string adapter = checkpoint_directory(line.positionals[0]); is_adapter(adapter)) {
    return run_in_engine("merge", {adapter, options.out});
  }
  const RunDirectory run = RunDirectory::watch(line.positionals[0]);
  ModelCard card;
  card.step = whole_checkpoint(run, options.step);
  const std::string checkpoint = run.checkpoint(card.step);
  if (state_folder(checkpoint) == checkpoint)
    throw Error(ErrorKind::unsupported,
                str(printable(checkpoint, 400),
                    ": an earlier version wrote it, moments next to the model; save a step more with "
                    "`ucas train --resume` and export that"));
  const RunRecord record = read_run(run.path());
  if (const auto hub = hub_origin(record.setting("model")); hub) card.base_model = hub->name;
  for (const std::string& file : split(record.environment("data"), ',')) {
    const auto hub = hub_origin(std::string(trim(file)));
    const auto same = [&](const std::string& id) { return hub && id == hub->name; };
    if (hub && std::ranges::none_of(card.datasets, same)) card.datasets.push_back(hub->name);
  }
  card.adapter = is_adapter(checkpoint);
  card.name = short_path(options.out, 1);

  OutputDirectory partial(options.out);
  for (const std::string& file : list_directory(checkpoint)) {
    if (file != kStateFolder) copy_file(path_join(checkpoint, file), path_join(partial.path(), file));
  }
  write_file(path_join(partial.path(), "README.md"), model_card(card, record));
  partial.put_in_place();
  log(str("export: ", options.out, ": step ", card.step));
  return kDone;
}

}  // namespace ucas
