#include "train/update/self_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/decoder.h"
#include "model/tensor/stream.h"
#include "model/transformer.h"
#include "train/optimizer/optimizer.h"

namespace ucas {

namespace {

// Both sides round to bf16 almost in the same places; a sum's last bits decide which way, and the blocks pass that on.
constexpr double kOfLogits = 0.03, kOfGradients = 0.06;
constexpr double kOfUpdate = 1e-4;  // of the largest change, which f32 weights round
constexpr double kNoNumber = std::numeric_limits<double>::infinity();

double apart(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const at::Tensor a = got[i].to(at::kDouble), b = want[i].to(at::kDouble);
    const double largest = b.abs().max().item<double>(), most = (a - b).abs().max().item<double>();
    if (!std::isfinite(largest) || !std::isfinite(most)) return kNoNumber;
    if (most > 0) worst = std::max(worst, most / largest);
  }
  return worst;
}

at::Tensor normal_numbers(at::IntArrayRef sizes, uint64_t stream, float mean, float spread) {
  Rng rng(6, stream);
  at::Tensor host = at::empty(sizes, at::kFloat);
  for (int64_t i = 0; i < host.numel(); ++i)
    host.data_ptr<float>()[i] = mean + spread * static_cast<float>(rng.normal());
  return host;
}

// Sequences with ragged ends; the library's attention takes other kernels beyond 1,024 tokens.
Packed sequences(const std::vector<int64_t>& lengths, int64_t vocab) {
  Packed packed;
  for (const int64_t length : lengths) {
    Rng rng(3, static_cast<uint64_t>(length));
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>(rng.below(vocab)));
    packed.append(tokens);
  }
  return packed;
}

std::vector<at::Tensor> logits_of(Model& model, const Packed& packed) {
  const at::NoGradGuard no_grad;
  return {model.head().logits(model.hidden(packed)).cpu()};
}

// Of a loss that all statistics of the head take part in.
std::vector<at::Tensor> gradients_of(Model& model, const Packed& packed) {
  const at::AutoGradMode with_gradients(true);
  const HeadStats s = model.head().stats(model.hidden(packed), packed.token, 0.8);
  (s.entropy.mean() * 0.2 - s.logprob.mean() - s.confidence.mean() * 0.1).backward();
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& p : model.trainable()) {
    gradients.push_back(p.tensor.grad().cpu().clone());
    p.tensor.mutable_grad().reset();
  }
  return gradients;
}

// Lanes of different lengths, one from block to block of the cache, one greedy: what was recorded of their tokens
// against what the reference says of them, read as whole sequences.
double decoding_apart(Model& reference, Model& tested) {
  const at::NoGradGuard no_grad;
  constexpr int32_t kTokens = 12;
  const std::vector<int64_t> lengths = {5, 250, 30}, slots = {1, 2, 3};
  const Packed prompts = sequences(lengths, tested.config().vocab_size);
  std::vector<std::vector<int32_t>> texts;
  std::vector<Lane> lanes;
  for (size_t i = 0, at = 0; i < lengths.size(); at += static_cast<size_t>(lengths[i++])) {
    const auto begin = prompts.token.begin() + static_cast<std::ptrdiff_t>(at);
    texts.emplace_back(begin, begin + lengths[i]).push_back(7);
    const auto lane = static_cast<uint32_t>(i);
    lanes.push_back({lane + 1, 7, static_cast<int32_t>(lengths[i]), kTokens, {9, 1, lane, 0, 0}, lane == 2});
  }
  const auto cache = tested.make_cache(4, 270);
  tested.prefill(prompts, *cache, slots);
  const auto decoder = tested.make_decoder(*cache, {});
  std::vector<std::vector<SampledToken>> sampled(lanes.size());
  while (lanes.front().left > 0) {
    const std::vector<SampledToken> next = decoder->next(lanes);
    for (size_t i = 0; i < next.size(); ++i) {
      Lane& lane = lanes[i % lanes.size()];
      if (next[i].token < 0) return kNoNumber;
      if (lane.left-- <= 0) continue;
      sampled[i % lanes.size()].push_back(next[i]);
      texts[i % lanes.size()].push_back(lane.token = next[i].token);
      ++lane.position, ++lane.key.position;
    }
  }
  double most = 0, largest = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    Packed whole;
    whole.append(texts[i]);
    const std::vector<int32_t> target(texts[i].end() - kTokens, texts[i].end());
    const at::Tensor hidden = reference.hidden(whole).narrow(0, lengths[i], kTokens);
    const HeadStats want = reference.head().stats(hidden, target, 1.0);
    for (int64_t t = 0; t < kTokens; ++t) {
      const auto of = [t](const at::Tensor& x) { return static_cast<double>(x.const_data_ptr<float>()[t]); };
      const SampledToken& got = sampled[i][static_cast<size_t>(t)];
      largest = std::max(largest, std::abs(of(want.logit)));
      most = std::max({most, std::abs(got.logit - of(want.logit)), std::abs(got.logprob - of(want.logprob))});
      if (lanes[i].greedy) most = std::max(most, -of(want.margin));
    }
  }
  return most / largest;
}

