#include "hf/model_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "hf/config_reader.h"
#include "hf/families.h"
#include "hf/parameters.h"
#include "hf/peft.h"

namespace ucas {

namespace {

constexpr int64_t kConfigLimit = int64_t{4} << 20;
constexpr const char *kFullLayer = "full_attention", *kSlidingLayer = "sliding_attention";
// Of transformers, where a file of a family with windows has no such key:
constexpr int64_t kUsualWindow = 4096, kUsualQueryScalar = 256, kUsualInterval = 4;

const Family& read_family(const ConfigReader& config) {
  auto type = config.word("model_type");
  if (!type)
    throw Error(ErrorKind::config, str(config.place(), ": model_type is missing; expected one of ", family_names()));
  const Family* family = find_family(*type);
  if (family == nullptr) {
    std::string what;
    for (const OtherModels& other : kOtherModels)
      if (str(" ", other.model_types, " ").find(str(" ", *type, " ")) != std::string::npos)
        what = str(other.what, "; ");
    config.refuse(ErrorKind::unsupported, "model_type", str(what, "ucas runs ", family_names(), " only"));
  }
  if (const Json* names = config.find("architectures")) {
    bool known = names->is_array() && std::any_of(names->begin(), names->end(), [&](const Json& name) {
                   return name.is_string() && name.get<std::string>() == family->architecture;
                 });
    if (!known) {
      config.refuse(ErrorKind::unsupported, "architectures",
                    str("of model_type \"", *type, "\" ucas runs \"", family->architecture, "\" only"));
    }
  }
  return *family;
}

template <class J>
const Tower* tower_of(const J& file) {
  for (const Tower& tower : kTowers)
    if (file.is_object() && file.contains("model_type") && file["model_type"] == tower.model_type &&
        (!file.contains("architectures") || file["architectures"] == J::array({tower.architecture})))
      return &tower;
  return nullptr;
}

// The config of the text model alone, as its family publishes it. Text has one position, of which the three of "mrope"
// are copies. transformers' defaults are those of Gemma 3 4B.
template <class J>
J text_of(const J& file, const Tower& tower) {
  J text = file.contains("text_config") ? file["text_config"] : file;
  for (const char* key : {"eos_token_id", "bos_token_id", "pad_token_id", "torch_dtype", "dtype", "tie_word_embeddings",
                          "quantization_config", "auto_map"})
    if (file.contains(key) && !text.contains(key)) text[key] = file[key];
  if (std::string_view(tower.family) == "gemma3_text") {
    if (!text.contains("num_attention_heads")) text["num_attention_heads"] = 8;
    if (!text.contains("vocab_size")) text["vocab_size"] = 262208;
  }
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!text.contains(key) || !text[key].is_object()) continue;
    text[key].erase("mrope_section");
    for (const char* kind : {"type", "rope_type"})
      if (text[key].contains(kind) && text[key][kind] == "mrope") text[key][kind] = "default";
  }
  text.erase("vision_config");
  text["model_type"] = tower.family;
  text["architectures"] = J::array({find_family(tower.family)->architecture});
  return text;
}

const char* gate_name(const BlockSpec& block) { return block.gate == Gate::gelu_tanh ? "gelu_pytorch_tanh" : "silu"; }

