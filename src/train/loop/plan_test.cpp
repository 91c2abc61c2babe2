// The sizes that `ucas plan` counts against the tensors that are allocated.
#include <gtest/gtest.h>

#include "config/plan/model_memory.h"
#include "model/backend/block.h"
#include "model/model.h"
#include "model/weights.h"
#include "train/optimizer/host_state.h"
#include "train/optimizer/optimizer.h"

namespace ucas {

namespace {

ModelConfig planned_shape(const Family& family, bool tied) {
  ModelConfig c;
  c.family = &family;
  c.tie_word_embeddings = tied;
  c.vocab_size = 300;
  return c;
}

int64_t bytes_of_tensors(const Weights& w) {
  int64_t bytes = 0;
  for (const NamedTensor& p : w.parameters) bytes += static_cast<int64_t>(p.tensor.nbytes());
  for (const Bf16Copy& copy : w.copies) bytes += static_cast<int64_t>(copy.compute.nbytes());
  for (const Layer& layer : w.layers) {
    for (const Linear* linear : layer.linears()) {
      for (const Linear::Part& part : linear->parts) {
        if (!part.adapter.on()) continue;
        for (const at::Tensor* t :
             {&part.adapter.a, &part.adapter.b, &part.adapter.a_compute, &part.adapter.b_compute}) {
          bytes += static_cast<int64_t>(t->nbytes());
        }
      }
    }
  }
  return bytes;
}

TEST(planned_sizes, are_those_of_the_weights_of_every_family_dtype_and_adapter) {
  const LoraConfig lora{.rank = 8, .target_modules = {"q_proj", "down_proj"}, .modules_to_save = {"norm"}};
  for (const Family& family : kFamilies) {
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      for (Trained trained : {Trained::all, Trained::adapter, Trained::none}) {
        const ModelConfig c = planned_shape(family, trained == Trained::all);
        ModelOptions options{.dtype = dtype, .trained = trained};
        if (trained == Trained::adapter) options.lora = lora;
        const Weights w = allocate_weights(c, at::Device(at::kMeta), options);
        const ModelMemory m = model_memory(c, options, nullptr);
        EXPECT_EQ(m.weights + m.masters + m.adapter, bytes_of_tensors(w)) << family.title << word_of(dtype);
        const std::vector<ParameterShape> shapes = parameter_shapes(c);
        ASSERT_EQ(shapes.size(), w.parameters.size());
        for (size_t i = 0; i < shapes.size(); ++i) {
          EXPECT_EQ(shapes[i].module + shapes[i].kind, w.parameters[i].name);
          EXPECT_EQ(shapes[i].elements(), w.parameters[i].tensor.numel());
        }
      }
    }
  }
}

TEST(planned_sizes, are_those_of_the_moments_of_every_kind) {
  const ModelConfig c = planned_shape(kFamilies[0], true);
  const std::unique_ptr<Model> model = make_model(c, 1, at::kCPU);
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    for (MomentType moments : {MomentType::f32, MomentType::bf16, MomentType::int8}) {
      OptimizerConfig config;
      config.kind = kind;
      config.moments = moments;
      int64_t bytes = 0;
      for (const NamedTensor& t : Optimizer(model->trainable(), config).state()) {
        bytes += static_cast<int64_t>(t.tensor.nbytes());
      }
      EXPECT_EQ(model_memory(c, {}, &config).moments, bytes) << word_of(kind) << word_of(moments);
    }
  }
}

TEST(planned_sizes, parts_of_an_offloaded_optimizer_are_those_of_its_buffers) {
  EXPECT_EQ(kOffloadedPart, kOffloadSlice);
}

TEST(planned_sizes, are_those_of_what_a_block_keeps) {
  for (const Family& family : kFamilies) {
    ModelConfig c = planned_shape(family, true);
    if (family.block.multipliers) c.residual_multiplier = 0.5;
    const BlockShape shape{c};
    int64_t bytes = static_cast<int64_t>(rows_of(64, c.hidden_size).nbytes());  // before the final norm
    for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      const Activations a = allocate_block<Bf16>(shape, 64, rows_of(64, c.hidden_size), true);
      for (const at::Tensor* t : {&a.x, &a.unnormed, &a.qkv, &a.attended, &a.softmax, &a.middle, &a.gate_up,
                                  &a.attention_output, &a.mlp_output}) {
        // What both halves use is one buffer.
        if (t == &a.mlp_output && a.mlp_output.is_same(a.attention_output)) continue;
        if (t->defined()) bytes += static_cast<int64_t>(t->nbytes());
      }
    }
    const PassMemory pass = backward_memory(c, {.dtype = Dtype::bf16}, {.rows = 64, .length = 64});
    EXPECT_EQ(pass.activations, bytes) << family.title;
  }
}

}  // namespace

}  // namespace ucas
