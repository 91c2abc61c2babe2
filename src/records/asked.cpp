#include "records/asked.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "base/text/json.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

constexpr size_t kShownDigits = 8, kMostSets = 100;

// Files of a checkpoint that decide what it answers; moments of the optimizer and models beside the policy do not.
bool decides(const std::string& name) {
  const std::vector<std::string>& of_tokenizer = tokenizer_files();
  return name == "config.json" || name == "generation_config.json" || name == "model.safetensors" ||
         name == "model.safetensors.index.json" || name == "adapter_config.json" ||
         name == "adapter_model.safetensors" || std::ranges::find(of_tokenizer, name) != of_tokenizer.end() ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
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

template <class Enum>
Enum choice_of(const JsonObject& object, const char* key) {
  const auto known = names(Enum{});
  const auto found = std::ranges::find(known, object.text(key));
  if (found == known.end()) {
    object.refuse(key, "one of " + join(std::vector<std::string>(known.begin(), known.end()), ", "));
  }
  return static_cast<Enum>(found - known.begin());
}

AskedSet set_of(const JsonObject& row) {
  return {.name = row.text("name"),
          .prompt_template = row.text("template"),
          .template_sha256 = row.text("template_sha256"),
          .stop_texts = row.texts("stop_texts"),
          .max_tokens = row.whole("max_tokens"),
          .problems = row.whole("problems"),
          .problems_sha256 = row.text("problems_sha256"),
          .grader = choice_of<GraderKind>(row, "grader"),
          .extract = choice_of<Extract>(row, "extract")};
}

}  // namespace

std::vector<ModelFile> hash_model_files(const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(directory)) {
    if (decides(name)) names.push_back(name);
  }
  // Reading is what takes time: shards side by side, as many as a disk likes.
  constexpr int64_t kAtOnce = 4;
  std::vector<ModelFile> files(names.size());
  share_out(names.size(), 1, kAtOnce, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const std::string path = path_join(directory, names[i]);
      files[i] = {names[i], file_size(path), sha256_of_file(path)};
    }
  });
  return files;
}

std::string Asked::weights() const {
  std::vector<std::string> digests;
  for (const ModelFile& file : model_files) {
    if (file.name.ends_with(".safetensors")) digests.push_back(file.sha256);
  }
  if (digests.empty()) return "";
  return (digests.size() == 1 ? digests[0] : hash_of_text(join(digests, " "))).substr(0, kShownDigits);
}

std::string name_and_hash(const std::string& name, const std::string& sha256) {
  return str(printable(name), " (", printable(sha256.substr(0, kShownDigits)), ")");
}

OrderedJson to_json(const Asked& asked) {
  OrderedJson out = {{"ucas", asked.version}, {"grader_version", asked.grader_version}, {"keys", asked.keys}};
  if (!asked.origin.empty()) out["origin"] = asked.origin;
  out["model_files"] = OrderedJson::array();
  for (const ModelFile& file : asked.model_files) {
    out["model_files"].push_back({{"name", file.name}, {"size", file.size}, {"sha256", file.sha256}});
  }
  out["sets"] = OrderedJson::array();
  for (const AskedSet& set : asked.sets) {
    out["sets"].push_back({{"name", set.name},
                           {"problems", set.problems},
                           {"problems_sha256", set.problems_sha256},
                           {"template", set.prompt_template},
                           {"template_sha256", set.template_sha256},
                           {"stop_texts", set.stop_texts},
                           {"max_tokens", set.max_tokens},
                           {"grader", word_of(set.grader)},
                           {"extract", word_of(set.extract)}});
  }
  return out;
}

Asked asked_of(const JsonObject& object) {
  Asked asked{.version = object.text("ucas"),
              .grader_version = object.whole("grader_version"),
              .origin = object.text_or("origin", ""),
              .keys = object.text("keys")};
  for (const JsonObject& file : object.children("model_files")) {
    asked.model_files.push_back({file.text("name"), file.whole("size"), file.text("sha256")});
  }
  for (const JsonObject& row : object.children("sets")) {
    if (asked.sets.size() == kMostSets) object.refuse(str("\"sets\": expected at most ", kMostSets));
    asked.sets.push_back(set_of(row));
  }
  return asked;
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

}  // namespace ucas