// What two updates change, by the same gradients; the norm of the gradients last.
std::vector<at::Tensor> updates_of(Model& model) {
  Optimizer optimizer(model.trainable(), {.lr = 0.01});
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> changes;
  for (const NamedTensor& p : model.trainable()) changes.push_back(p.tensor.detach().clone());
  at::Tensor norm = at::empty({1}, at::kDouble);
  for (uint64_t update = 1; update < 3; ++update) {
    for (uint64_t stream = 1000 * update; const NamedTensor& p : model.trainable())
      p.tensor.mutable_grad() = normal_numbers(p.tensor.sizes(), stream++, 0, 1).to(p.tensor.device());
    norm.fill_(optimizer.step(0.01).grad_norm);
  }
  for (size_t i = 0; const NamedTensor& p : model.trainable()) {
    changes[i] = (p.tensor.detach() - changes[i]).cpu();
    p.tensor.mutable_grad().reset();
    ++i;
  }
  changes.push_back(norm);
  model.refresh();
  return changes;
}

}  // namespace

std::unique_ptr<Model> model_to_check(at::Device device, const ModelConfig* own) {
  ModelConfig config;
  config.num_attention_heads = 7;
  config.num_key_value_heads = 1;
  config.head_dim = 64;
  if (own != nullptr) config = *own;
  config.hidden_size = 136;
  config.num_hidden_layers = 2;
  config.intermediate_size = 200;
  config.vocab_size = 1000;
  config.tie_word_embeddings = false;
  config.windows.clear();
  if (config.family->block.window != Window::none) config.windows = {0, 32};
  auto model = make_model(config, 5, device, {.dtype = Dtype::bf16});
  const at::NoGradGuard no_grad;
  for (uint64_t stream = 0; const NamedTensor& p : model->parameters()) {  // norms and biases that do something, too
    if (p.tensor.dim() != 1) continue;
    p.tensor.detach().copy_(normal_numbers(p.tensor.sizes(), stream++, p.name.ends_with(".bias") ? 0.0f : 1.0f, 0.2f));
  }
  model->refresh();
  return model;
}

std::vector<GpuFinding> check_model(Model& reference, Model& tested) {
  Packed packed = sequences({1, 37, 90, 1050}, tested.config().vocab_size);
  const std::vector<int32_t> more(packed.token.end() - 50, packed.token.end());
  for (const size_t length : {20, 50}) packed.append(std::span(more).first(length), {}, /*goes_on_from=*/2);
  return {{"forward", apart(logits_of(tested, packed), logits_of(reference, packed)), kOfLogits},
          {"backward", apart(gradients_of(tested, packed), gradients_of(reference, packed)), kOfGradients},
          {"decoding", decoding_apart(reference, tested), kOfLogits},
          {"update", apart(updates_of(tested), updates_of(reference)), kOfUpdate}};
}

std::vector<GpuFinding> check_gpu(at::Device device, const ModelConfig* own) {
  if (!has_kernels(device)) {
    throw Error(ErrorKind::device, str("no kernels for ", device.str(),
                                       ": a build without nvcc, or UCAS_GPU_KERNELS=off; there is nothing to check"));
  }
  const c10::DeviceGuard guard(device);
  const auto here = model_to_check(at::kCPU, own), there = model_to_check(device, own);
  return check_model(*here, *there);
}

void require_sound_gpu(const Model& model) {
  const at::Device device = model.device();
  if (device.is_cpu() || !computes_by_hand(model.config(), device, model.options())) return;
  for (const GpuFinding& f : check_gpu(device, &model.config())) {
    if (f.ok()) continue;
    throw Error(ErrorKind::device,
                str("the model's ", f.what, " differs from the CPU by ", f.difference, " (bound ", f.bound, ") on ",
                    device.str(),
                    "; set UCAS_GPU_KERNELS=off to train by LibTorch's own operations, and please report it; "
                    "`ucas-tests-engine --gtest_filter=gpu_kernels.*` says which kernel"),
                kNumeric);
  }
}

}  // namespace ucas
