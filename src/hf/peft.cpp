#include "hf/peft.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "hf/config_reader.h"
#include "hf/hub.h"
#include "hf/parameters.h"

namespace ucas {

namespace {

constexpr int64_t kPeftLimit = int64_t{1} << 20;

// PEFT writes {} and [] where it means nothing.
bool is_given(const ConfigReader& config, const char* key) {
  const Json* value = config.find(key);
  return value != nullptr && !(value->is_structured() && value->empty());
}

// Some initialisations subtract the adapter's first product from the base, which then differs from that on disk.
void require_unchanged_base(const ConfigReader& config) {
  const Json* value = config.find("init_lora_weights");
  if (value == nullptr || !value->is_string()) return;
  const std::string kind = value->get<std::string>();
  for (const char* other : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (kind.starts_with(other)) {
      config.refuse(
          ErrorKind::unsupported, "init_lora_weights",
          "such an adapter changes its base when it begins; merge it with peft and load the result, or let peft "
          "save it as plain LoRA (path_initial_model_for_weight_conversion)");
    }
  }
}

// A setting that ucas has not is fine as long as it is off.
void require_off(const ConfigReader& config, const char* key) {
  if (!is_given(config, key)) return;
  const Json& value = *config.find(key);
  if (value == false || value == 0 || value == 0.0 || value == "none") return;
  config.refuse(ErrorKind::unsupported, key,
                "ucas trains plain LoRA only; merge the adapter with peft and load the result");
}

std::vector<std::string> module_names(const ConfigReader& config, const char* key) {
  if (!is_given(config, key)) return {};
  const bool one = config.find(key)->is_string();
  std::vector<std::string> names = config.texts_or_text(key);
  if (!one) std::ranges::sort(names);
  return names;
}

constexpr int64_t kAdapterLimit = int64_t{1} << 20;

}  // namespace

std::vector<std::string> adaptable_modules() {
  std::vector<std::string> names;  // every family's
  visit_block(ModelConfig{}, [&](const BlockParameter& p) {
    const std::string name = p.name;
    if (!p.is_norm()) names.push_back(name.substr(name.rfind('.') + 1));
  });
  return names;
}

std::string adapter_file(const std::string& directory) { return path_join(directory, "adapter_model.safetensors"); }

std::optional<PeftAdapter> find_adapter(const std::string& directory) {
  const std::string path = path_join(directory, kAdapterConfig);
  if (!exists(path)) return std::nullopt;
  const Json json = read_config_json(path, kPeftLimit);
  const ConfigReader config(json, path);
  if (config.word("peft_type").value_or("") != "LORA")
    config.refuse(ErrorKind::unsupported, "peft_type", "ucas reads \"LORA\" only");
  for (const char* key :
       {"bias", "use_dora", "lora_bias", "fan_in_fan_out", "rank_pattern", "alpha_pattern", "layers_to_transform",
        "exclude_modules", "target_parameters", "use_qalora", "alora_invocation_tokens", "trainable_token_indices",
        "megatron_config", "layer_replication", "kasa_config", "use_bdlora", "arrow_config", "monteclora_config"}) {
    require_off(config, key);
  }
  require_unchanged_base(config);
  PeftAdapter adapter;
  const double rank = config.positive("r").value_or(8);
  if (rank != std::floor(rank) || rank > 4096)
    config.refuse(ErrorKind::config, "r", "expected a whole number, 1 .. 4096");
  adapter.lora.rank = static_cast<int64_t>(rank);
  adapter.lora.alpha = config.positive("lora_alpha").value_or(8);
  // Rank-stabilised: alpha / sqrt(rank).
  if (config.truth_or("use_rslora", false)) adapter.lora.alpha *= std::sqrt(rank);
  if (!std::isfinite(static_cast<float>(adapter.lora.alpha))) {
    config.refuse(ErrorKind::config, "lora_alpha", "expected a number that 32 bits can hold");
  }
  const Json* targets = config.find("target_modules");
  if (targets != nullptr && targets->is_string() && *targets != "all-linear") {
    config.refuse(ErrorKind::unsupported, "target_modules",
                  "a regular expression: write the names that it matches as a list");
  }
  adapter.lora.target_modules = module_names(config, "target_modules");
  std::vector<std::string> all = adaptable_modules();
  std::sort(all.begin(), all.end());
  if (adapter.lora.target_modules == all) adapter.lora.target_modules = {"all-linear"};
  adapter.lora.modules_to_save = module_names(config, "modules_to_save");
  if (const Json* dropout = config.find("lora_dropout")) {
    if (dropout->is_number()) adapter.dropout = dropout->get<double>();
    if (!dropout->is_number() || !(adapter.dropout >= 0 && adapter.dropout < 1))
      config.refuse(ErrorKind::config, "lora_dropout", "expected a number from 0 to below 1");
  }
  adapter.ties = config.truth_or("ensure_weight_tying", false);
  adapter.base = base_directory(directory);
  return adapter;
}

void write_adapter_config(const PeftAdapter& adapter, const std::string& directory) {
  OrderedJson json;
  const LoraConfig& lora = adapter.lora;
  json["peft_type"] = "LORA";
  json["task_type"] = "CAUSAL_LM";
  // PEFT's way to name a base of the hub, which another machine has in a cache of its own.
  const std::optional<HubOrigin> hub = hub_origin(adapter.base);
  json["base_model_name_or_path"] =
      hub ? hub->name : std::filesystem::absolute(adapter.base).lexically_normal().string();
  if (hub) json["revision"] = hub->revision;
  json["r"] = lora.rank;
  json["lora_alpha"] = lora.alpha;
  json["lora_dropout"] = 0.0;
  json["bias"] = "none";
  json["target_modules"] = lora.all_linear() ? adaptable_modules() : lora.target_modules;
  json["modules_to_save"] = lora.modules_to_save.empty() ? OrderedJson(nullptr) : OrderedJson(lora.modules_to_save);
  json["ensure_weight_tying"] = adapter.ties;
  json["inference_mode"] = true;
  json["fan_in_fan_out"] = false;
  json["use_rslora"] = false;
  json["use_dora"] = false;
  write_file(path_join(directory, kAdapterConfig), json_text(json, 2) + "\n");
}

bool is_adapter(const std::string& directory) { return exists(path_join(directory, kAdapterConfig)); }

std::string base_directory(const std::string& directory) {
  const std::string path = path_join(directory, kAdapterConfig);
  if (!exists(path)) return directory;
  const Json json = read_config_json(path, kAdapterLimit);
  const auto it = json.is_object() ? json.find("base_model_name_or_path") : json.end();
  if (json.is_object() && it != json.end() && !it->is_string() && !it->is_null()) {
    throw Error(ErrorKind::config,
                str(path, ": base_model_name_or_path = ", printable(it->dump(), 80), ": expected a string"));
  }
  const std::string named = json.is_object() && it != json.end() && it->is_string() ? it->get<std::string>() : "";
  for (const std::string& base : {named, path_join(directory, named)}) {
    if (!named.empty() && is_directory(base)) return base;
  }
  if (is_hub_name(named)) {
    const auto revision = json.find("revision");
    try {
      return checkpoint_directory(named,
                                  revision != json.end() && revision->is_string() ? revision->get<std::string>() : "");
    } catch (const Error& error) {
      throw Error(error.kind(), str(printable(path, 400), ": base_model_name_or_path: ", error.what()));
    }
  }
  throw Error(ErrorKind::path,
              str(path, ": base_model_name_or_path = \"", printable(named, 400),
                  "\": no such directory; ucas downloads nothing: put the base model there, or name its "
                  "directory in that file"));
}

std::string directory_with(const std::string& directory, const char* file) {
  if (exists(path_join(directory, file)) || !is_adapter(directory)) return directory;
  return base_directory(directory);
}

}  // namespace ucas
