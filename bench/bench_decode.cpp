// Decoding as the engine does it: every token drawn by its key, its log-prob, entropy and confidence noted. Prints
// tokens/s, the share of this machine's f32 GEMM limit that they reach, and how fast the weights are read.
//   build/bench_decode [shape=tiny] [batch=256,..] [dtype=f32] [prompt=16] [new=64] [repeat=3] [threads=1]
// group=G: so many responses to each prompt, which they share in the cache, or of which each has a copy (share=0).
#include <c10/core/GradMode.h>

#include "bench_model.h"
#include "kernels/dispatch.h"
#include "model/decoder.h"

using namespace ucas;

namespace {

void measure(const Arguments& args, Model& model, int64_t batch) {
  const ModelConfig& config = model.config();
  const int64_t prompt = args.number("prompt", 16), fresh = args.number("new", 64);
  const auto repeat = static_cast<int>(args.number("repeat", 3));
  const int64_t group = args.number("group", 0);
  const int64_t prompts = group > 0 ? (batch + group - 1) / group : batch;
  KvBudget room{.slots = batch, .prompt_slots = group > 0 ? prompts : 0, .length = prompt + fresh};
  if (group > 0 && args.number("share", 1) != 0) {
    room.own = fresh + 15;
    room.prompts = prompts;
    room.prompt = prompt;
  }
  auto cache = model.make_cache(room);
  Rng rng(1, 2);
  Packed packed;
  packed.begin = {0};
  std::vector<int64_t> slot, filled;
  for (int64_t s = 0; s < prompts; ++s) {
    for (int64_t i = 0; i < prompt; ++i) {
      packed.token.push_back(static_cast<int32_t>(rng.below(config.vocab_size)));
      packed.position.push_back(static_cast<int32_t>(i));
    }
    packed.begin.push_back(static_cast<int64_t>(packed.token.size()));
    filled.push_back(group > 0 ? batch + s : s);
  }
  for (int64_t s = 0; s < batch; ++s) slot.push_back(s);
  const double prefill = best_of(repeat, [&] { model.prefill(packed, *cache, filled); });
  const double copies = best_of(1, [&] {
    for (int64_t s = 0; group > 0 && s < batch; ++s) cache->copy(batch + s / group, s, prompt);
  });
  auto decoder = model.make_decoder(*cache, {});
  std::vector<int32_t> token(static_cast<size_t>(batch), 7), position(static_cast<size_t>(batch));
  auto sample = [&](int64_t step) {
    std::vector<Lane> lanes;
    for (int64_t s = 0; s < batch; ++s) {
      const auto response = static_cast<uint32_t>(s), place = static_cast<uint32_t>(step);
      lanes.push_back({s,
                       token[s],
                       static_cast<int32_t>(prompt + step),
                       fresh - step,
                       {.seed = 1, .response = response, .position = place},
                       false});
    }
    const std::vector<SampledToken> sampled = decoder->next(lanes);
    for (int64_t s = 0; s < batch; ++s) token[s] = sampled[s].token;
  };
  const std::vector<double> seconds = seconds_of(repeat, [&] {
    for (int64_t step = 0; step < fresh; ++step) sample(step);
  });
  const double layers = best_of(repeat, [&] {
    for (int64_t step = 0; step < fresh; ++step) {
      std::fill(position.begin(), position.end(), static_cast<int32_t>(prompt + step));
      model.decode(token, position, slot, *cache);
    }
  });
  const double limit = gemm_limit(), best = seconds.front();
  const double tokens = static_cast<double>(batch * fresh), products = multiply_adds_per_token(config);
  std::printf("%s shape, %s, isa %s, batch %ld, %d thread(s), f32 GEMM limit %.1f GFLOP/s\n",
              args.word("shape", "tiny").c_str(), word_of(args.dtype()), kernels::isa(), batch, at::get_num_threads(),
              limit);
  std::printf("decode  %9.1f tok/s   %5.1f us/token   %4.1f %% of the GEMM limit\n", tokens / best, 1e6 * best / tokens,
              100 * 2e-9 * products * tokens / best / limit);
  std::printf("        layers %.1f us, head, statistics and draw %.1f us a token\n", 1e6 * layers / tokens,
              1e6 * (best - layers) / tokens);
  const double bytes = products * (args.dtype() == Dtype::bf16 ? 2 : 4);
  std::printf("        weights read at %.1f GB/s\n", 1e-9 * bytes * static_cast<double>(fresh) / best);
  if (group > 0) {
    const int64_t width = config.num_hidden_layers * config.num_key_value_heads * config.head_dim;
    std::printf("cache   %9.1f MiB for %ld prompts and %ld responses, %.2f ms to give these their prompts\n",
                static_cast<double>(room.held() * width * (args.dtype() == Dtype::bf16 ? 4 : 8)) / (1 << 20), prompts,
                batch, 1e3 * copies);
  }
  double rows = static_cast<double>(prompts * prompt);
  const double in_layers = products - static_cast<double>(config.vocab_size * config.hidden_size);
  std::printf("prefill %9.0f tok/s   %5.1f us/token   %4.1f %% of the GEMM limit\n", rows / prefill,
              1e6 * prefill / rows, 100 * 2e-9 * in_layers * rows / prefill / limit);
  print_takes("decode", tokens, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments args(argc, argv);
  args.set_threads();
  c10::NoGradGuard no_grad;
  auto model = make_model(config_of(args.word("shape", "tiny")), 1, at::kCPU, inference(args.dtype()));
  for (const std::string& batch : split(args.word("batch", "256"), ',')) measure(args, *model, std::stoll(batch));
  return 0;
}
