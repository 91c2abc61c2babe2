#include "evaluate/card.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "text/tokenizer.h"
#include "verify/version.h"

namespace ucas {

namespace {

constexpr const char* kFormat = "ucas-card-1";
constexpr int64_t kCardLimit = int64_t{64} << 20;
constexpr int64_t kConfigLimit = int64_t{4} << 20;
// A card ends with this, the hash of everything before it, and kTail.
constexpr std::string_view kSelf = ",\n  \"sha256\": \"";
constexpr std::string_view kTail = "\"\n}\n";
constexpr size_t kDigits = 64;

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
         name == "model.safetensors.index.json" || std::ranges::find(of_tokenizer, name) != of_tokenizer.end() ||
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

OrderedJson json_of(const Template& form) {
  return {{"name", form.name},       {"text", form.text}, {"system", form.system},
          {"special", form.special}, {"stop", form.stop}, {"sha256", template_sha256(form)}};
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
  out["template"] = json_of(set.form);
  out["stop_ids"] = set.stop_ids;
  out["stop_texts"] = set.stop_texts;
  out["max_tokens"] = set.max_tokens;
  if (!set.max_tokens_of.empty()) out["max_tokens_of"] = set.max_tokens_of;
  out["grader"] = {{"kind", set.grader}, {"extract", word_of(set.extract)}, {"version", kGraderVersion}};
  return out;
}

OrderedJson model_json(const CardInput& input, const EvalResult& result) {
  OrderedJson out;
  out["label"] = result.label;
  out["path"] = input.model;
  out["step"] = result.step < 0 ? OrderedJson(nullptr) : OrderedJson(result.step);
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

// Typed reads from a card; every refusal names the file and the key.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  Reader operator[](const char* key) const {
    if (!json_.is_object()) refuse("an object", json_);
    if (!json_.contains(key))
      throw Error("header_json", str(where_, ": \"", key,
                                     "\" is missing; was it written by another version? The same "
                                     "`ucas evaluate` makes it anew, without generating anything again"));
    return {json_.at(key), str(where_, ": ", key)};
  }
  std::vector<Reader> list() const {
    if (!json_.is_array()) refuse("a list", json_);
    std::vector<Reader> out;
    for (size_t i = 0; i < json_.size(); ++i) out.emplace_back(json_[i], str(where_, "[", i, "]"));
    return out;
  }
  std::string text() const {
    if (!json_.is_string()) refuse("text", json_);
    return json_.get<std::string>();
  }
  int64_t whole() const {
    const bool huge = json_.is_number_unsigned() && json_.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (!json_.is_number_integer() || huge) refuse("a whole number", json_);
    return json_.get<int64_t>();
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const Reader& item : list()) out.push_back(item.text());
    return out;
  }
  CardFile file() const {
    CardFile out{(*this)["name"].text(), (*this)["size"].whole(), (*this)["sha256"].text()};
    return out;
  }
  Setting setting(const std::string& key) const {
    Setting out{.key = key, .value = false, .where = where_};
    if (json_.is_boolean()) {
      out.value = json_.get<bool>();
    } else if (json_.is_number_integer()) {
      out.value = whole();
    } else if (json_.is_number()) {
      out.value = json_.get<double>();
    } else if (json_.is_string()) {
      out.value = text();
    } else {
      std::vector<int64_t> numbers;
      for (const Reader& item : list()) numbers.push_back(item.whole());
      out.value = numbers;
    }
    return out;
  }
  [[noreturn]] void refuse(const char* expected, const Json& got) const {
    throw Error("header_json", str(where_, ": expected ", expected, ", got ", got.type_name()));
  }
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

EvalConfig read_config(const Reader& sampling) {
  EvalConfig config;
  std::vector<Setting> settings;
  if (!sampling.json().is_object()) sampling.refuse("an object", sampling.json());
  for (const auto& [key, value] : sampling.json().items()) {
    if (key != "keys") settings.push_back(sampling[key.c_str()].setting(key));
  }
  ucas::apply(config, settings);
  return config;
}

Card::Set read_set(const Reader& row) {
  Card::Set set;
  set.as.name = row["name"].text();
  set.as.title = row["title"].text();
  for (const Reader& file : row["files"].list()) {
    set.files.push_back(file.file());
    set.as.files.push_back(set.files.back().name);
  }
  const Reader columns = row["columns"];
  if (!columns.json().is_object()) columns.refuse("an object", columns.json());
  std::vector<Setting> names;
  for (const auto& [key, value] : columns.json().items()) names.push_back(columns[key.c_str()].setting(key));
  ucas::apply(set.as.columns, names);
  set.problems = row["problems"].whole();
  set.problems_sha256 = row["problems_sha256"].text();
  const Reader form = row["template"];
  set.as.form = {form["name"].text(), form["text"].text(), form["system"].text(), form["special"].texts(),
                 form["stop"].texts()};
  set.template_sha256 = form["sha256"].text();
  for (const Reader& id : row["stop_ids"].list()) set.as.stop_ids.push_back(static_cast<int32_t>(id.whole()));
  set.as.stop_texts = row["stop_texts"].texts();
  set.as.max_tokens = row["max_tokens"].whole();
  if (row.json().contains("max_tokens_of")) {
    const Reader of = row["max_tokens_of"];
    for (const auto& [id, limit] : of.json().items()) set.as.max_tokens_of[id] = of[id.c_str()].whole();
  }
  set.as.grader = row["grader"]["kind"].text();
  const Reader extract = row["grader"]["extract"];
  const auto named = std::find(std::begin(kExtracts), std::end(kExtracts), extract.text());
  if (named == std::end(kExtracts)) {
    throw Error("header_json", str(extract.where(), ": \"", printable(extract.text()),
                                   "\", expected strict, lenient, answer_tag or bare"));
  }
  set.as.extract = static_cast<Extract>(named - std::begin(kExtracts));
  return set;
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
    lines += line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }
  return sha256_of_text(lines);
}

