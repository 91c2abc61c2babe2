// `ucas export`: a checkpoint of a run as a directory for others: the model's files, a card, results.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/files/embedded.h"
#include "base/files/hub_path.h"
#include "base/files/output_directory.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/gguf_export.h"
#include "evaluate/benchmark.h"
#include "evaluate/results/card_check.h"
#include "hf/adapter.h"
#include "hf/hub.h"
#include "records/run/manifest.h"
#include "records/run/run_directory.h"
#include "report/model_card.h"

namespace ucas {

namespace {

enum class ExportFormat { safetensors, gguf };
constexpr std::array<const char*, 2> names(ExportFormat) { return {"safetensors", "gguf"}; }

struct ExportOptions {
  std::string out, name, base_model, license;
  ExportFormat format = ExportFormat::safetensors;
  GgufStorage gguf_type = GgufStorage::f16;
  int64_t step = 0;
  std::vector<std::string> evaluations, hub, train_data;
  void fields(Fields& f) {
    f.field("out", out, "directory to create");
    f.choice("format", format, "format of the model: the checkpoint's own files, or one GGUF file for llama.cpp");
    f.choice("gguf_type", gguf_type,
             "type of matrices with --format gguf; q8_0 falls back to f16 where a row is no multiple of 32");
    f.field("step", step, Range{0, 1e9}, "step of the checkpoint to export; 0 = the newest complete checkpoint");
    f.field("name", name, "model name; empty = the directory's name");
    f.field("base_model", base_model, "base model on the hub, ORG/NAME");
    f.field("train_data", train_data, "training data sets on the hub, ORG/NAME,...");
    f.field("license", license, "license id of the hub, such as apache-2.0 or mit");
    f.field("evaluations", evaluations,
            "further run directories with evaluations of the same checkpoint in eval/ (`ucas evaluate --out`)");
    f.field("hub", hub, "hub data sets of the evaluated sources, SOURCE=ORG/NAME or SOURCE=ORG/NAME#TASK,...");
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

// An evaluation of exactly these files, by its run card.
bool is_of(const Card& card, const std::vector<CardFile>& files) {
  return std::ranges::all_of(files, [&](const CardFile& file) {
    return std::ranges::any_of(card.model_files, [&](const CardFile& known) {
      return known.name == file.name && known.sha256 == file.sha256;
    });
  });
}

std::vector<CardedEvaluation> evaluations_of(const std::string& run, const std::vector<std::string>& others,
                                             const std::vector<CardFile>& files) {
  std::vector<CardedEvaluation> found;
  std::vector<std::string> folders = {run};
  folders.insert(folders.end(), others.begin(), others.end());
  for (const std::string& folder : folders) {
    size_t before = found.size();
    const std::string eval = path_join(folder, "eval");
    for (const std::string& name : is_directory(eval) ? carded_evaluations(folder) : Words{}) {
      const Card card = read_card(path_join(eval, name + ".card.json"));
      std::vector<std::string> missing, remarks;
      if (is_of(card, files)) found.push_back({read_evaluation(eval, name, missing, remarks), card.made});
    }
    if (found.size() > before || folder == run) continue;
    throw Error(ErrorKind::path,
                str(printable(folder, 400),
                    ": no evaluation of these weights: expected eval/NAME.card.json that names the SHA-256 of "
                    "this checkpoint's files (`ucas evaluate CHECKPOINT --out OUT` makes OUT/LABEL)"));
  }
  return found;
}

// What --hub says, and what embedded benchmarks say of themselves.
std::map<std::string, std::string> hub_ids(const std::vector<std::string>& said,
                                           const std::vector<CardedEvaluation>& evaluations) {
  std::map<std::string, std::string> ids;
  const std::vector<std::string> embedded = embedded_stems("benchmarks/");
  std::vector<std::string> sources;
  for (const CardedEvaluation& e : evaluations) {
    for (const auto& [source, numbers] : e.figures.by_source) {
      sources.push_back(source);
      if (e.figures.suite.empty() || std::ranges::find(embedded, source) == embedded.end()) continue;
      if (const std::string hub = load_suite(source).benchmarks.front().hub; !hub.empty()) ids[source] = hub;
    }
  }
  for (const std::string& pair : said) {
    const size_t equals = pair.find('=');
    const std::string source = pair.substr(0, equals), id = equals == std::string::npos ? "" : pair.substr(equals + 1);
    checked_id("hub", id.substr(0, id.find('#')));
    if (std::ranges::find(sources, source) == sources.end())
      throw Error(
          ErrorKind::usage,
          str("--hub ", printable(pair), ": no evaluation of this checkpoint has problems of ", printable(source),
              sources.empty() ? "" : str("; there are ", printable(join(sources, ", "), 400))));
    ids[source] = id;
  }
  return ids;
}

// OUT/NAME-F16.gguf, as such files are called on the hub.
std::string gguf_file_of(const std::string& directory, const std::string& name, GgufStorage storage) {
  std::string file = name, type = word_of(storage);
  std::ranges::replace(file, '/', '-');
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::toupper(c); });
  return path_join(directory, str(file, "-", type, ".gguf"));
}

// A checkpoint that is no run's, as one file.
int export_checkpoint(const ExportOptions& options, const std::string& directory) {
  const std::string name = options.name.empty() ? short_path(options.out, 1) : options.name;
  OutputDirectory partial(options.out);
  const std::string file = gguf_file_of(partial.path(), name, options.gguf_type);
  export_gguf(directory, file, name, options.gguf_type);
  partial.put_in_place();
  log(str("export: ", gguf_file_of(options.out, name, options.gguf_type)));
  return kDone;
}

void put_model(const ExportOptions& options, const std::string& name, const std::string& checkpoint,
               const std::string& directory) {
  if (options.format == ExportFormat::gguf) {
    return export_gguf(checkpoint, gguf_file_of(directory, name, options.gguf_type), name, options.gguf_type);
  }
  for (const std::string& file : list_directory(checkpoint)) {
    if (file != kStateFolder) copy_file(path_join(checkpoint, file), path_join(directory, file));
  }
}

}  // namespace

std::string options_export() { return options_help(ExportOptions{}); }

int run_export(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  ExportOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 1)
    throw Error(ErrorKind::usage,
                "give one run directory or adapter, or with --format gguf a checkpoint; see `ucas export --help`");
  if (options.out.empty()) throw Error(ErrorKind::usage, "--out DIR is missing: where the model goes");
  check_output(options.out);
  if (const std::string adapter = checkpoint_directory(line.positionals[0]);
      options.format == ExportFormat::safetensors && is_adapter(adapter)) {
    return run_in_engine("merge", {adapter, options.out});
  }
  if (const std::string directory = checkpoint_directory(line.positionals[0]);
      options.format == ExportFormat::gguf && !exists(path_join(directory, "config.toml"))) {
    return export_checkpoint(options, directory);
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
  card.hub_of = hub_ids(options.hub, card.evaluations);

  OutputDirectory partial(options.out);
  put_model(options, card.name, checkpoint, partial.path());
  write_file(path_join(partial.path(), "README.md"), model_card(card, record));
  const std::string results = path_join(partial.path(), ".eval_results");
  int64_t written = 0;
  for (const CardedEvaluation& e : card.evaluations) {
    const std::string text = eval_results(card, e);
    if (text.empty()) continue;
    make_directories(results);
    write_file(path_join(results, str("ucas-", ++written, ".yaml")), text);
  }
  partial.put_in_place();
  log(str("export: ", options.out, ": step ", card.step, ", ", card.evaluations.size(), " evaluations, ", written,
          " files of .eval_results"));
  return kDone;
}

}  // namespace ucas