// What a file of a known family can still ask for.
void refuse_variants(const ConfigReader& config, const Family& family) {
  if (config.find("quantization_config") != nullptr)
    config.refuse(ErrorKind::unsupported, "quantization_config",
                  "quantised checkpoints are not supported; use the full one");
  if (config.find("auto_map") != nullptr)
    config.refuse(ErrorKind::unsupported, "auto_map", "a checkpoint that brings its own code is never run");
  const char* gate = gate_name(family.block);
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    auto act = config.word(key);
    if (act && *act != gate)
      config.refuse(ErrorKind::unsupported, key,
                    str("of model_type \"", family.model_type, "\" ucas runs \"", gate, "\" only"));
  }
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (config.find(key) != nullptr)
      config.refuse(ErrorKind::unsupported, key, "logits under a soft cap are not supported; null is none");
  if (config.truth_or("use_bidirectional_attention", false))
    config.refuse(ErrorKind::unsupported, "use_bidirectional_attention", "a token sees those before it only");
  if (auto part = config.real("partial_rotary_factor", 0); part && *part != 1)
    config.refuse(ErrorKind::unsupported, "partial_rotary_factor", "ucas rotates whole heads only");
  // Of SmolLM3 transformers does not read it.
  if (!family.block.unrotated_layers && config.integer("pretraining_tp", 0, 1024).value_or(1) > 1)
    config.refuse(ErrorKind::unsupported, "pretraining_tp", "sliced GEMMs are not supported; 1 is the same model");
  if (config.truth_or("use_mrope", false))
    config.refuse(ErrorKind::unsupported, "use_mrope", "positions in several dimensions are of multimodal models");
  if (family.block.qkv_bias) return;  // has the key in no version
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.truth_or(key, false)) config.refuse(ErrorKind::unsupported, key, "a bias there is not supported");
}

// Which layers slide: those of layer_types, else, in files of Qwen, those from max_window_layers on, and in those of
// Gemma all but every sliding_window_pattern-th.
std::vector<bool> sliding_layers(const ConfigReader& config, const ModelConfig& c) {
  auto full_layers = config.integer("max_window_layers", 0, int64_t{1} << 40).value_or(28);
  const int64_t pattern = config.integer("sliding_window_pattern", 1, int64_t{1} << 40).value_or(c.family->pattern);
  std::vector<bool> slides;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer)
    slides.push_back(c.family->block.window == Window::pattern ? (layer + 1) % pattern != 0
                     : c.family->block.unrotated_layers
                         ? !c.unrotated.empty() && c.unrotated[static_cast<size_t>(layer)]
                         : layer >= full_layers);
  const Json* types = config.find("layer_types");
  if (types == nullptr) return slides;
  bool whole = types->is_array() && types->size() == slides.size() &&
               std::all_of(types->begin(), types->end(),
                           [](const Json& type) { return type == kFullLayer || type == kSlidingLayer; });
  if (!whole) {
    config.refuse(ErrorKind::config, "layer_types",
                  str("expected \"", kFullLayer, "\" or \"", kSlidingLayer, "\" for each of ", c.num_hidden_layers,
                      " layers (num_hidden_layers)"));
  }
  for (size_t layer = 0; layer < slides.size(); ++layer) slides[layer] = (*types)[layer] == kSlidingLayer;
  return slides;
}

// no_rope_layers has a 1 for each layer that rotates; without it every no_rope_layer_interval-th does not.
void read_unrotated(const ConfigReader& config, ModelConfig& c) {
  if (!c.family->block.unrotated_layers) return;
  const int64_t interval = config.integer("no_rope_layer_interval", 1, 1024).value_or(kUsualInterval);
  const Json* layers = config.find("no_rope_layers");
  const auto is_flag = [](const Json& flag) { return flag == 0 || flag == 1; };
  if (layers != nullptr && !(layers->is_array() && std::ssize(*layers) >= c.num_hidden_layers &&
                             std::all_of(layers->begin(), layers->end(), is_flag)))
    config.refuse(ErrorKind::config, "no_rope_layers",
                  str("expected 1 (rotates) or 0 for each of ", c.num_hidden_layers, " layers (num_hidden_layers)"));
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer)
    c.unrotated.push_back(layers == nullptr ? (layer + 1) % interval == 0 : (*layers)[static_cast<size_t>(layer)] == 0);
  if (std::count(c.unrotated.begin(), c.unrotated.end(), true) == 0) c.unrotated.clear();
  c.local_rope.theta = 0;
}

// The keys of Granite's multipliers.
template <class Config, class Visit>
void visit_multipliers(Config& c, Visit visit) {
  if (!c.family->block.multipliers) return;
  visit("embedding_multiplier", c.embedding_multiplier);
  visit("attention_multiplier", c.attention_multiplier);
  visit("residual_multiplier", c.residual_multiplier);
  visit("logits_scaling", c.logits_scaling);
}

