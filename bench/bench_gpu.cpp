// What a GPU does of its limits, with random weights. One line of JSON a figure; wall seconds, the device waited for.
//   build/bench_gpu what=limits                                      copy bandwidth, bf16 GEMMs
//   build/bench_gpu what=decode [shape=q15b] [batch=64,256,1024] [context=1000] [steps=64]
//   build/bench_gpu what=train  [shape=q15b] [tokens=4096] [packs=4] [sequence=1024] [recompute=none|block]
//   build/bench_gpu what=head   [rows=8192] [V=151936] [D=1536]
//   build/bench_gpu what=parts  [shape=q15b] [tokens=4096] [sequence=1024]   each part of a training step by itself
//   build/bench_gpu what=bits   [shape=q15b] [rows=16,64,..]                 which rows of GEMMs keep their bits
//   build/bench_gpu what=kernels                                     each kernel against its emulation, and its share
//   of a copy build/bench_gpu what=checkpoint out=DIR like=TOKENIZER_DIR [shape=q15b]  a random model, saved
// device=emulated: by CPU emulation, at tiny sizes, to try a command where there is no GPU; its figures say nothing.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <chrono>
#include <sstream>

#include "base/files/file.h"
#include "bench_model.h"
#include "gpu_parts.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/decoder.h"
#include "model/tensor/stream.h"
#include "model/transformer.h"
#include "support/engine/emulation.h"
#include "support/engine/gpu_kernels.h"
#include "train/optimizer/optimizer.h"

using namespace ucas;

namespace {

at::Device kDevice(at::kCUDA, 0);  // device=emulated: the CPU

// Of the device; of the emulation what tiny operations reach, so that every line of a sitting can be tried in seconds.
Limits limits_here() {
  if (!kDevice.is_cpu()) return measure_limits(kDevice);
  const c10::NoGradGuard no_grad;
  const at::Tensor from = at::randn({1 << 20}), a = at::randn({128, 128}), w = at::randn({128, 128});
  at::Tensor to = at::empty_like(from), out = at::empty({128, 128});
  Limits limits;
  limits.bandwidth = 8.0 * static_cast<double>(from.numel()) / seconds_of(kDevice, [&] { to.copy_(from); });
  limits.operations = 2.0 * 128 * 128 * 128 / seconds_of(kDevice, [&] { gemm(a, w, out); });
  return limits;
}
// Random weights made where they lie.
std::unique_ptr<Model> random_model(const ModelConfig& config, at::Device device, const ModelOptions& options) {
  Weights weights = allocate_weights(config, device, options);
  const c10::NoGradGuard no_grad;
  for (const NamedTensor& p : weights.parameters) {
    at::Tensor values = p.tensor.detach();
    p.tensor.dim() == 1 ? values.fill_(1.0) : values.normal_(0, 0.02);
  }
  return make_transformer(config, std::move(weights), options);
}
std::unique_ptr<Model> model_here(const ModelConfig& config, const ModelOptions& options) {
  auto model = random_model(config, kDevice, options);
  return kDevice.is_cpu() ? emulated_view(*model) : std::move(model);
}
std::vector<int64_t> numbers_of(const std::string& list) {
  std::vector<int64_t> numbers;
  std::stringstream words(list);
  for (std::string word; std::getline(words, word, ',');) numbers.push_back(std::stoll(word));
  return numbers;
}

at::Tensor random_bf16(int64_t rows, int64_t columns) {
  return at::randn({rows, columns}, at::TensorOptions().device(kDevice)).to(at::kBFloat16);
}

void limits() {
  const Limits at_best = limits_here();
  std::printf("{\"what\": \"limits\", \"copy_tb_s\": %.2f, \"bf16_8192_tflops\": %.0f}\n", 1e-12 * at_best.bandwidth,
              1e-12 * at_best.operations);
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, uint64_t stream) {
  Rng rng(1, stream);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(rng.below(vocab)));
  return tokens;
}

