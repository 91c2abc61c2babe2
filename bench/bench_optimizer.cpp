// One update of a model of 25 M parameters by each kind of optimizer and type of moments: bytes a parameter that are
// kept between updates, and CPU seconds on one thread. The gradient's norm, which every update takes first, is in all
// of them.
//   build/bench_optimizer
#include "bench_model.h"
#include "train/optimizer/optimizer.h"

using namespace ucas;

namespace {

ModelConfig shape_of_25m() {
  ModelConfig c;
  c.hidden_size = 512;
  c.num_hidden_layers = 6;
  c.num_attention_heads = 8;
  c.num_key_value_heads = 4;
  c.head_dim = 64;
  c.intermediate_size = 1536;
  c.vocab_size = 12288;
  c.tie_word_embeddings = true;
  return c;
}

void measure(OptimizerKind kind, MomentType moments) {
  auto model = make_model(shape_of_25m(), 1, at::kCPU);
  Optimizer optimizer(model->trainable(), {.lr = 1e-6, .kind = kind, .moments = moments});
  double parameters = 0, bytes = 0;
  for (const NamedTensor& p : model->trainable()) parameters += static_cast<double>(p.tensor.numel());
  for (const NamedTensor& t : optimizer.state()) bytes += static_cast<double>(t.tensor.nbytes());
  Rng rng(1, 2);
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    for (const NamedTensor& p : model->trainable()) {
      p.tensor.mutable_grad() = at::empty(p.tensor.sizes());
      float* g = p.tensor.mutable_grad().mutable_data_ptr<float>();
      for (int64_t i = 0; i < p.tensor.numel(); ++i) g[i] = static_cast<float>(1e-4 * (rng.uniform() - 0.5));
    }
    best = std::min(best, best_of(1, [&] { optimizer.step(1e-6); }));
  }
  std::printf("%-6s %-5s %5.1f M parameters, %5.2f bytes each, %6.3f s an update\n", word_of(kind), word_of(moments),
              1e-6 * parameters, bytes / parameters, best);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    for (MomentType moments : {MomentType::f32, MomentType::bf16, MomentType::int8}) measure(kind, moments);
  }
  std::printf("GEMM limit %.1f GFLOP/s\n", gemm_limit());
  return 0;
}