// What is said of a window must make sense even where it is not in use.
void read_windows(const ConfigReader& config, ModelConfig& c) {
  const int64_t usual = config.says("sliding_window") ? 0 : kUsualWindow;  // null: none
  const int64_t window = config.integer("sliding_window", 1, int64_t{1} << 40).value_or(usual);
  std::vector<bool> slides = sliding_layers(config, c);
  switch (c.family->block.window) {
    case Window::none:
      return;  // whatever the file says: transformers has no such key either
    case Window::all_layers:
      if (config.find("layer_types") != nullptr && std::count(slides.begin(), slides.end(), window == 0) > 0) {
        config.refuse(ErrorKind::unsupported, "layer_types",
                      str("model_type \"", c.family->model_type, "\" has one kind of layer, ",
                          window > 0 ? kSlidingLayer : kFullLayer, "; remove the key if that is meant"));
      }
      slides.assign(slides.size(), true);
      break;
    case Window::by_layer:
      if (!config.truth_or("use_sliding_window", false)) return;
      break;
    case Window::pattern:
      if (window == 0 && std::count(slides.begin(), slides.end(), true) > 0)
        config.refuse(ErrorKind::config, "sliding_window", "some layers slide: expected how many tokens they see");
      break;
  }
  if (window == 0 || std::count(slides.begin(), slides.end(), true) == 0) return;
  for (bool slide : slides) c.windows.push_back(slide ? window : 0);
}

// How often a layer sees all: every n-th, as transformers before layer_types had it; 0: in no such order.
int64_t pattern_of(const ModelConfig& c) {
  if (c.windows.empty()) return 1;
  const auto full = std::find(c.windows.begin(), c.windows.end(), 0);
  const int64_t pattern = full == c.windows.end() ? c.num_hidden_layers + 1 : full - c.windows.begin() + 1;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer)
    if ((c.window(static_cast<size_t>(layer)) == 0) != ((layer + 1) % pattern == 0)) return 0;
  return pattern;
}

// As transformers reads it back: without a key it would take its own default.
void write_windows(const ModelConfig& c, OrderedJson& json) {
  const auto widest = std::max_element(c.windows.begin(), c.windows.end());
  const int64_t window = widest == c.windows.end() ? 0 : *widest;
  const Window kind = c.family->block.window;
  if (kind == Window::all_layers) json["sliding_window"] = window > 0 ? OrderedJson(window) : OrderedJson(nullptr);
  if (kind != Window::by_layer && kind != Window::pattern) return;
  if (kind == Window::by_layer) json["use_sliding_window"] = window > 0;
  if (window > 0) json["sliding_window"] = window;
  if (kind == Window::by_layer) {
    const auto first = std::find_if(c.windows.begin(), c.windows.end(), [](int64_t w) { return w > 0; });
    // read where layer_types is not known yet
    if (window > 0) json["max_window_layers"] = first - c.windows.begin();
    if (window == 0 && !json.contains("layer_types")) return;
  } else {
    json.erase("sliding_window_pattern");
    if (const int64_t pattern = pattern_of(c); pattern > 0) json["sliding_window_pattern"] = pattern;
  }
  json["layer_types"] = OrderedJson::array();
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer)
    json["layer_types"].push_back(c.window(static_cast<size_t>(layer)) > 0 ? kSlidingLayer : kFullLayer);
}

