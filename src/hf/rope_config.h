// Rotary embedding as config.json describes it: rope_theta and rope_scaling of transformers 4, rope_parameters of
// transformers 5, or both. model/attention/rope.h computes the angles. "longrope" and all other kinds are refused by
// name, and so is a key that has no meaning for its kind.
// clang-format off
//   default   theta^(-2i/d)
//   linear    that / factor
//   dynamic   theta grows with the sequence beyond max_position_embeddings; ucas runs no longer ones, and up to there
//             it is the default
//   yarn      high frequencies as they are, low ones / factor, a ramp between; cosines and sines times a factor
//   llama3    the same with another ramp and no factor
// clang-format on
// Gemma 3 has two: rope_theta and rope_scaling are those of layers that see all, rope_local_base_freq is of layers that
// slide; transformers 5 has rope_parameters of each kind of layer. OLMo 3 has one rope_theta, and its scaling is that
// of layers that see all. A theta of 0 is no rotation.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/text/json.h"

namespace ucas {

class ConfigReader;
struct ModelConfig;

enum class RopeKind { plain, linear, dynamic, yarn, llama3 };
constexpr std::array<const char*, 5> names(RopeKind) { return {"default", "linear", "dynamic", "yarn", "llama3"}; }

// Key by key as transformers names them; what a kind does not use keeps its default.
struct RopeConfig {
  RopeKind kind = RopeKind::plain;
  double theta = 10000;                                            // "rope_theta"
  double factor = 1;                                               // all but plain
  int64_t original_max_position_embeddings = 0;                    // llama3, yarn: before it was stretched
  double low_freq_factor = 1, high_freq_factor = 4;                // llama3
  double beta_fast = 32, beta_slow = 1;                            // yarn
  bool truncate = true;                                            // yarn
  std::optional<double> attention_factor, mscale, mscale_all_dim;  // yarn

  bool operator==(const RopeConfig&) const = default;
};

// Into c.rope, and c.local_rope where the family has it. Error(ErrorKind::unsupported) for another kind,
// Error(ErrorKind::config) for values that make no sense or contradict each other.
void read_rope(const ConfigReader& config, ModelConfig& c);
// Both spellings, so that transformers 4 and 5 read the same.
void write_rope(const ModelConfig& c, OrderedJson& config);

}  // namespace ucas
