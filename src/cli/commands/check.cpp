// `ucas check`: each path through the reader that the other commands would take for it.
#include "cli/commands/check.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/options/train_options.h"
#include "config/config_file.h"
#include "config/train_config.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "evaluate/benchmark.h"
#include "hf/hub.h"
#include "hf/parameters.h"
#include "hf/peft.h"
#include "records/outputs.h"
#include "records/run_record.h"
#include "study/config.h"
#include "verify/audit/verify_rows.h"
#include "verify/registry.h"

namespace ucas {

namespace {

constexpr int64_t kJsonLimit = int64_t{256} << 20;

std::string parent(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

// --- weights ----------------------------------------------------------------------------------------------------

std::string tensors_summary(const std::vector<StoredTensor>& tensors, const std::string& path) {
  int64_t bytes = 0;
  for (const StoredTensor& t : tensors) bytes += t.bytes;
  const int64_t memory = machine_memory().total;
  if (memory > 0 && bytes > memory) {
    throw Error(ErrorKind::limit, str(printable(path, 400), ": tensors of ", human_bytes(static_cast<double>(bytes)),
                                      ", this machine has ", human_bytes(static_cast<double>(memory)), " of memory"));
  }
  return str(many(tensors.size(), "tensor"), ", ", human_bytes(static_cast<double>(bytes)));
}

std::string config_summary(const ModelConfig& config) {
  return str(config.family->title, ", ", many(config.num_hidden_layers, "layer"), ", ",
             grouped(config.parameter_count()), " parameters");
}

std::string tokenizer_summary(const Tokenizer& tokenizer) { return str(many(tokenizer.vocab_size(), "token")); }

std::string check_checkpoint(const std::string& directory) {
  const ModelConfig config = read_model_config(directory);
  const std::vector<StoredTensor> tensors = list_weights(directory);
  const std::string weights = tensors_summary(tensors, directory);
  check_parameters(config, stored_by_name(text_tensors(tensors, config, directory), directory), directory);
  const Tokenizer tokenizer = Tokenizer::load(directory);
  check_vocabulary(tokenizer.vocab_size(), tokenizer.directory(), config);
  return str("checkpoint: ", config_summary(config), ", ", weights, ", ", tokenizer_summary(tokenizer));
}

std::string check_adapter_directory(const std::string& directory) {
  const PeftAdapter adapter = *find_adapter(directory);
  const std::vector<StoredTensor> tensors = read_safetensors_header(adapter_file(directory));
  const ModelConfig base = read_model_config(adapter.base);
  check_adapter(adapter, base, stored_by_name(tensors, directory), directory);
  return str("adapter: rank ", adapter.lora.rank, ", ", tensors_summary(tensors, directory), ", on ",
             printable(adapter.base, 400));
}

// --- runs -------------------------------------------------------------------------------------------------------

std::string check_run(const std::string& directory) {
  const std::string config = path_join(directory, "config.toml"), eval = path_join(directory, "eval");
  if (exists(config)) make_train_config(read_toml(config)).validate_settings();
  const RunRecord run = read_run(directory);
  size_t responses = 0;
  for (const std::string& name : is_directory(eval) ? list_directory(eval) : std::vector<std::string>()) {
    if (name.ends_with(".outputs.jsonl")) responses += read_outputs(path_join(eval, name)).outputs.size();
  }
  const auto steps = std::ranges::count_if(run.steps.step, [](double s) { return s > 0; });  // 0: a validation before
  std::string text = run.steps.empty() ? "evaluation" : str("run: ", many(steps, "step"));
  if (!run.evaluations.empty()) text += str(", ", many(run.evaluations.size(), "set"), " of figures");
  return text + (responses > 0 ? str(", ", many(responses, "response")) : "");
}

// What `ucas evaluate --out` writes: a directory for each model.
std::string check_evaluations(const std::string& directory) {
  size_t models = 0;
  for (const std::string& name : list_directory(directory)) {
    const std::string model = path_join(directory, name);
    if (!is_directory(path_join(model, "eval"))) continue;
    check_run(model);
    ++models;
  }
  if (models > 0) return str("evaluation of ", many(models, "model"));
  throw Error(ErrorKind::path,
              str(printable(directory, 400),
                  ": holds nothing that ucas knows: expected config.json (a checkpoint), adapter_config.json, "
                  "tokenizer.json, config.toml (a run) or eval/"));
}

std::string check_directory(const std::string& path) {
  const auto holds = [&](const char* name) { return exists(path_join(path, name)); };
  if (holds(kAdapterConfig)) return check_adapter_directory(path);
  if (holds("config.json") || holds("model.safetensors") || holds("model.safetensors.index.json")) {
    return check_checkpoint(path);
  }
  if (holds("config.toml") || holds("steps.jsonl") || holds("eval")) return check_run(path);
  if (holds("tokenizer.json")) return str("tokenizer: ", tokenizer_summary(Tokenizer::load(path)));
  return check_evaluations(path);
}

// --- files ------------------------------------------------------------------------------------------------------

std::string check_toml(const std::string& path) {
  const std::vector<Setting> settings = read_toml(path);
  const auto has = [&](std::string_view key) {
    return std::ranges::find(settings, key, &Setting::key) != settings.end();
  };
  const auto has_table = [&](std::string_view name) {
    return std::ranges::any_of(settings, [&](const Setting& s) { return s.key.starts_with(name); });
  };
  if (has("text")) return str("template ", printable(load_template(path).name));
  if (has("benchmarks")) return str("suite of ", many(load_suite(path).benchmarks.size(), "benchmark"));
  if (has("path")) return str("benchmark ", printable(load_suite(path).benchmarks.front().name));
  if (has("runs") || has_table("run.")) {
    std::vector<Setting> typed;  // what is left to the command line
    if (!has("base.task") && !has("base.model")) typed.push_back({"base.model", "DIR", "check", true});
    const Study study = read_study(path, typed);
    for (const StudyRun& run : study.runs) {
      std::vector<Setting> together = read_config_file(run.config);
      together.insert(together.end(), run.settings.begin(), run.settings.end());
      make_train_config(together).validate_settings();
    }
    return str("study of ", many(study.runs.size(), "row"));
  }
  if (has("init") || has("data")) {
    SftOptions options;
    ucas::apply(options, settings);
    options.sft.validate();
    return "config of a fine-tuning";
  }
  const TrainConfig config = make_train_config(read_config_file(path));
  config.validate_settings();
  return str("config of a training, ", config.title());
}

std::string head_of(const std::string& path, int64_t most) {
  std::string head(static_cast<size_t>(std::min(file_size(path), most)), '\0');
  read_at(path, 0, head.data(), static_cast<int64_t>(head.size()));
  return head;
}

// The first row of a file, as far as it can be read: enough to know what its rows are.
Json first_row(const std::string& path) try {
  struct Found {
    Json row;
  };
  if (!path.ends_with(".jsonl")) {
    try {
      read_json_lines(path, BadRows::stop, [](const JsonRow& row) { throw Found{row.value}; });
    } catch (const Found& found) {
      return found.row;
    }
  }
  const std::string head = head_of(path, kLineLimit);
  return parse_json(std::string_view(head).substr(0, head.find('\n')), str(printable(path, 400), ":1"));
} catch (const Error& error) {
  if (error.kind() != ErrorKind::limit) return nullptr;  // its reader says what is wrong
  throw Error(path.ends_with(".jsonl") ? ErrorKind::data_line : ErrorKind::limit, error.what());
}

}  // namespace

void check_tests(std::span<const Problem> problems) {
  std::unique_ptr<Grader> grader;
  for (const Problem& problem : problems) {
    if (problem.gold.size() != 1 || !holds_tests(problem.gold.front())) continue;
    if (grader == nullptr) grader = make_grader(GraderKind::code);
    grader->check_gold(problem.gold, str("problem ", printable(problem.id)));
  }
}

namespace {

std::string check_rows(const std::string& path) {
  if (path.ends_with(".outputs.jsonl")) return many(read_outputs(path).outputs.size(), "response");
  const Json first = first_row(path);
  if (first.is_object() && first.contains("prediction") && first.contains("gold")) {
    return str(many(read_verify_rows(path, BadRows::stop, false).size(), "answer"), " to verify");
  }
  if (!first.is_object() || (!first.contains("response") && !first.contains("response_ids"))) {
    ProblemOptions options;
    if (first.is_object() && first.contains("question_content")) {  // LiveCodeBench's
      options.columns = {.id = "question_id", .problem = "question_content"};
    }
    const std::vector<Problem> problems = read_problems({path}, options);
    check_tests(problems);
    return many(problems.size(), "problem");
  }
  const LineCounts counts = read_json_lines(path, BadRows::stop, [](const JsonRow& row) {
    for (const std::string name : {"prompt", "response"}) {
      row.value.contains(name + "_ids") ? void(ids_field(row, name + "_ids", INT32_MAX)) : void(text_field(row, name));
    }
  });
  return many(counts.rows, "demonstration");
}

std::string check_json(const std::string& path) {
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const bool known_name = name == "config.json" || name == kAdapterConfig || name == "tokenizer.json";
  const bool named = known_name || name.ends_with(".index.json");
  if (!named && is_row_list(head_of(path, kListHead))) return check_rows(path);
  const Json json = named ? Json() : read_json(path, kJsonLimit);
  const auto is = [&](const char* by_name, std::initializer_list<const char*> by_key) {
    return name.ends_with(by_name) ||
           (json.is_object() && std::ranges::any_of(by_key, [&](const char* key) { return json.contains(key); }));
  };
  if (is(".index.json", {"weight_map"})) return str("index: ", tensors_summary(read_sharded_headers(path), path));
  if (name == kAdapterConfig) return str("adapter_config: rank ", find_adapter(parent(path))->lora.rank);
  if (is("tokenizer.json", {"added_tokens", "pre_tokenizer"})) {
    return str("tokenizer: ", tokenizer_summary(Tokenizer::load(path)));
  }
  if (is("config.json", {"model_type", "architectures", "hidden_size"})) {
    return str("config: ", config_summary(read_model_config_file(path)));
  }
  return check_rows(path);
}

std::string check_path(const std::string& asked) {
  const std::string path = checkpoint_directory(asked);
  if (is_directory(path)) return check_directory(path);
  const int64_t size = file_size(path);  // refuses what is no file
  if (path.ends_with(".toml")) return check_toml(path);
  if (path.ends_with(".json")) return check_json(path);
  char head[9] = {};
  if (size >= 9) read_at(path, 0, head, 9);
  const bool rows = path.ends_with(".jsonl") || path.ends_with(".csv") || path.ends_with(".tsv") ||
                    path.ends_with(".parquet") || path.ends_with(".gz") || head[0] == '{' || head[0] == '[';
  if (path.ends_with(".gguf"))
    throw Error(ErrorKind::unsupported, str(printable(path, 400), ": a GGUF file; `python -m ucas.convert ",
                                            printable(path, 400), " DIR` makes a checkpoint of it"));
  if (path.ends_with(".safetensors") || (!rows && head[8] == '{')) {
    return str("safetensors: ", tensors_summary(read_safetensors_header(path), path));
  }
  if (rows) return check_rows(path);
  throw Error(ErrorKind::unsupported,
              str(printable(path, 400), ": neither its name nor its content says what it is; expected ",
                  ".safetensors, .json, .jsonl, .csv, .tsv, .parquet, .gz, .toml or a directory"));
}

}  // namespace

void CheckOptions::fields(Fields& f) {
  f.field("summary", summary, "print what data files hold: columns, lengths, kinds of right answers, duplicates");
  f.field("ids", ids, "JSONL file of rows {text, ids} to compare with the ids of the tokenizer PATH");
  f.field("decode", decode, "compare the decoded text, too, under --ids");
  f.field("prompt", prompt, "add the tokenizer's prefix (BOS) to each text under --ids, as for a prompt");
  f.field("tokenizer", tokenizer, OptionNames::tokenizer,
          "directory with tokenizer.json, for lengths in tokens under --summary; empty = characters alone");
  f.field("show", show, Range{0, 1e6}, "number of problems or differences to print");
  f.section("columns", columns);
}

int run_check(const Words& words) {
  const CommandLine line = parse_command_line(words, {"summary", "decode", "prompt"});
  CheckOptions options;
  ucas::apply(options, line.settings);
  resolve_hub_names(options);
  const Words& paths = line.positionals;
  if (paths.empty()) throw Error(ErrorKind::usage, "check: PATH is missing; see ucas check --help");
  if (options.summary) return summarize_data(paths, options);
  if (!options.ids.empty()) {
    if (paths.size() > 1) throw Error(ErrorKind::usage, "check: --ids takes one PATH, the tokenizer's directory");
    return compare_ids(checkpoint_directory(paths[0]), options);
  }
  int result = kDone;
  for (const std::string& path : paths) {
    try {
      out(str(printable(path, 400), ": ok (", check_path(path), ")\n"));
    } catch (const Error& error) {
      const std::string message = join(split(error.what(), '\n'), "; "), shown = printable(path, 400);
      const bool named = message.find(shown) != std::string::npos;
      log(str("ucas: error[", error.word(), "]: ", named ? "" : shown + ": ", message));
      result = std::max(result, error.exit_code());  // a disk that fails is not the file's fault
    }
  }
  return result;
}

std::string options_check() { return options_help(CheckOptions{}); }

}  // namespace ucas