void read_shape(const ConfigReader& config, ModelConfig& c) {
  c.hidden_size = config.whole("hidden_size", 1, 65536);
  c.num_hidden_layers = config.whole("num_hidden_layers", 1, 1024);
  c.num_attention_heads = config.whole("num_attention_heads", 1, 1024);
  const bool usual_heads =
      !config.says("num_key_value_heads") && c.family->kv_heads > 0;  // null: as many as query heads
  c.num_key_value_heads =
      config.integer("num_key_value_heads", 1, 1024).value_or(usual_heads ? c.family->kv_heads : c.num_attention_heads);
  c.intermediate_size = config.whole("intermediate_size", 1, int64_t{1} << 20);
  c.vocab_size = config.whole("vocab_size", 2, int64_t{1} << 24);
  c.max_position_embeddings =
      config.integer("max_position_embeddings", 1, int64_t{1} << 30).value_or(c.family->positions);
  if (c.num_attention_heads % c.num_key_value_heads != 0 && usual_heads)
    throw Error(ErrorKind::config,
                str(config.place(), ": num_key_value_heads is missing; it would be ", c.num_key_value_heads,
                    ", which must divide num_attention_heads = ", c.num_attention_heads));
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    config.refuse(ErrorKind::config, "num_key_value_heads",
                  str("must divide num_attention_heads = ", c.num_attention_heads));
  auto head_dim = config.integer("head_dim", 1, 4096);
  if (!head_dim && c.family->head_dim > 0) head_dim = c.family->head_dim;
  if (!head_dim && c.hidden_size % c.num_attention_heads != 0)
    config.refuse(ErrorKind::config, "num_attention_heads", str("must divide hidden_size = ", c.hidden_size));
  c.head_dim = head_dim.value_or(c.hidden_size / c.num_attention_heads);
  if (c.head_dim % 2 != 0)
    throw Error(ErrorKind::config,
                str(config.place(), ": head width ", c.head_dim, " is odd; rotary embedding needs pairs"));
}

// null is none; what a file leaves out is the family's.
void read_ids(const ConfigReader& config, ModelConfig& c) {
  config.add_ids("eos_token_id", c.vocab_size, c.eos_token_id);
  if (!config.says("eos_token_id") && c.family->eos >= 0) c.eos_token_id = {c.family->eos};
  const auto id = [&](const char* key, int32_t usual) {
    return config.integer(key, 0, c.vocab_size - 1).value_or(config.says(key) ? -1 : usual);
  };
  c.bos_token_id = id("bos_token_id", c.family->bos);
  c.pad_token_id = id("pad_token_id", c.family->pad);
}

void read_generation_config(const std::string& directory, ModelConfig& c) {
  std::string path = path_join(directory, "generation_config.json");
  if (!exists(path)) return;
  Json json = read_config_json(path, kConfigLimit);
  ConfigReader reader(json, path);
  reader.add_ids("eos_token_id", c.vocab_size, c.eos_token_id);
  if (c.bos_token_id < 0) c.bos_token_id = reader.integer("bos_token_id", 0, c.vocab_size - 1).value_or(-1);
  if (c.pad_token_id < 0) c.pad_token_id = reader.integer("pad_token_id", 0, c.vocab_size - 1).value_or(-1);
}

OrderedJson read_like(const std::string& like, const char* name) {
  if (like.empty() || !exists(path_join(like, name))) return OrderedJson::object();
  std::string path = path_join(like, name);
  if (!read_config_json(path, kConfigLimit).is_object())
    throw Error(ErrorKind::config, str(path, ": expected a JSON object"));
  return parse_ordered_json(read_file(path, kConfigLimit));  // checked above; parsed again for the order of its keys
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
  int64_t count = 0;
  for (const ParameterShape& p : parameter_shapes(*this)) count += p.elements();
  return count;
}

ModelConfig read_model_config_file(const std::string& path) {
  Json json = read_config_json(path, kConfigLimit);
  const Tower* tower = tower_of(json);
  if (tower != nullptr) json = text_of(json, *tower);
  ConfigReader config(json, path);
  ModelConfig c;
  c.inside = tower != nullptr;
  c.family = &read_family(config);
  refuse_variants(config, *c.family);
  config.refuse_null({"rms_norm_eps", "rope_theta", "rope_local_base_freq", "hidden_act", "hidden_activation",
                      "query_pre_attn_scalar", "sliding_window_pattern", "max_position_embeddings",
                      "use_sliding_window", "tie_word_embeddings"});
  read_shape(config, c);
  read_rope(config, c);
  read_unrotated(config, c);
  read_windows(config, c);
  visit_multipliers(c, [&](const char* key, double& value) { value = config.positive(key).value_or(1); });
  if (c.family->block.query_scalar)
    c.query_pre_attn_scalar = config.integer("query_pre_attn_scalar", 1, int64_t{1} << 30).value_or(kUsualQueryScalar);
  c.rms_norm_eps = config.positive("rms_norm_eps").value_or(c.family->eps);
  c.tie_word_embeddings = config.truth_or("tie_word_embeddings", c.family->tied);
  c.torch_dtype = config.word("dtype").value_or(config.word("torch_dtype").value_or("float32"));
  if (c.torch_dtype != "float32" && c.torch_dtype != "float16" && c.torch_dtype != "bfloat16")
    config.refuse(ErrorKind::unsupported, config.find("dtype") != nullptr ? "dtype" : "torch_dtype",
                  "expected float32, float16 or bfloat16");
  read_ids(config, c);
  return c;
}