std::string template_sha256(const Template& form) {
  const OrderedJson all = {
      {"text", form.text}, {"system", form.system}, {"special", form.special}, {"stop", form.stop}};
  return sha256_of_text(all.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

std::string write_card(const CardInput& input, const EvalResult& result, std::span<const Problem> problems,
                       const std::string& directory, const std::string& name) {
  const std::string figures = path_join(directory, name + ".json");
  OrderedJson card;
  card["format"] = kFormat;
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
  std::string text = card.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
  text.resize(text.rfind("\n}"));  // reopened for the last key
  const std::string sha256 = sha256_of_text(text);
  write_file(path_join(directory, name + ".card.json"), str(text, kSelf, sha256, kTail));
  return sha256.substr(0, 8);
}

Card read_card(const std::string& path) {
  const std::string text = read_file(path, kCardLimit);
  const Json json = parse_json(text, path);
  const Reader root(json, printable(path, 400));
  if (root["format"].text() != kFormat) {
    throw Error("header_json", str(printable(path, 400), ": format \"", printable(root["format"].text()),
                                   "\", expected \"", kFormat, "\""));
  }
  Card card;
  card.path = path;
  card.sha256 = root["sha256"].text();
  const size_t self = text.rfind(kSelf);
  const bool whole = self != std::string::npos && text.size() == self + kSelf.size() + kDigits + kTail.size();
  card.computed =
      whole ? sha256_of_text(std::string_view(text).substr(0, self)) : "none: the text does not end as a card";
  card.version = root["ucas"].text();
  card.made = root["made"].text();
  card.label = root["model"]["label"].text();
  card.model = root["model"]["path"].text();
  if (!root["model"]["step"].json().is_null()) card.step = root["model"]["step"].whole();
  for (const Reader& file : root["model"]["files"].list()) card.model_files.push_back(file.file());
  card.suite = root["suite"].text();
  card.keys = root["sampling"]["keys"].text();
  card.config = read_config(root["sampling"]);
  for (const Reader& row : root["benchmarks"].list()) {
    card.benchmarks.push_back(read_set(row));
    card.grader_version = row["grader"]["version"].whole();
  }
  card.outputs = root["files"]["outputs"].file();
  card.problems = root["files"]["problems"].file();
  card.figures = root["files"]["figures"].file();
  card.figures_json = root["figures"].json().dump();
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
