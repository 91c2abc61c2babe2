// The LM head's statistics with their gradient, beside three and four GEMMs of its size by LibTorch in the same run.
// Prints seconds and the memory beyond hidden states and weights, gradients of both included.
//   build/bench_head [rows=512] [width=896] [vocab=151936] [dtype=f32] [repeat=3] [threads=1]
#include <ATen/TensorOperators.h>
#include <sys/resource.h>

#include "bench_model.h"
#include "kernels/lm_head.h"

using namespace ucas;

namespace {

at::Tensor random(int64_t rows, int64_t columns, float scale) {
  at::Tensor x = at::empty({rows, columns}, at::kFloat);
  Rng rng(9, static_cast<uint64_t>(rows));
  for (int64_t i = 0; i < x.numel(); ++i)
    x.data_ptr<float>()[i] = scale * (2 * static_cast<float>(rng.below(65536)) / 65536 - 1);
  return x;
}

double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e3;
}

void measure(const Arguments& args) {
  const int64_t rows = args.number("rows", 512), width = args.number("width", 896);
  const int64_t vocab = args.number("vocab", 151936);
  const auto repeat = static_cast<int>(args.number("repeat", 3));
  const at::ScalarType type = args.dtype() == Dtype::bf16 ? at::kBFloat16 : at::kFloat;
  at::Tensor leaf = random(vocab, width, 0.02F).set_requires_grad(true), used = leaf.detach().to(type);
  at::Tensor hidden = random(rows, width, 1).set_requires_grad(true);
  std::vector<int32_t> target;
  for (int64_t i = 0; i < rows; ++i) target.push_back(static_cast<int32_t>(i * 101 % vocab));
  const at::Tensor g = random(rows, 1, 1).view({rows}), e = random(rows, 1, 0.01F).view({rows});
  const auto head = make_native_head({leaf, used});
  const double before = peak_mb();
  const std::vector<double> takes = seconds_of(repeat, [&] {
    const HeadStats stats = head->stats(hidden, target, 1.0);
    (stats.logprob * g + stats.entropy * e).sum().backward();
  });
  const double seconds = takes.front();
  const double used_mb = peak_mb() - before;
  const at::Tensor x = hidden.detach().to(type), tile = used.narrow(0, 0, std::min<int64_t>(vocab, 16384));
  const double gemm =
      best_of(repeat, [&] { at::mm(x, tile.t()); }) * static_cast<double>(vocab) / static_cast<double>(tile.size(0));
  std::printf("LM head %ld x %ld x %ld, %s, isa %s, %d thread(s)\n", rows, width, vocab, word_of(args.dtype()),
              kernels::isa(), at::get_num_threads());
  std::printf(
      "forward and backward %7.3f s   three products of the library %7.3f s (%.0f %%)   four %7.3f s (%.0f %%)\n",
      seconds, 3 * gemm, 300 * gemm / seconds, 4 * gemm, 400 * gemm / seconds);
  std::printf("memory %.0f MB; all logits in f32 would be %.0f MB\n", used_mb,
              4e-6 * static_cast<double>(rows * vocab));
  print_takes("head", 1, takes);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments args(argc, argv);
  args.set_threads();
  measure(args);
  return 0;
}
