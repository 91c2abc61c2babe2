// Decoding, log-prob and entropy of every token included. Prints tokens/s on one thread and the share of this machine's
// f32 GEMM limit that they reach, and how fast the weights are read.
//   build/bench_decode [shape=tiny] [batch=256] [dtype=f32] [prompt=16] [new=64] [repeat=3]
#include <c10/core/GradMode.h>

#include "bench_model.h"
#include "kernels/lm_head.h"

using namespace ucas;

namespace {

bool measure(const Arguments& args) {
  const std::string name = args.word("shape", "tiny");
  const ModelConfig config = config_of(name);
  const int64_t batch = args.number("batch", 256), prompt = args.number("prompt", 16), fresh = args.number("new", 64);
  const auto repeat = static_cast<int>(args.number("repeat", 3));
  auto model = make_model(config, 1, at::kCPU, inference(args.dtype()));
  auto cache = model->make_cache(batch, prompt + fresh);
  Rng rng(1, 2);
  Packed packed;
  packed.begin = {0};
  std::vector<int64_t> slot;
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < prompt; ++i) {
      packed.token.push_back(static_cast<int32_t>(rng.below(config.vocab_size)));
      packed.position.push_back(static_cast<int32_t>(i));
    }
    packed.begin.push_back(static_cast<int64_t>(packed.token.size()));
    slot.push_back(s);
  }
  double prefill = best_of(repeat, [&] { model->prefill(packed, *cache, slot); });
  std::vector<int32_t> token(static_cast<size_t>(batch), 7), position(static_cast<size_t>(batch));
  double in_model = 0, in_head = 0, in_stats = 0, entropy = 0;
  auto decode = [&] {
    in_model = in_head = in_stats = 0;
    for (int64_t step = 0; step < fresh; ++step) {
      std::fill(position.begin(), position.end(), static_cast<int32_t>(prompt + step));
      double t0 = cpu_seconds();
      at::Tensor hidden = model->decode(token, position, slot, *cache);
      double t1 = cpu_seconds();
      at::Tensor logits = model->head().logits(hidden);
      double t2 = cpu_seconds();
      const float* row = logits.data_ptr<float>();
      for (size_t i = 0; i < token.size(); ++i, row += logits.stride(0)) {
        kernels::RowStats stats = kernels::stats_of_row(row, config.vocab_size, 1.0f);
        token[i] =
            static_cast<int32_t>((i * 37 + static_cast<size_t>(step) * 11) % static_cast<size_t>(config.vocab_size));
        entropy += static_cast<double>(kernels::token_stats(stats, row[token[i]], 1.0f, config.vocab_size).entropy);
      }
      in_model += t1 - t0;
      in_head += t2 - t1;
      in_stats += cpu_seconds() - t2;
    }
  };
  double seconds = best_of(repeat, decode), limit = gemm_limit();
  double tokens = static_cast<double>(batch * fresh), products = products_per_token(config);
  std::printf("%s shape, %s, isa %s, batch %ld, 1 thread, f32 GEMM limit %.1f GFLOP/s\n", name.c_str(),
              word_of(args.dtype()), kernels::isa(), batch, limit);
  std::printf("decode  %9.0f tok/s   %5.1f us/token   %4.1f %% of the GEMM limit\n", tokens / seconds,
              1e6 * seconds / tokens, 100 * 2e-9 * products * tokens / seconds / limit);
  std::printf("        layers %.1f us, head %.1f us, statistics %.1f us a token (last round)\n",
              1e6 * in_model / tokens, 1e6 * in_head / tokens, 1e6 * in_stats / tokens);
  const double bytes = products * (args.dtype() == Dtype::bf16 ? 2 : 4);
  std::printf("        weights read at %.1f GB/s\n", 1e-9 * bytes * static_cast<double>(fresh) / seconds);
  double rows = static_cast<double>(batch * prompt);
  double layers = products - static_cast<double>(config.vocab_size * config.hidden_size);
  std::printf("prefill %9.0f tok/s   %5.1f us/token   %4.1f %% of the GEMM limit\n", rows / prefill,
              1e6 * prefill / rows, 100 * 2e-9 * layers * rows / prefill / limit);
  return entropy > 0;
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  c10::NoGradGuard no_grad;
  return measure(Arguments(argc, argv)) ? 0 : 1;
}
