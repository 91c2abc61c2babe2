// `ucas export`: a checkpoint of a run as a directory for others: the model's files and a card.
#include <algorithm>
#include <cctype>

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
  std::string out, name, base_model, license;
  int64_t step = 0;
  std::vector<std::string> evaluations, train_data;
  void fields(Fields& f) {
    f.field("out", out, "directory to create");
    f.field("step", step, Range{0, 1e9}, "step of the checkpoint to export; 0 = the newest complete checkpoint");
    f.field("name", name, "model name; empty = the directory's name");
    f.field("base_model", base_model, "base model on the hub, ORG/NAME");
    f.field("train_data", train_data, "training data sets on the hub, ORG/NAME,...");
    f.field("license", license, "license id of the hub, such as apache-2.0 or mit");
    f.field("evaluations", evaluations,
            "further run directories with evaluations of the same checkpoint in eval/ (`ucas evaluate --out`)");
  }
};

// ORG/NAME, as a hub takes it.
std::string checked_id(const std::string& option, const std::string& id) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_.").find(c) != std::string_view::npos;
  };
  const std::vector<std::string> parts = split(id, '/');
  const bool good = parts.size() == 2 && std::ranges::all_of(parts, [&](const std::string& part) {
                      return !part.empty() && part[0] != '.' && std::ranges::all_of(part, allowed);
                    });
  if (good) return id;
  throw Error(ErrorKind::usage,
              str("--", option, " ", printable(id), ": expected ORG/NAME of letters, digits and -_."));
}

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

std::vector<EvaluatedWeights> evaluations_of(const std::string& run, const std::vector<std::string>& others,
                                             const std::vector<ModelFile>& files) {
  std::vector<EvaluatedWeights> found;
  std::vector<std::string> folders = {run};
  folders.insert(folders.end(), others.begin(), others.end());
  for (const std::string& folder : folders) {
    const size_t before = found.size();
    const RunRecord record = read_run(folder);
    for (const EvalRecord& evaluation : record.evaluations) {
      if (is_of(evaluation, files)) found.push_back({evaluation, record.environment("started")});
    }
    if (found.size() > before || folder == run) continue;
    throw Error(ErrorKind::path,
                str(printable(folder, 400),
                    ": no evaluation of these weights: expected eval/NAME.json that names the SHA-256 of this "
                    "checkpoint's files (`ucas evaluate CHECKPOINT --out OUT` makes OUT/LABEL)"));
  }
  return found;
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
                    ": an earlier version wrote it, moments beside the model; save a step more with "
                    "`ucas train --resume` and export that"));
  if (!options.base_model.empty()) card.base_model = checked_id("base_model", options.base_model);
  const RunRecord record = read_run(run.path());
  if (const auto hub = hub_origin(record.setting("model")); hub && card.base_model.empty()) card.base_model = hub->name;
  for (const std::string& file : split(record.environment("data"), ',')) {
    const auto hub = hub_origin(std::string(trim(file)));
    const auto same = [&](const std::string& id) { return hub && id == hub->name; };
    if (hub && std::ranges::none_of(card.datasets, same)) card.datasets.push_back(hub->name);
  }
  for (const std::string& id : options.train_data) card.datasets.push_back(checked_id("train_data", id));
  card.license = options.license;
  card.adapter = is_adapter(checkpoint);
  card.name = options.name.empty() ? short_path(options.out, 1) : options.name;
  card.evaluations = evaluations_of(run.path(), options.evaluations, hash_model_files(checkpoint));

  OutputDirectory partial(options.out);
  for (const std::string& file : list_directory(checkpoint)) {
    if (file != kStateFolder) copy_file(path_join(checkpoint, file), path_join(partial.path(), file));
  }
  write_file(path_join(partial.path(), "README.md"), model_card(card, record));
  partial.put_in_place();
  log(str("export: ", options.out, ": step ", card.step, ", ", card.evaluations.size(), " evaluations"));
  return kDone;
}

}  // namespace ucas
