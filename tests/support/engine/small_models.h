// Models and batches of a few numbers that several tests of the engine share.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/rng.h"
#include "core/batch.h"
#include "model/model.h"

namespace ucas::testing {

inline ModelConfig small_shape(int64_t vocabulary = 40) {
  ModelConfig shape;
  shape.hidden_size = 32;
  shape.num_attention_heads = 4;
  shape.num_key_value_heads = 2;
  shape.head_dim = 8;
  shape.intermediate_size = 48;
  shape.vocab_size = vocabulary;
  return shape;
}

// Another family, with what its files say beside shapes.
inline void use_family(ModelConfig& c, const char* model_type) {
  c.family = find_family(model_type);
  const BlockSpec& block = c.family->block;
  if (block.unrotated_layers) {
    c.unrotated.assign(static_cast<size_t>(c.num_hidden_layers), false);
    c.unrotated.back() = true;
    c.local_rope.theta = 0;
  }
  if (block.multipliers) {
    c.embedding_multiplier = 3;
    c.attention_multiplier = 0.2;
    c.residual_multiplier = 0.4;
    c.logits_scaling = 0.7;
  }
}

// An adapter that does something, in place of a fresh one.
inline void fill_adapter(Model& model) {
  Rng rng(5, 0);
  for (const NamedTensor& p : model.adapter()) {
    at::Tensor values = p.tensor.detach();
    for (int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = 0.05f * static_cast<float>(rng.normal());
  }
  model.refresh();
}

// That of the embedded task: d 64, 2 layers, 4/2 heads, V 58.
inline std::unique_ptr<Model> task_model(const ModelOptions& options = {}) {
  ModelConfig config;
  config.max_position_embeddings = 256;
  auto model = make_model(config, 3, at::kCPU, options);
  fill_adapter(*model);
  return model;
}

// Random groups with ragged lengths over small_shape()'s vocabulary, the first response of the second group empty,
// without the trainer's signals.
inline Batch ragged_batch(Rng& rng, int64_t groups, int64_t per_group) {
  Batch batch;
  for (int64_t g = 0; g < groups; ++g) {
    Group group{g, static_cast<int64_t>(batch.responses.size()), per_group, {}};
    for (int64_t p = 0; p < 3 + g; ++p) group.prompt.push_back(static_cast<int32_t>(rng.below(40)));
    for (int64_t i = 0; i < per_group; ++i) {
      Response o;
      o.first = batch.token_count();
      o.length = g == 1 && i == 0 ? 0 : 1 + rng.below(9);
      o.group = g;
      o.reward = o.score = static_cast<float>(i % 2);
      for (int64_t t = 0; t < o.length; ++t) batch.token.push_back(static_cast<int32_t>(rng.below(40)));
      batch.responses.push_back(o);
    }
    batch.groups.push_back(group);
  }
  return batch;
}

}  // namespace ucas::testing
