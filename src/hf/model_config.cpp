#include "hf/model_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "hf/adapter.h"

namespace ucas {

namespace {

constexpr int64_t kConfigLimit = int64_t{4} << 20;

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), 80);
}

// One JSON object with typed look-ups whose errors name the file, the key and the value found.
class ConfigReader {
 public:
  ConfigReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw Error("config", str(where_, ": expected a JSON object, got ", shown(object)));
  }

  const Json* find(const char* key) const {
    auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  [[noreturn]] void refuse(const char* kind, const char* key, const std::string& expected) const {
    const Json* value = find(key);
    throw Error(kind,
                str(where_, ": ", key, " = ", value == nullptr ? std::string("null") : shown(*value), ": ", expected));
  }
  // For keys whose absence means the usual value: null is no value.
  void refuse_null(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      auto it = object_.find(key);
      if (it != object_.end() && it->is_null()) refuse("config", key, "expected a value, or no such key");
    }
  }
  std::optional<int64_t> integer(const char* key, int64_t low, int64_t high) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    bool fits = value->is_number_unsigned()  ? value->get<uint64_t>() <= static_cast<uint64_t>(high)
                : value->is_number_integer() ? value->get<int64_t>() >= low && value->get<int64_t>() <= high
                                             : false;
    if (!fits || value->get<int64_t>() < low) refuse("config", key, str("expected an integer in ", low, " .. ", high));
    return value->get<int64_t>();
  }
  int64_t required(const char* key, int64_t low, int64_t high) const {
    auto value = integer(key, low, high);
    if (!value)
      throw Error("config", str(where_, ": ", key, " is missing; expected an integer in ", low, " .. ", high));
    return *value;
  }
  std::optional<double> positive(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !(value->get<double>() > 0) || !std::isfinite(value->get<double>()))
      refuse("config", key, "expected a finite number above 0");
    return value->get<double>();
  }
  bool boolean(const char* key, bool fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) refuse("config", key, "expected true or false");
    return value->get<bool>();
  }
  std::optional<std::string> text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse("config", key, "expected a string");
    return value->get<std::string>();
  }
  // A token id or a list of them, each of 0 .. vocab - 1.
  void ids(const char* key, int64_t vocab, std::vector<int32_t>& out) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    std::vector<Json> items = value->is_array() ? value->get<std::vector<Json>>() : std::vector<Json>{*value};
    for (const Json& item : items) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() >= static_cast<uint64_t>(vocab))
        refuse("config", key, str("expected token ids below vocab_size = ", vocab));
      auto id = item.get<int32_t>();
      if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    }
  }
  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

const Family& read_family(const ConfigReader& config) {
  auto type = config.text("model_type");
  if (!type) throw Error("config", str(config.where(), ": model_type is missing; expected one of ", family_names()));
  const Family* family = find_family(*type);
  if (family == nullptr) config.refuse("unsupported", "model_type", str("ucas runs ", family_names(), " only"));
  if (const Json* names = config.find("architectures")) {
    bool known = names->is_array() && std::any_of(names->begin(), names->end(), [&](const Json& name) {
                   return name.is_string() && name.get<std::string>() == family->architecture;
                 });
    if (!known) {
      config.refuse("unsupported", "architectures",
                    str("of model_type \"", *type, "\" ucas runs \"", family->architecture, "\" only"));
    }
  }
  return *family;
}

// What a file of a known family can still ask for.
void refuse_variants(const ConfigReader& config, const Family& family) {
  if (config.find("quantization_config") != nullptr)
    config.refuse("unsupported", "quantization_config", "quantised checkpoints are not supported; use the full one");
  if (config.find("auto_map") != nullptr)
    config.refuse("unsupported", "auto_map", "a checkpoint that brings its own code is never run");
  auto act = config.text("hidden_act");
  if (act && *act != "silu") config.refuse("unsupported", "hidden_act", "ucas runs \"silu\" only");
  if (family.qkv_bias) return;  // has the key in no version
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.boolean(key, false)) config.refuse("unsupported", key, "a bias there is not supported");
}

void require_default_rope(const ConfigReader& config, const char* key, const Json& rope) {
  if (!rope.is_object()) config.refuse("config", key, "expected an object");
  for (const char* name : {"rope_type", "type"})
    if (auto it = rope.find(name); it != rope.end() && *it != "default")
      config.refuse("unsupported", key, "rope scaling is not supported; only rope_type \"default\"");
  for (const auto& [name, value] : rope.items())
    if (name != "rope_theta" && name != "rope_type" && name != "type")
      config.refuse("unsupported", key, str("rope scaling is not supported (\"", printable(name), "\")"));
}

