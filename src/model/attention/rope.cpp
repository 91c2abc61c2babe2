// The arithmetic of transformers' modeling_rope_utils.py, types and order included: what it computes with tensors is
// float here, what it computes with Python's numbers is double, and a number over a tensor is its reciprocal times
// that.
#include "model/attention/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ucas {

namespace {

// base^(2i/d)
std::vector<float> powers(double base, int64_t d) {
  std::vector<float> out;
  for (int64_t i = 0; i < d / 2; ++i) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(d);
    out.push_back(static_cast<float>(std::pow(static_cast<double>(static_cast<float>(base)), exponent)));
  }
  return out;
}

// Grows with a sequence beyond max_position_embeddings; this is its value up to there, rounding included.
double dynamic_base(const RopeConfig& rope, int64_t positions, int64_t d) {
  auto length = static_cast<double>(positions), width = static_cast<double>(d);
  return rope.theta * std::pow(rope.factor * length / length - (rope.factor - 1), width / (width - 2));
}

// Wavelengths that fit often into the original context stay, long ones are stretched, between the two is a ramp.
float llama3_frequency(const RopeConfig& rope, float plain) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const auto context = static_cast<double>(rope.original_max_position_embeddings);
  const auto factor = static_cast<float>(rope.factor), low = static_cast<float>(rope.low_freq_factor);
  const float wavelength = 1 / plain * static_cast<float>(kTurn);
  if (wavelength > static_cast<float>(context / rope.low_freq_factor)) return plain / factor;
  if (wavelength < static_cast<float>(context / rope.high_freq_factor)) return plain;
  const float smooth = (1 / wavelength * static_cast<float>(context) - low) /
                       static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * plain / factor + smooth * plain;
}

// The pair of columns whose angle turns `rotations` times within the original context.
double yarn_column(const RopeConfig& rope, double rotations, double d) {
  const auto context = static_cast<double>(rope.original_max_position_embeddings);
  return d * std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
}

// Columns before the ramp keep their frequency, those behind it are stretched.
std::vector<float> yarn_frequencies(const RopeConfig& rope, int64_t d) {
  const auto width = static_cast<double>(d);
  double low = yarn_column(rope, rope.beta_fast, width), high = yarn_column(rope, rope.beta_slow, width);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high) high += 0.001;
  std::vector<float> out = powers(rope.theta, d);
  const auto factor = static_cast<float>(rope.factor);
  for (int64_t i = 0; i < d / 2; ++i) {
    const float power = out[i],
                ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float keep = 1 - std::clamp(ramp, 0.0f, 1.0f);
    out[i] = 1 / (factor * power) * (1 - keep) + 1 / power * keep;
  }
  return out;
}

double yarn_mscale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

}  // namespace

std::vector<float> rope_frequencies(const ModelConfig& config, const RopeConfig& rope) {
  const int64_t d = config.head_dim;
  if (rope.theta == 0) return std::vector<float>(static_cast<size_t>(d / 2), 0.0f);
  if (rope.kind == RopeKind::yarn) return yarn_frequencies(rope, d);
  const bool dynamic = rope.kind == RopeKind::dynamic;
  std::vector<float> out = powers(dynamic ? dynamic_base(rope, config.max_position_embeddings, d) : rope.theta, d);
  for (float& x : out) {
    x = 1 / x;
    if (rope.kind == RopeKind::linear) x /= static_cast<float>(rope.factor);
    if (rope.kind == RopeKind::llama3) x = llama3_frequency(rope, x);
  }
  return out;
}

float rope_attention_factor(const RopeConfig& rope) {
  if (rope.kind != RopeKind::yarn) return 1;
  if (rope.attention_factor) return static_cast<float>(*rope.attention_factor);
  const double over = rope.mscale.value_or(0), under = rope.mscale_all_dim.value_or(0);
  if (over == 0 || under == 0) return static_cast<float>(yarn_mscale(rope.factor, 1));
  return static_cast<float>(yarn_mscale(rope.factor, over) / yarn_mscale(rope.factor, under));
}

RopeTable::RopeTable(const ModelConfig& config, const RopeConfig& rope)
    : half_(config.head_dim / 2), factor_(rope_attention_factor(rope)), frequency_(rope_frequencies(config, rope)) {}

void RopeTable::reach(int64_t position) {
  if (position < made_) return;
  int64_t rows = std::max(position + 1, std::max<int64_t>(256, 2 * made_));
  cos_.resize(rows * half_);
  sin_.resize(rows * half_);
  for (int64_t p = made_; p < rows; ++p)
    for (int64_t i = 0; i < half_; ++i) {
      double angle = static_cast<double>(static_cast<float>(p) * frequency_[i]);
      cos_[p * half_ + i] = static_cast<float>(std::cos(angle)) * factor_;
      sin_[p * half_ + i] = static_cast<float>(std::sin(angle)) * factor_;
    }
  made_ = rows;
}

}  // namespace ucas
