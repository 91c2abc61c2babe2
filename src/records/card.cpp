#include "records/card.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/text/json.h"
#include "base/text/json_object.h"
#include "records/evaluation.h"
#include "records/run/run_directory.h"
#include "text/tokenizer/tokenizer.h"
#include "verify/version.h"

namespace ucas {

namespace {

constexpr const char* kCardFormat = "ucas-card-1";
constexpr int64_t kCardLimit = int64_t{64} << 20;
constexpr int64_t kConfigLimit = int64_t{4} << 20;
// A card ends with this, the hash of everything before it, and kTail.
constexpr std::string_view kSelf = ",\n  \"sha256\": \"";
constexpr std::string_view kTail = "\"\n}\n";
constexpr size_t kDigits = 64, kShownDigits = 8;

constexpr auto kExtracts = names(Extract{});

// Of config.json: what a reader needs to know which model this is. Its hash stands for the rest.
constexpr const char* kModelKeys[] = {
    "architectures",       "model_type", "hidden_size",  "intermediate_size",       "num_hidden_layers",
    "num_attention_heads", "vocab_size", "eos_token_id", "max_position_embeddings", "num_key_value_heads",
    "tie_word_embeddings", "rope_theta", "torch_dtype",  "transformers_version"};

// Files of a checkpoint that decide what it answers; moments of the optimizer and models beside the policy do not.
bool decides(const std::string& name) {
  const std::vector<std::string>& of_tokenizer = tokenizer_files();
  return name == "config.json" || name == "generation_config.json" || name == "model.safetensors" ||
         name == "model.safetensors.index.json" || name == "adapter_config.json" ||
         name == "adapter_model.safetensors" || std::ranges::find(of_tokenizer, name) != of_tokenizer.end() ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

OrderedJson json_of(const CardFile& file) {
  return {{"name", file.name}, {"size", file.size}, {"sha256", file.sha256}};
}

OrderedJson json_of(const EvalConfig& config) {
  OrderedJson out;
  for (const Setting& setting : parse_toml(to_toml(config), "evaluation")) {
    std::visit([&](const auto& value) { out[setting.key] = value; }, setting.value);
  }
  return out;
}

// What decides the prompts. Templates that are no chat template have the keys that they always had.
OrderedJson content_of(const Template& prompt_template) {
  OrderedJson out = {{"text", prompt_template.text},
                     {"system", prompt_template.system},
                     {"special", prompt_template.special},
                     {"stop", prompt_template.stop}};
  if (!prompt_template.examples.empty()) {
    out["shots"] = prompt_template.shots;
    out["example"] = prompt_template.example;
    out["examples"] = OrderedJson::array();
    for (const Template::Example& e : prompt_template.examples) {
      out["examples"].push_back(OrderedJson{{"question", e.question}, {"answer", e.answer}});
    }
  }
  if (!prompt_template.chat) return out;
  out["chat"] = true;
  out["user"] = prompt_template.user;
  out["set"] = prompt_template.set;
  out["tokens"] = OrderedJson::object();
  for (const auto& [name, text] : prompt_template.tokens) out["tokens"][name] = text;
  return out;
}

OrderedJson json_of(const Template& prompt_template) {
  OrderedJson out = {{"name", prompt_template.name}};
  out.update(content_of(prompt_template));
  out["sha256"] = template_sha256(prompt_template);
  return out;
}

OrderedJson json_of(const CardBenchmark& set, std::span<const Problem> problems) {
  OrderedJson out;
  out["name"] = set.name;
  out["title"] = set.title;
  out["files"] = OrderedJson::array();
  for (const std::string& file : set.files) out["files"].push_back(json_of(card_file(file, file)));
  out["problems"] =
      std::count_if(problems.begin(), problems.end(), [&](const Problem& p) { return p.source == set.name; });
  out["problems_sha256"] = problems_sha256(problems, set.name);
  out["columns"] = OrderedJson::object();
  for (const Setting& setting : parse_toml(to_toml(set.columns), "columns")) {
    const std::string& column = std::get<std::string>(setting.value);
    if (!column.empty()) out["columns"][setting.key] = column;
  }
  out["template"] = json_of(set.prompt_template);
  out["stop_ids"] = set.stop_ids;
  out["stop_texts"] = set.stop_texts;
  if (!set.end_texts.empty()) out["end_texts"] = set.end_texts;
  out["max_tokens"] = set.max_tokens;
  if (!set.max_tokens_of.empty()) out["max_tokens_of"] = set.max_tokens_of;
  out["grader"] = {{"kind", set.grader}, {"extract", word_of(set.extract)}, {"version", kGraderVersion}};
  return out;
}

OrderedJson model_json(const CardInput& input, const EvalRecord& result) {
  OrderedJson out;
  out["label"] = result.label;
  out["path"] = input.model;
  out["step"] = result.step < 0 ? OrderedJson(nullptr) : OrderedJson(result.step);
  if (!input.origin.empty()) {
    out["origin"] = input.origin;
    out["served"] = input.served;
  }
  out["config"] = OrderedJson::object();
  const std::string path = path_join(input.model, "config.json");
  if (exists(path)) {
    const Json config = read_json(path, kConfigLimit);
    for (const char* key : kModelKeys) {
      if (config.is_object() && config.contains(key)) out["config"][key] = OrderedJson::parse(config[key].dump());
    }
  }
  out["files"] = OrderedJson::array();
  for (const CardFile& file : input.model_files) out["files"].push_back(json_of(file));
  return out;
}

OrderedJson machine_json(const RunEnvironment& machine) {
  return {{"torch", machine.torch},
          {"isa", machine.isa},
          {"isa_reason", machine.isa_reason},
          {"device", machine.device},
          {"threads", machine.threads}};
}

CardFile file_of(const JsonObject& file) { return {file.text("name"), file.whole("size"), file.text("sha256")}; }

std::vector<CardFile> files_of(const JsonObject& object) {
  std::vector<CardFile> files;
  for (const JsonObject& file : object.children("files")) files.push_back(file_of(file));
  return files;
}

EvalConfig config_of(const JsonObject& sampling) {
  EvalConfig config;
  std::vector<Setting> settings = sampling.settings();
  std::erase_if(settings, [](const Setting& setting) { return setting.key == "keys"; });
  ucas::apply(config, settings);
  return config;
}

Card::Set set_of(const JsonObject& row) {
  Card::Set set;
  set.as.name = row.text("name");
  set.as.title = row.text("title");
  set.files = files_of(row);
  for (const CardFile& file : set.files) set.as.files.push_back(file.name);
  ucas::apply(set.as.columns, row.child("columns").settings());
  set.problems = row.whole("problems");
  set.problems_sha256 = row.text("problems_sha256");
  const JsonObject prompt_template = row.child("template");
  set.as.prompt_template = {prompt_template.text("name"), prompt_template.text("text"), prompt_template.text("system"),
                            prompt_template.texts("special"), prompt_template.texts("stop")};
  if (prompt_template.has("examples")) {
    set.as.prompt_template.shots = prompt_template.whole("shots");
    set.as.prompt_template.example = prompt_template.text("example");
    for (const JsonObject& e : prompt_template.children("examples")) {
      set.as.prompt_template.examples.push_back({e.text("question"), e.text("answer")});
    }
  }
  if (prompt_template.truth_or("chat", false)) {
    set.as.prompt_template.chat = true;
    set.as.prompt_template.user = prompt_template.text("user");
    set.as.prompt_template.set = prompt_template.texts("set");
    const JsonObject tokens = prompt_template.child("tokens");
    for (const std::string& key : tokens.keys()) set.as.prompt_template.tokens.emplace_back(key, tokens.text(key));
  }
  set.template_sha256 = prompt_template.text("sha256");
  set.as.stop_ids = row.ids("stop_ids");
  set.as.stop_texts = row.texts("stop_texts");
  if (row.has("end_texts")) set.as.end_texts = row.texts("end_texts");
  set.as.max_tokens = row.whole("max_tokens");
  if (row.has("max_tokens_of")) {
    const JsonObject limits = row.child("max_tokens_of");
    for (const std::string& id : limits.keys()) set.as.max_tokens_of[id] = limits.whole(id);
  }
  const JsonObject grader = row.child("grader");
  set.as.grader = grader.text("kind");
  const auto named = std::ranges::find(kExtracts, grader.text("extract"));
  if (named == std::end(kExtracts)) grader.refuse("extract", "strict, lenient, answer_tag or bare");
  set.as.extract = static_cast<Extract>(named - std::begin(kExtracts));
  return set;
}

// A value of the card as text, cut to `limit`; "" where there is none.
std::string shown(const JsonObject& object, const char* key, size_t limit = 120) {
  const Json* value = object.find(key);
  if (!value) return "";
  return printable(value->is_string() ? value->get<std::string>() : json_text(*value), limit);
}

std::string shown(const JsonObject& object, const char* child, const char* key) {
  return object.has(child) ? shown(object.child(child), key) : "";
}

std::string weights_digest(const JsonObject& model) {
  std::vector<std::string> digests;
  for (const JsonObject& file : model.children_or_none("files")) {
    if (shown(file, "name").ends_with(".safetensors")) digests.push_back(shown(file, "sha256"));
  }
  if (digests.empty()) return "";
  return digests.size() == 1 ? digests[0].substr(0, kShownDigits)
                             : hash_of_text(join(digests, " ")).substr(0, kShownDigits);
}

}  // namespace

CardFile card_file(const std::string& path, const std::string& name) {
  return {name, file_size(path), sha256_of_file(path)};
}

std::vector<CardFile> hash_model_files(const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(directory)) {
    if (decides(name)) names.push_back(name);
  }
  // Reading is what takes time: shards side by side, as many as a disk likes.
  constexpr size_t kAtOnce = 4;
  std::vector<CardFile> files(names.size());
  std::vector<std::future<void>> workers;
  for (size_t first = 0; first < std::min(kAtOnce, names.size()); ++first) {
    workers.push_back(std::async(std::launch::async, [&, first] {
      for (size_t i = first; i < names.size(); i += kAtOnce)
        files[i] = card_file(path_join(directory, names[i]), names[i]);
    }));
  }
  for (std::future<void>& worker : workers) worker.get();
  return files;
}

std::string problems_sha256(std::span<const Problem> problems, const std::string& source) {
  std::string lines;
  for (const Problem& problem : problems) {
    if (problem.source != source) continue;
    OrderedJson line = {{"id", problem.id}, {"problem", problem.text}, {"gold", problem.gold}};
    if (!problem.subject.empty()) line["subject"] = problem.subject;
    lines += json_text(line) + "\n";
  }
  return sha256_of_text(lines);
}

std::string template_sha256(const Template& prompt_template) {
  return sha256_of_text(json_text(content_of(prompt_template)));
}

std::string write_card(const CardInput& input, const EvalRecord& result, std::span<const Problem> problems,
                       const std::string& directory, const std::string& name) {
  const std::string figures = path_join(directory, name + ".json");
  OrderedJson card;
  card["format"] = kCardFormat;
  card["ucas"] = version();
  card["made"] = utc_now();
  card["machine"] = machine_json(input.machine);
  card["model"] = model_json(input, result);
  card["suite"] = input.suite;
  card["benchmarks"] = OrderedJson::array();
  for (const CardBenchmark& set : input.benchmarks) card["benchmarks"].push_back(json_of(set, problems));
  card["sampling"] = json_of(result.config);
  card["sampling"]["keys"] = input.keys;
  card["figures"] = OrderedJson::parse(read_file(figures, kCardLimit));
  card["files"] = OrderedJson::object();
  for (const auto& [what, ending] :
       {std::pair{"outputs", ".outputs.jsonl"}, {"problems", ".jsonl"}, {"figures", ".json"}}) {
    card["files"][what] = json_of(card_file(path_join(directory, name + ending), name + ending));
  }
  std::string text = json_text(card, 2);
  text.resize(text.rfind("\n}"));  // reopened for the last key
  const std::string sha256 = sha256_of_text(text);
  write_file(path_join(directory, name + ".card.json"), str(text, kSelf, sha256, kTail));
  return sha256.substr(0, 8);
}

Card read_card(const std::string& path) {
  const std::string text = read_file(path, kCardLimit);
  const JsonObject root =
      JsonObject::parse(text, printable(path, 400), ErrorKind::header_json,
                        "the same `ucas evaluate` makes the card anew, without generating anything again");
  root.format(kCardFormat, "was it written by another version?");
  Card card;
  card.path = path;
  card.sha256 = root.text("sha256");
  const size_t self = text.rfind(kSelf);
  const bool whole = self != std::string::npos && text.size() == self + kSelf.size() + kDigits + kTail.size();
  card.computed =
      whole ? sha256_of_text(std::string_view(text).substr(0, self)) : "none: the text does not end as a card";
  card.version = root.text("ucas");
  card.made = root.text("made");
  const JsonObject model = root.child("model"), sampling = root.child("sampling"), files = root.child("files");
  card.label = model.text("label");
  card.model = model.text("path");
  card.origin = model.text_or("origin", "");
  card.step = model.whole_or("step", -1);
  card.model_files = files_of(model);
  card.suite = root.text("suite");
  card.keys = sampling.text("keys");
  card.config = config_of(sampling);
  for (const JsonObject& row : root.children("benchmarks")) {
    card.benchmarks.push_back(set_of(row));
    card.grader_version = row.child("grader").whole("version");
  }
  card.outputs = file_of(files.child("outputs"));
  card.problems = file_of(files.child("problems"));
  card.figures = file_of(files.child("figures"));
  card.figures_json = root.child("figures").json().dump();
  return card;
}

CardSummary read_card_summary(const std::string& path) {
  constexpr size_t kMostSets = 100;
  const JsonObject root = JsonObject::read(path, kConfigLimit);
  CardSummary card;
  card.name = shown(root, "sha256").substr(0, kShownDigits);
  if (root.has("model")) card.model = weights_digest(root.child("model"));
  std::vector<std::string> sampling;
  for (const char* key : {"samples", "temperature", "top_p", "top_k", "min_p", "seed"}) {
    const std::string value = shown(root, "sampling", key);
    if (!value.empty()) sampling.push_back(str(key, " ", value));
  }
  card.sampling = join(sampling, ", ");
  for (const JsonObject& set : root.children_or_none("benchmarks")) {
    if (card.sets.size() == kMostSets) break;
    card.sets.push_back(
        {shown(set, "name"), shown(set, "problems"), shown(set, "problems_sha256").substr(0, kShownDigits),
         str(shown(set, "template", "name"), " ", shown(set, "template", "sha256").substr(0, kShownDigits)),
         shown(set, "stop_texts", 200), shown(set, "max_tokens"),
         join({shown(set, "grader", "kind"), shown(set, "grader", "extract")}, ", ")});
  }
  return card;
}

std::string card_name(const std::string& eval_directory, const std::string& name) {
  const std::string path = path_join(eval_directory, name + ".card.json");
  try {
    return exists(path) ? read_card(path).name() : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace ucas