// transformers 4 writes rope_theta and rope_scaling, transformers 5 rope_parameters.
double read_rope_theta(const ConfigReader& config) {
  double theta = config.positive("rope_theta").value_or(10000.0);
  if (const Json* scaling = config.find("rope_scaling")) require_default_rope(config, "rope_scaling", *scaling);
  if (const Json* parameters = config.find("rope_parameters")) {
    require_default_rope(config, "rope_parameters", *parameters);
    if (auto inner = ConfigReader(*parameters, str(config.where(), ": rope_parameters")).positive("rope_theta")) {
      if (config.find("rope_theta") != nullptr && *inner != theta)
        config.refuse("config", "rope_theta", str("contradicts rope_parameters.rope_theta = ", *inner));
      theta = *inner;
    }
  }
  return theta;
}

// "full_attention" or "sliding_attention" for every layer, where the file says so: is any of them the latter?
std::optional<bool> any_sliding_layer(const ConfigReader& config, const ModelConfig& c) {
  const Json* types = config.find("layer_types");
  if (types == nullptr) return std::nullopt;
  bool whole = types->is_array() && static_cast<int64_t>(types->size()) == c.num_hidden_layers &&
               std::all_of(types->begin(), types->end(),
                           [](const Json& type) { return type == "full_attention" || type == "sliding_attention"; });
  if (!whole) {
    config.refuse("config", "layer_types",
                  str("expected \"full_attention\" or \"sliding_attention\" for each of ", c.num_hidden_layers,
                      " layers (num_hidden_layers)"));
  }
  return std::find(types->begin(), types->end(), "sliding_attention") != types->end();
}

// A window that no position can leave changes nothing and is let through. What is said of one must make sense even
// where it is not in use.
void refuse_sliding_window(const ConfigReader& config, const ModelConfig& c) {
  auto window = config.integer("sliding_window", 1, int64_t{1} << 40);
  auto full_layers = config.integer("max_window_layers", 0, int64_t{1} << 40);
  bool sliding = any_sliding_layer(config, c).value_or(full_layers.value_or(28) < c.num_hidden_layers);
  if (!config.boolean("use_sliding_window", false) || !sliding) return;
  if (!window || *window >= c.max_position_embeddings) return;
  config.refuse("unsupported", "use_sliding_window",
                str("a window of ", *window, " within max_position_embeddings = ", c.max_position_embeddings,
                    " is not supported; set it to false to run full attention"));
}

void read_shape(const ConfigReader& config, ModelConfig& c) {
  c.hidden_size = config.required("hidden_size", 1, 65536);
  c.num_hidden_layers = config.required("num_hidden_layers", 1, 1024);
  c.num_attention_heads = config.required("num_attention_heads", 1, 1024);
  c.num_key_value_heads = config.integer("num_key_value_heads", 1, 1024).value_or(c.num_attention_heads);
  c.intermediate_size = config.required("intermediate_size", 1, int64_t{1} << 20);
  c.vocab_size = config.required("vocab_size", 2, int64_t{1} << 24);
  c.max_position_embeddings = config.integer("max_position_embeddings", 1, int64_t{1} << 30).value_or(32768);
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    config.refuse("config", "num_key_value_heads", str("must divide num_attention_heads = ", c.num_attention_heads));
  auto head_dim = config.integer("head_dim", 1, 4096);
  if (!head_dim && c.family->head_dim > 0) head_dim = c.family->head_dim;
  if (!head_dim && c.hidden_size % c.num_attention_heads != 0)
    config.refuse("config", "num_attention_heads", str("must divide hidden_size = ", c.hidden_size));
  c.head_dim = head_dim.value_or(c.hidden_size / c.num_attention_heads);
  if (c.head_dim % 2 != 0)
    throw Error("config", str(config.where(), ": head width ", c.head_dim, " is odd; rotary embedding needs pairs"));
}

void read_generation_config(const std::string& directory, ModelConfig& c) {
  std::string path = path_join(directory, "generation_config.json");
  if (!exists(path)) return;
  Json json = read_json(path, kConfigLimit);
  ConfigReader reader(json, path);
  reader.ids("eos_token_id", c.vocab_size, c.eos_token_id);
  if (c.bos_token_id < 0) c.bos_token_id = reader.integer("bos_token_id", 0, c.vocab_size - 1).value_or(-1);
  if (c.pad_token_id < 0) c.pad_token_id = reader.integer("pad_token_id", 0, c.vocab_size - 1).value_or(-1);
}

OrderedJson read_like(const std::string& like, const char* name) {
  if (like.empty() || !exists(path_join(like, name))) return OrderedJson::object();
  std::string path = path_join(like, name);
  std::string text = read_file(path, kConfigLimit);
  if (!parse_json(text, path).is_object()) throw Error("config", str(path, ": expected a JSON object"));
  return OrderedJson::parse(text);  // checked above; parsed again for the order of its keys
}