void decode(const Arguments& args) {
  const std::string name = args.word("shape", "q15b");
  const ModelConfig c = config_of(name);
  const int64_t context = args.number("context", 1000), steps = args.number("steps", 64);
  const auto model = model_here(c, inference(Dtype::bf16));
  const double bandwidth = 1e-12 * limits_here().bandwidth;
  for (const int64_t batch : numbers_of(args.word("batch", "64,256,1024"))) {
    const int64_t length = context + steps + 64;
    const auto cache = model->make_cache(batch, length);
    std::vector<Lane> lanes;
    wait_for(kDevice);
    const auto began = std::chrono::steady_clock::now();
    for (int64_t first = 0; first < batch; first += 8) {
      Packed packed;
      std::vector<int64_t> slots;
      for (int64_t s = first; s < std::min(batch, first + 8); ++s) {
        packed.append(random_tokens(context, c.vocab_size, static_cast<uint64_t>(s)));
        slots.push_back(s);
        lanes.push_back({s, 7, static_cast<int32_t>(context), steps, {1, 1, static_cast<uint32_t>(s), 0, 0}, false});
      }
      model->prefill(packed, *cache, slots);
    }
    wait_for(kDevice);
    const double prefill = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const auto decoder = model->make_decoder(*cache, {});
    int64_t made = 0, bad = 0;
    double spent = 0;
    for (int64_t round = 0; made < steps; ++round) {
      const auto start = std::chrono::steady_clock::now();
      const std::vector<SampledToken> sampled = decoder->next(lanes);
      const double of_round = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const auto of_lane = static_cast<int64_t>(sampled.size()) / batch;
      for (int64_t i = 0; i < batch; ++i) {
        const SampledToken& last = sampled[(of_lane - 1) * batch + i];
        bad += last.token < 0 ? 1 : 0;
        lanes[i].token = std::max(0, last.token);
        lanes[i].position += static_cast<int32_t>(of_lane);
        lanes[i].key.position += static_cast<uint32_t>(of_lane);
      }
      if (round == 0) continue;  // recorded there
      made += of_lane;
      spent += of_round;
    }
    const double kv = 2.0 * 2 * static_cast<double>(c.num_hidden_layers * c.num_key_value_heads * c.head_dim);
    const double weights = 2.0 * multiply_adds_per_token(c);
    const double bytes = weights + kv * static_cast<double>(batch * (context + steps / 2));
    const double per_step = spent / static_cast<double>(made), limit = bytes * 1e-12 / bandwidth;
    std::printf(
        "{\"what\": \"decode\", \"shape\": \"%s\", \"batch\": %ld, \"context\": %ld, \"tokens_s\": %.0f, "
        "\"ms_step\": %.3f, \"limit_ms\": %.3f, \"share\": %.3f, \"prefill_tokens_s\": %.0f, \"bad\": %ld}\n",
        name.c_str(), batch, context, static_cast<double>(batch) / per_step, 1e3 * per_step, 1e3 * limit,
        limit / per_step, static_cast<double>(batch * context) / prefill, bad);
    std::fflush(stdout);
  }
}

void train(const Arguments& args) {
  const std::string name = args.word("shape", "q15b"), again = args.word("recompute", "none");
  const ModelConfig c = config_of(name);
  const int64_t tokens = args.number("tokens", 4096), sequence = args.number("sequence", 1024);
  const int64_t packs = args.number("packs", 4);
  const auto model = model_here(c, {.dtype = Dtype::bf16,
                                    .recompute = again == "block"            ? Recompute::block
                                                 : again == "keep_attention" ? Recompute::keep_attention
                                                                             : Recompute::none});
  Packed packed;
  std::vector<int32_t> target;
  for (int64_t at = 0; at < tokens; at += sequence) {
    const auto some = random_tokens(std::min(sequence, tokens - at), c.vocab_size, static_cast<uint64_t>(at));
    packed.append(some);
    target.insert(target.end(), some.begin(), some.end());
  }
  const double forward = seconds_of(kDevice, [&] {
    const c10::NoGradGuard no_grad;
    model->head().stats(model->hidden(packed), target, 1.0);
  });
  const double both =
      seconds_of(kDevice,
                 [&] {
                   for (int64_t i = 0; i < packs; ++i)
                     (-model->head().stats(model->hidden(packed), target, 1.0).logprob.mean()).backward();
                 }) /
      static_cast<double>(packs);
  Optimizer optimizer(model->trainable(), {});
  const double update = seconds_of(kDevice, [&] {
    optimizer.step(1e-6);
    model->refresh();
  });
  const double attention = 2.0 * static_cast<double>(c.num_hidden_layers * c.num_attention_heads * c.head_dim) *
                           static_cast<double>(sequence) / 2;  // multiply-adds of a token, causal
  const double work = 2 * (multiply_adds_per_token(c) + attention) * static_cast<double>(tokens) * 1e-12;
  const double peak = 1e-12 * limits_here().operations;
  std::printf(
      "{\"what\": \"train\", \"shape\": \"%s\", \"tokens\": %ld, \"sequence\": %ld, \"recompute\": \"%s\", "
      "\"forward_tokens_s\": %.0f, \"forward_tflops\": %.0f, \"tokens_s\": %.0f, \"tflops\": %.0f, "
      "\"mfu_of_989\": %.3f, \"share_of_gemm\": %.3f, \"update_s\": %.4f, \"peak_gb\": %.1f}\n",
      name.c_str(), tokens, sequence, again.c_str(), static_cast<double>(tokens) / forward, work / forward,
      static_cast<double>(tokens) / both, 3 * work / both, 3 * work / both / 989, 3 * work / both / peak, update,
      static_cast<double>(peak_memory(kDevice)) * 1e-9);
}