ModelConfig read_model_config(const std::string& directory) {
  if (!is_directory(directory))
    throw Error(ErrorKind::path, str(printable(directory, 400), ": no such checkpoint directory"));
  ModelConfig config = read_model_config_file(path_join(directory_with(directory, "config.json"), "config.json"));
  read_generation_config(directory, config);
  return config;
}

void check_vocabulary(int64_t ids, const std::string& tokenizer, const ModelConfig& config) {
  if (ids <= config.vocab_size) return;
  throw Error(ErrorKind::tokenizer, str(printable(tokenizer, 400), ": the tokenizer has ", grouped(ids),
                                        " ids but the model's vocabulary only ", grouped(config.vocab_size),
                                        " rows (vocab_size of config.json); the files belong to different models"));
}

void write_model_config(const ModelConfig& c, const std::string& directory, const std::string& like) {
  OrderedJson json = read_like(like, "config.json");
  if (const Tower* tower = tower_of(json); tower != nullptr) json = text_of(json, *tower);
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
  const BlockSpec& block = c.family->block;
  json[block.gate == Gate::silu ? "hidden_act" : "hidden_activation"] = gate_name(block);
  if (block.query_scalar)
    json["query_pre_attn_scalar"] = c.query_pre_attn_scalar > 0 ? c.query_pre_attn_scalar : c.head_dim;
  visit_multipliers(c, [&](const char* key, double value) { json[key] = value > 0 ? value : 1; });
  if (block.unrotated_layers) {
    json["no_rope_layers"] = OrderedJson::array();
    for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer)
      json["no_rope_layers"].push_back(c.unrotated.empty() || !c.unrotated[static_cast<size_t>(layer)] ? 1 : 0);
  }
  write_rope(c, json);
  json["rms_norm_eps"] = c.rms_norm_eps;
  json["tie_word_embeddings"] = c.tie_word_embeddings;
  write_windows(c, json);
  if (!json.contains("attention_dropout")) json["attention_dropout"] = 0.0;
  json["torch_dtype"] = c.torch_dtype;  // of transformers 4; 5 reads dtype
  json["dtype"] = c.torch_dtype;
  write_ids(c, json);
  write_file(path_join(directory, "config.json"), json_text(json, 2) + "\n");

  OrderedJson generation = read_like(like, "generation_config.json");
  write_ids(c, generation);
  write_file(path_join(directory, "generation_config.json"), json_text(generation, 2) + "\n");
}

std::string unsuited_for_kernels(const ModelConfig& config, const ModelOptions& options) {
  const auto eighths = [](int64_t n) { return n % 8 == 0; };
  // Kernels know the block of families without norms after each half (hf/block_spec.h); others take the ATen path.
  const BlockSpec& spec = config.family->block;
  const bool usual = !spec.norms_after && spec.norms_before && !spec.qk_norm_whole && !spec.multipliers &&
                     config.unrotated.empty() && !spec.norm_offset && !spec.local_rope && !spec.query_scalar &&
                     !spec.scaled_embedding && spec.gate == Gate::silu;
  if (!usual) return "its block has steps that they do not know";
  if (options.dtype != Dtype::bf16) return "they are for dtype = \"bf16\"";
  if (!eighths(config.hidden_size) || !eighths(config.intermediate_size) || !eighths(config.head_dim))
    return "a width of it is no multiple of 8";
  if (config.head_dim > 256 || config.num_attention_heads / config.num_key_value_heads > 16)
    return "they know heads of at most 256 numbers, at most 16 to a key";
  return {};
}
bool suits_kernels(const ModelConfig& config, const ModelOptions& options) {
  return unsuited_for_kernels(config, options).empty();
}

}  // namespace ucas