void write_ids(const ModelConfig& config, OrderedJson& json) {
  if (config.bos_token_id >= 0) json["bos_token_id"] = config.bos_token_id;
  if (config.eos_token_id.size() == 1) json["eos_token_id"] = config.eos_token_id[0];
  if (config.eos_token_id.size() > 1) json["eos_token_id"] = config.eos_token_id;
  if (config.pad_token_id >= 0) json["pad_token_id"] = config.pad_token_id;
}

}  // namespace

std::string family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.push_back(family.model_type);
  return join(names, ", ");
}

int64_t ModelConfig::parameter_count() const {
  int64_t query = num_attention_heads * head_dim, key = num_key_value_heads * head_dim;
  int64_t attention = (query + 2 * key) * (hidden_size + family->qkv_bias) + query * hidden_size;
  attention += family->qk_norm ? 2 * head_dim : 0;
  int64_t layer = attention + 3 * intermediate_size * hidden_size + 2 * hidden_size;
  return num_hidden_layers * layer + hidden_size + (tie_word_embeddings ? 1 : 2) * vocab_size * hidden_size;
}

ModelConfig read_model_config(const std::string& directory) {
  if (!is_directory(directory)) throw Error("path", str(printable(directory, 400), ": no such checkpoint directory"));
  std::string path = path_join(directory_with(directory, "config.json"), "config.json");
  Json json = read_json(path, kConfigLimit);
  ConfigReader config(json, path);
  ModelConfig c;
  c.family = &read_family(config);
  refuse_variants(config, *c.family);
  config.refuse_null({"rms_norm_eps", "rope_theta", "hidden_act", "max_position_embeddings", "use_sliding_window",
                      "tie_word_embeddings"});
  read_shape(config, c);
  c.rope_theta = read_rope_theta(config);
  refuse_sliding_window(config, c);
  c.rms_norm_eps = config.positive("rms_norm_eps").value_or(1e-6);
  c.tie_word_embeddings = config.boolean("tie_word_embeddings", false);
  c.torch_dtype = config.text("dtype").value_or(config.text("torch_dtype").value_or("float32"));
  if (c.torch_dtype != "float32" && c.torch_dtype != "float16" && c.torch_dtype != "bfloat16")
    config.refuse("unsupported", config.find("dtype") != nullptr ? "dtype" : "torch_dtype",
                  "expected float32, float16 or bfloat16");
  config.ids("eos_token_id", c.vocab_size, c.eos_token_id);
  c.bos_token_id = config.integer("bos_token_id", 0, c.vocab_size - 1).value_or(-1);
  c.pad_token_id = config.integer("pad_token_id", 0, c.vocab_size - 1).value_or(-1);
  read_generation_config(directory, c);
  return c;
}

void write_model_config(const ModelConfig& c, const std::string& directory, const std::string& like) {
  OrderedJson json = read_like(like, "config.json");
  json["architectures"] = {c.family->architecture};
  json["model_type"] = c.family->model_type;
  json["hidden_size"] = c.hidden_size;
  json["num_hidden_layers"] = c.num_hidden_layers;
  json["num_attention_heads"] = c.num_attention_heads;
  json["num_key_value_heads"] = c.num_key_value_heads;
  bool usual_head_dim = c.family->head_dim == 0 && c.head_dim * c.num_attention_heads == c.hidden_size;
  if (!usual_head_dim || json.contains("head_dim")) json["head_dim"] = c.head_dim;
  json["intermediate_size"] = c.intermediate_size;
  json["vocab_size"] = c.vocab_size;
  json["max_position_embeddings"] = c.max_position_embeddings;
  json["hidden_act"] = "silu";
  // Both spellings: transformers 4 reads rope_theta and torch_dtype, transformers 5 rope_parameters and dtype.
  json["rope_theta"] = c.rope_theta;
  json["rope_parameters"] = {{"rope_theta", c.rope_theta}, {"rope_type", "default"}};
  json["rms_norm_eps"] = c.rms_norm_eps;
  json["tie_word_embeddings"] = c.tie_word_embeddings;
  if (c.family->sliding_window && !json.contains("use_sliding_window")) json["use_sliding_window"] = false;
  if (!json.contains("attention_dropout")) json["attention_dropout"] = 0.0;
  json["torch_dtype"] = c.torch_dtype;
  json["dtype"] = c.torch_dtype;
  write_ids(c, json);
  write_file(path_join(directory, "config.json"), json.dump(2) + "\n");

  OrderedJson generation = read_like(like, "generation_config.json");
  write_ids(c, generation);
  write_file(path_join(directory, "generation_config.json"), generation.dump(2) + "\n");
}

}  // namespace ucas
