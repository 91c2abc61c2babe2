// One training step's forward and backward: sequences of 0.6 to 1.4 times a mean length, packed into micro-batches.
// Prints tokens/s and the share of this machine's f32 GEMM limit that they reach (2 x 3 flops for each
// weight and token; recomputation is not counted as work).
//   build/bench_train_step [shape=tiny] [sequences=256] [length=79] [micro=2048] [dtype=f32] [repeat=3]
//                          [threads=1] [spread=1] (0: all of the mean length) [lora=0] (rank of an adapter to all
//                          matrices)
#include <ATen/TensorOperators.h>
#include <sys/resource.h>

#include "bench_model.h"
#include "kernels/lm_head.h"

using namespace ucas;

namespace {

void measure(const Arguments& args) {
  const std::string name = args.word("shape", "tiny");
  const ModelConfig config = config_of(name);
  const int64_t budget = args.number("micro", 2048), mean = args.number("length", 79);
  const int64_t sequences = args.number("sequences", 256);
  const Dtype dtype = args.dtype();
  const LoraConfig lora{.rank = args.number("lora", 0)};
  auto model = make_model(config, 1, at::kCPU,
                          {.dtype = dtype, .trained = lora.on() ? Trained::adapter : Trained::all, .lora = lora});
  Rng rng(1, 2);
  std::vector<Packed> micro(1);
  micro[0].begin = {0};
  double tokens = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length = args.number("spread", 1) == 0 ? mean : mean - 2 * mean / 5 + rng.below(4 * mean / 5 + 1);
    if (micro.back().begin.back() + length > budget && micro.back().begin.back() > 0) {
      micro.emplace_back();
      micro.back().begin = {0};
    }
    Packed& packed = micro.back();
    for (int64_t i = 0; i < length; ++i) {
      packed.token.push_back(static_cast<int32_t>(rng.below(config.vocab_size)));
      packed.position.push_back(static_cast<int32_t>(i));
    }
    packed.begin.push_back(static_cast<int64_t>(packed.token.size()));
    tokens += static_cast<double>(length);
  }
  double forward = 0, head = 0, backward = 0;
  auto step = [&] {
    forward = head = backward = 0;
    for (const NamedTensor& p : model->trainable())
      if (p.tensor.grad().defined()) p.tensor.mutable_grad().zero_();  // as the optimizer leaves them
    for (const Packed& packed : micro) {
      double t0 = cpu_seconds();
      at::Tensor hidden = model->hidden(packed);
      double t1 = cpu_seconds();
      HeadStats stats = model->head().stats(hidden, packed.token, 1.0);
      at::Tensor loss = -(stats.logprob.sum() + stats.entropy.sum() * 1e-3);
      double t2 = cpu_seconds();
      loss.backward();
      forward += t1 - t0;
      head += t2 - t1;
      backward += cpu_seconds() - t2;
    }
  };
  step();  // memory, and what LibTorch prepares once
  const std::vector<double> takes = seconds_of(static_cast<int>(args.number("repeat", 3)), step);
  const double seconds = takes.front(), limit = gemm_limit();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%s shape, %s, isa %s, %.0f tokens in %zu micro-batches, %d thread(s), f32 GEMM limit %.1f GFLOP/s\n",
              name.c_str(), word_of(dtype), kernels::isa(), tokens, micro.size(), at::get_num_threads(), limit);
  std::printf("train   %9.0f tok/s   %5.1f us/token   %4.1f %% of the GEMM limit, peak %ld MB\n", tokens / seconds,
              1e6 * seconds / tokens, 100 * 6e-9 * multiply_adds_per_token(config) * tokens / seconds / limit,
              usage.ru_maxrss / 1024);
  std::printf("        forward %.1f us, head %.1f us, backward %.1f us a token (last round)\n", 1e6 * forward / tokens,
              1e6 * head / tokens, 1e6 * backward / tokens);
  print_takes("train", tokens, takes);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments args(argc, argv);
  args.set_threads();
  measure(args);
  return 0;
}
