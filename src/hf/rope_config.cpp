#include "hf/rope_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"
#include "base/text/fields.h"
#include "hf/config_reader.h"
#include "hf/model_config.h"

namespace ucas {

namespace {

constexpr int64_t kMostPositions = int64_t{1} << 30;

// transformers takes "type" where there is no "rope_type", and both may be there.
RopeKind read_kind(const ConfigReader& rope) {
  auto kind = rope.word("rope_type"), old = rope.word("type");
  if (kind && old && *kind != *old)
    rope.refuse(ErrorKind::config, "type", str("contradicts rope_type = \"", *kind, "\""));
  const auto words = names(RopeKind{});
  auto word = std::find(words.begin(), words.end(), kind.value_or(old.value_or("default")));
  if (word == words.end())
    rope.refuse(ErrorKind::unsupported, kind ? "rope_type" : "type",
                str("ucas runs ", join({words.begin(), words.end()}, ", "), " only"));
  return static_cast<RopeKind>(word - words.begin());
}

// Keys of each kind, in their order.
constexpr const char* kKeysOf[] = {"", "factor", "factor original_max_position_embeddings",
                                   "factor original_max_position_embeddings beta_fast beta_slow truncate mscale "
                                   "mscale_all_dim attention_factor",
                                   "factor original_max_position_embeddings low_freq_factor high_freq_factor"};

double required(const ConfigReader& rope, const char* key) {
  const std::optional<double> value = rope.positive(key);
  if (!value) rope.JsonObject::refuse(key, "a finite number above 0");
  return *value;
}

// A key that is passed over could be one that changes every angle.
void refuse_foreign_keys(const ConfigReader& rope, RopeKind kind) {
  const std::vector<std::string> known = split(kKeysOf[static_cast<size_t>(kind)], ' ');
  for (const auto& [key, value] : rope.json().items()) {
    const bool common = key == "rope_theta" || key == "rope_type" || key == "type" || key == "partial_rotary_factor";
    if (value.is_null() || common || std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (key == "attn_factor") {
      rope.refuse(ErrorKind::unsupported, "attn_factor",
                  "transformers does not read it, others multiply by it; write the scale of cosines and sines as "
                  "attention_factor, or remove it to run as transformers does");
    }
    throw Error(ErrorKind::unsupported, str(rope.place(), ": ", printable(key), " has no meaning for rope_type \"",
                                            word_of(kind), "\"; remove it if it has none for this model"));
  }
  if (auto part = rope.real("partial_rotary_factor", 0); part && *part != 1)
    rope.refuse(ErrorKind::unsupported, "partial_rotary_factor", "ucas rotates whole heads only");
}

void read_stretch(const ConfigReader& rope, int64_t positions, RopeConfig& out) {
  out.factor = required(rope, "factor");
  if (out.factor < 1) rope.refuse(ErrorKind::config, "factor", "expected at least 1");
  if (out.kind == RopeKind::linear) return;
  out.original_max_position_embeddings =
      rope.integer("original_max_position_embeddings", 1, kMostPositions).value_or(positions);
  if (out.kind == RopeKind::dynamic && out.original_max_position_embeddings != positions) {
    rope.refuse(ErrorKind::unsupported, "original_max_position_embeddings",
                str("of \"dynamic\" ucas runs what does not stretch: expected max_position_embeddings = ", positions));
  }
}

void read_llama3(const ConfigReader& rope, RopeConfig& out) {
  out.low_freq_factor = required(rope, "low_freq_factor");
  out.high_freq_factor = required(rope, "high_freq_factor");
  if (out.high_freq_factor <= out.low_freq_factor)
    rope.refuse(ErrorKind::config, "high_freq_factor",
                str("expected more than low_freq_factor = ", out.low_freq_factor));
}

void read_yarn(const ConfigReader& rope, RopeConfig& out) {
  out.beta_fast = rope.positive("beta_fast").value_or(32);
  out.beta_slow = rope.positive("beta_slow").value_or(1);
  if (out.beta_fast < out.beta_slow)
    rope.refuse(ErrorKind::config, "beta_fast", str("expected no less than beta_slow = ", out.beta_slow));
  out.truncate = rope.truth_or("truncate", true);
  out.attention_factor = rope.positive("attention_factor");
  out.mscale = rope.real("mscale", 0);
  out.mscale_all_dim = rope.real("mscale_all_dim", 0);
}

// One of the two objects; `theta` is that of the file's top.
RopeConfig read_object(const ConfigReader& rope, double theta, int64_t positions) {
  RopeConfig out;
  out.kind = read_kind(rope);
  refuse_foreign_keys(rope, out.kind);
  out.theta = rope.positive("rope_theta").value_or(theta);
  if (out.kind != RopeKind::plain) read_stretch(rope, positions, out);
  if (out.kind == RopeKind::llama3) read_llama3(rope, out);
  if (out.kind == RopeKind::yarn) read_yarn(rope, out);
  return out;
}

// What the arithmetic of model/attention/rope.cpp would divide by.
void check_arithmetic(const ConfigReader& config, const RopeConfig& rope, int64_t head_dim) {
  if (rope.kind == RopeKind::yarn && rope.theta <= 1)
    throw Error(ErrorKind::config,
                str(config.place(), ": rope_theta = ", rope.theta, ": rope_type \"yarn\" needs more than 1"));
  if (rope.kind == RopeKind::dynamic && head_dim <= 2)
    throw Error(ErrorKind::config,
                str(config.place(), ": head width ", head_dim, ": rope_type \"dynamic\" needs more than 2"));
}

// The keys of one kind of layer's angles: the key of their base at the file's top, and objects of both spellings.
struct RopeKeys {
  const char* theta;
  double usual_theta;
  std::vector<std::pair<std::string, const Json*>> objects;  // path, nullptr where it is not there
};

RopeConfig read_one(const ConfigReader& config, const RopeKeys& keys, int64_t positions) {
  RopeConfig rope;
  const double theta = rope.theta = config.positive(keys.theta).value_or(keys.usual_theta);
  std::string from;
  for (const auto& [path, object] : keys.objects) {
    if (object == nullptr || (object->is_object() && object->empty())) continue;
    RopeConfig found = read_object(ConfigReader(*object, str(config.place(), ": ", path)), theta, positions);
    if (config.says(keys.theta) && found.theta != theta)
      config.refuse(ErrorKind::config, keys.theta, str("contradicts ", path, ".rope_theta = ", found.theta));
    if (!from.empty() && found != rope)
      throw Error(ErrorKind::config, str(config.place(), ": ", path, " = ", printable(object->dump(), 80),
                                         ": contradicts ", from, "; they are two spellings of one thing"));
    rope = found;
    from = path;
  }
  // transformers prefers this one to that of the object.
  auto original = config.integer("original_max_position_embeddings", 1, kMostPositions);
  const bool used = rope.kind == RopeKind::llama3 || rope.kind == RopeKind::yarn;
  if (used && original && *original != rope.original_max_position_embeddings) {
    config.refuse(ErrorKind::config, "original_max_position_embeddings",
                  str("contradicts ", from, ", which says ", rope.original_max_position_embeddings));
  }
  return rope;
}

constexpr const char *kFull = "full_attention", *kSliding = "sliding_attention";

// rope_parameters of a family with two kinds of layers: an object for each.
const Json* of_layers(const ConfigReader& config, const char* kind) {
  const Json* object = config.find("rope_parameters");
  if (object == nullptr) return nullptr;
  const ConfigReader both(*object, str(config.place(), ": rope_parameters"));
  for (const auto& [key, value] : object->items())
    if (key != kFull && key != kSliding)
      throw Error(ErrorKind::unsupported, str(both.place(), ": ", printable(key), ": expected ", kFull, " and ",
                                              kSliding, " only, an object for each kind of layer"));
  return both.find(kind);
}

OrderedJson scaling_of(const RopeConfig& rope) {
  OrderedJson scaling;
  scaling["rope_type"] = word_of(rope.kind);
  if (rope.kind != RopeKind::plain) scaling["factor"] = rope.factor;
  if (rope.kind == RopeKind::llama3 || rope.kind == RopeKind::yarn)
    scaling["original_max_position_embeddings"] = rope.original_max_position_embeddings;
  if (rope.kind == RopeKind::llama3) {
    scaling["low_freq_factor"] = rope.low_freq_factor;
    scaling["high_freq_factor"] = rope.high_freq_factor;
  }
  if (rope.kind == RopeKind::yarn) {
    const RopeConfig usual;
    if (rope.beta_fast != usual.beta_fast) scaling["beta_fast"] = rope.beta_fast;
    if (rope.beta_slow != usual.beta_slow) scaling["beta_slow"] = rope.beta_slow;
    if (!rope.truncate) scaling["truncate"] = false;
    for (auto [key, value] : {std::pair("attention_factor", rope.attention_factor), std::pair("mscale", rope.mscale),
                              std::pair("mscale_all_dim", rope.mscale_all_dim)})
      if (value) scaling[key] = *value;
  }
  return scaling;
}

OrderedJson parameters_of(const RopeConfig& rope) {
  OrderedJson parameters = scaling_of(rope);
  parameters["rope_theta"] = rope.theta;
  return parameters;
}

const char* local_key(const Family& family) {
  return family.local_theta != nullptr ? family.local_theta : "rope_theta";
}

}  // namespace

void read_rope(const ConfigReader& config, ModelConfig& c) {
  const int64_t positions = c.max_position_embeddings;
  RopeKeys keys{"rope_theta", c.family->theta, {{"rope_scaling", config.find("rope_scaling")}}};
  if (c.family->block.local_rope) {
    const std::string sliding = str("rope_parameters.", kSliding);
    c.local_rope =
        read_one(config, {local_key(*c.family), c.family->usual_local_theta, {{sliding, of_layers(config, kSliding)}}},
                 positions);
    check_arithmetic(config, c.local_rope, c.head_dim);
    keys.objects.emplace_back(str("rope_parameters.", kFull), of_layers(config, kFull));
  } else {
    keys.objects.emplace_back("rope_parameters", config.find("rope_parameters"));
  }
  c.rope = read_one(config, keys, positions);
  check_arithmetic(config, c.rope, c.head_dim);
}

void write_rope(const ModelConfig& c, OrderedJson& config) {
  config["rope_theta"] = c.rope.theta;
  if (c.family->block.local_rope) {
    if (c.family->local_theta != nullptr) config[c.family->local_theta] = c.local_rope.theta;
    config["rope_parameters"] = {{kFull, parameters_of(c.rope)}, {kSliding, parameters_of(c.local_rope)}};
  } else {
    config["rope_parameters"] = parameters_of(c.rope);
  }
  if (c.rope.kind != RopeKind::plain) {
    config["rope_scaling"] = scaling_of(c.rope);
  } else if (config.contains("rope_scaling")) {
    config["rope_scaling"] = nullptr;
  }
  config.erase("original_max_position_embeddings");
}

}  // namespace ucas