void head(const Arguments& args) {
  const int64_t rows = args.number("rows", 8192), V = args.number("V", 151936), D = args.number("D", 1536);
  Matrix m;
  m.compute = random_bf16(V, D) * 0.02;
  m.parameter = m.compute.to(at::kFloat).requires_grad_(true);
  const auto made = make_gpu_head(m);
  const at::Tensor hidden = at::randn({rows, D}, at::TensorOptions().device(kDevice)).requires_grad_(true);
  const std::vector<int32_t> target = random_tokens(rows, V, 3);
  gradient_of(m.parameter);
  const int64_t before = peak_memory(kDevice);
  const double forward = seconds_of(kDevice, [&] {
    const c10::NoGradGuard no_grad;
    made->stats(hidden, target, 1.0);
  });
  const double both = seconds_of(kDevice, [&] { made->stats(hidden, target, 1.0).logprob.sum().backward(); });
  const int64_t extra = peak_memory(kDevice) - before;
  const double work = 2e-12 * static_cast<double>(rows) * static_cast<double>(V) * static_cast<double>(D);
  const double peak = 1e-12 * limits_here().operations;
  std::printf(
      "{\"what\": \"head\", \"rows\": %ld, \"V\": %ld, \"D\": %ld, \"forward_ms\": %.2f, \"both_ms\": %.2f, "
      "\"four_gemms_ms\": %.2f, \"share\": %.3f, \"extra_mb\": %.0f, \"of_f32_logits\": %.4f}\n",
      rows, V, D, 1e3 * forward, 1e3 * both, 4e3 * work / peak, 4 * work / peak / both,
      static_cast<double>(extra) * 1e-6, static_cast<double>(extra) / (4.0 * static_cast<double>(rows * V)));
}

void print_kernels() {
  using namespace testing;
  const bool emulated = kDevice.is_cpu();
  auto findings =
      check_kernels(kernels_of(at::kCPU), kernels_of(kDevice), emulated ? KernelShapes::few : KernelShapes::all);
  if (!emulated) add_kernel_speed(kDevice, limits_here(), findings);
  for (const KernelFinding& f : findings) {
    std::printf(
        "{\"what\": \"kernel\", \"kernel\": \"%s\", \"difference\": %.2e, \"bound\": %.2e, \"share_of_copy\": %.3f, "
        "\"ok\": %s}\n",
        f.what.c_str(), f.difference, f.bound, f.share, f.ok() ? "true" : "false");
  }
}

void checkpoint(const Arguments& args) {
  const std::string out = args.word("out", ""), like = args.word("like", "");
  if (out.empty()) throw Error(ErrorKind::usage, "what=checkpoint: out=DIR is missing");
  make_directories(out);
  save_model(*random_model(config_of(args.word("shape", "q15b")), kDevice, {.dtype = Dtype::bf16}), out, like);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments args(argc, argv);
  const std::string what = args.word("what", "limits");
  if (args.word("device", "cuda") == "emulated") kDevice = at::Device(at::kCPU);
  try {
    if (what == "limits") limits();
    if (what == "decode") decode(args);
    if (what == "train") train(args);
    if (what == "head") head(args);
    if (what == "parts") {
      print_parts(config_of(args.word("shape", "q15b")), kDevice, limits_here(), args.number("tokens", 4096),
                  args.number("sequence", 1024));
    }
    if (what == "bits") {
      print_bits(config_of(args.word("shape", "q15b")), kDevice,
                 numbers_of(args.word("rows", "16,32,64,128,256,512,1024,4096,8448,16896")));
    }
    if (what == "kernels") print_kernels();
    if (what == "checkpoint") checkpoint(args);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
