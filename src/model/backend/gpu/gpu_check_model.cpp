// Whole models: what a device gives against the same weights emulated on the host, and how near it comes to its limits.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "model/backend/gpu/gpu_check.h"
#include "model/decoder.h"
#include "model/limits.h"
#include "model/tensor/stream.h"
#include "model/transformer.h"

namespace ucas {

namespace {

// Both sides round to bf16 in the same places, but a sum's last bits decide which way, and the blocks pass that on.
constexpr double kOfLogits = 0.03, kOfGradients = 0.06;

std::vector<int32_t> some_tokens(int64_t count, int64_t vocab, uint64_t stream) {
  Rng rng(3, stream);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(rng.below(vocab)));
  return tokens;
}

// One is beyond 1,024 tokens: the library's attention takes other kernels there.
Packed ragged_sequences(int64_t vocab) {
  Packed packed;
  for (const int64_t length : {1, 37, 90, 1050})
    packed.append(some_tokens(length, vocab, static_cast<uint64_t>(length)));
  return packed;
}

GpuFinding check_forward(Model& reference, Model& tested) {
  const at::NoGradGuard no_grad;
  const Packed packed = ragged_sequences(tested.config().vocab_size);
  const auto logits = [&](Model& model) { return model.head().logits(model.hidden(packed)).cpu(); };
  return {"forward", difference_of(logits(tested), logits(reference)), kOfLogits};
}

// Of a loss that all statistics of the head take part in.
void run_backward(Model& model, const Packed& packed) {
  const at::AutoGradMode with_gradients(true);
  const HeadStats s = model.head().stats(model.hidden(packed), packed.token, 0.8);
  (s.entropy.mean() * 0.2 - s.logprob.mean() - s.confidence.mean() * 0.1).backward();
}

GpuFinding check_backward(Model& reference, Model& tested) {
  const Packed packed = ragged_sequences(tested.config().vocab_size);
  const auto gradients = [&](Model& model) {
    run_backward(model, packed);
    std::vector<at::Tensor> list;
    for (const NamedTensor& p : model.trainable()) {
      list.push_back(p.tensor.grad().cpu().clone());
      p.tensor.mutable_grad().reset();
    }
    return list;
  };
  const std::vector<at::Tensor> want = gradients(reference), got = gradients(tested);
  GpuFinding finding{"backward", 0, kOfGradients};
  for (size_t i = 0; i < want.size(); ++i) {
    finding.difference = std::max(finding.difference, difference_of(got[i], want[i]));
  }
  return finding;
}

// Lanes of different lengths, one from block to block of the cache, one greedy: what was noted of their tokens against
// what the reference says of them, read as whole sequences.
GpuFinding check_decoding(Model& reference, Model& tested) {
  const at::NoGradGuard no_grad;
  constexpr int64_t kTokens = 12, kLength = 270;
  const int64_t vocab = tested.config().vocab_size;
  const auto cache = tested.make_cache(4, kLength);
  Packed prompts;
  std::vector<int64_t> slots;
  std::vector<std::vector<int32_t>> sequence;
  std::vector<Lane> lanes;
  for (const int64_t length : {5, 250, 30}) {
    const auto lane = static_cast<uint32_t>(lanes.size());
    sequence.push_back(some_tokens(length, vocab, 50 + lane));
    prompts.append(sequence.back());
    slots.push_back(lane + 1);
    sequence.back().push_back(7);
    lanes.push_back({lane + 1, 7, static_cast<int32_t>(length), kTokens, {9, 1, lane, 0, 0}, lane == 2});
  }
  tested.prefill(prompts, *cache, slots);
  const auto decoder = tested.make_decoder(*cache, {});
  std::vector<std::vector<SampledToken>> sampled(lanes.size());
  while (lanes.front().left > 0) {
    const std::vector<SampledToken> next = decoder->next(lanes);
    for (size_t i = 0; i < next.size(); ++i) {
      const size_t lane = i % lanes.size();
      if (next[i].token < 0) return {"decoding", difference_of(at::empty({1}).fill_(NAN), at::empty({1})), kOfLogits};
      if (lanes[lane].left-- <= 0) continue;
      sampled[lane].push_back(next[i]);
      sequence[lane].push_back(next[i].token);
      lanes[lane].token = next[i].token;
      ++lanes[lane].position;
      ++lanes[lane].key.position;
    }
  }
  double apart = 0, largest = 0;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    Packed whole;
    whole.append(sequence[lane]);
    const auto first = static_cast<int64_t>(sequence[lane].size()) - kTokens - 1;
    const std::vector<int32_t> target(sequence[lane].end() - kTokens, sequence[lane].end());
    const at::Tensor hidden = reference.hidden(whole).narrow(0, first, kTokens);
    const HeadStats want = reference.head().stats(hidden, target, 1.0);
    for (int64_t i = 0; i < kTokens; ++i) {
      const auto of = [i](const at::Tensor& x) { return static_cast<double>(x.const_data_ptr<float>()[i]); };
      const SampledToken& got = sampled[lane][i];
      largest = std::max(largest, std::abs(of(want.logit)));
      for (const double d : {got.logit - of(want.logit), got.logprob - of(want.logprob)}) {
        apart = std::max(apart, std::abs(d));
      }
      if (lanes[lane].greedy) apart = std::max(apart, -of(want.margin));
    }
  }
  return {"decoding", apart / largest, kOfLogits};
}

// Norms and biases that do something, too.
std::unique_ptr<Model> small_model(const ModelConfig& config, at::Device device) {
  auto model = make_model(config, 5, device, {.dtype = Dtype::bf16});
  const at::NoGradGuard no_grad;
  uint64_t stream = 0;
  for (const NamedTensor& p : model->parameters()) {
    if (p.tensor.dim() != 1) continue;
    Rng rng(6, stream++);
    const float mean = p.name.ends_with(".bias") ? 0.0f : 1.0f;
    const at::Tensor host = at::empty(p.tensor.sizes(), at::kFloat);
    for (int64_t i = 0; i < host.numel(); ++i) {
      host.data_ptr<float>()[i] = mean + 0.2f * static_cast<float>(rng.normal());
    }
    p.tensor.detach().copy_(host);
  }
  model->refresh();
  return model;
}

}  // namespace

std::vector<GpuFinding> check_model(Model& reference, Model& tested) {
  return {check_forward(reference, tested), check_backward(reference, tested), check_decoding(reference, tested)};
}

std::vector<std::unique_ptr<Model>> models_to_check(at::Device device, GpuShapes shapes, const ModelConfig* own) {
  std::vector<std::unique_ptr<Model>> models;
  ModelConfig config;
  config.hidden_size = 136;
  config.num_attention_heads = 7;
  config.num_key_value_heads = 1;
  config.head_dim = 64;
  config.intermediate_size = 200;
  config.vocab_size = 1000;
  config.windows = {0, 32};
  config.tie_word_embeddings = false;
  models.push_back(small_model(config, device));
  if (own != nullptr) {
    ModelConfig heads = config;
    heads.family = own->family;
    heads.num_hidden_layers = 1;
    heads.windows.clear();
    heads.num_attention_heads = own->num_attention_heads;
    heads.num_key_value_heads = own->num_key_value_heads;
    heads.head_dim = own->head_dim;
    models.push_back(small_model(heads, device));
  }
  if (shapes == GpuShapes::few) return models;
  config.family = find_family("qwen3");
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 128;
  config.vocab_size = 5000;
  config.windows = {};
  models.push_back(small_model(config, device));
  return models;
}

void keep_worse(std::vector<GpuFinding>& findings, const std::vector<GpuFinding>& more) {
  for (const GpuFinding& m : more) {
    const auto same = std::ranges::find(findings, m.what, &GpuFinding::what);
    if (same == findings.end()) {
      findings.push_back(m);
    } else if (!(m.difference <= same->difference)) {
      *same = m;
    }
  }
}

// --- speed ----------------------------------------------------------------------------------------------------------

std::unique_ptr<Model> random_model(const ModelConfig& config, at::Device device, const ModelOptions& options) {
  Weights weights = allocate_weights(config, device, options);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& p : weights.parameters) {
    at::Tensor values = p.tensor.detach();
    p.tensor.dim() == 1 ? values.fill_(1.0) : values.normal_(0, 0.02);
  }
  return make_transformer(config, std::move(weights), options);
}

// Four blocks of Qwen2.5-1.5B over a fifth of its vocabulary.
std::unique_ptr<Model> large_model(at::Device device) {
  ModelConfig config;
  config.hidden_size = 1536;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 12;
  config.num_key_value_heads = 2;
  config.head_dim = 128;
  config.intermediate_size = 8960;
  config.vocab_size = 32768;
  return random_model(config, device, {.dtype = Dtype::bf16});
}

void add_model_speed(Model& model, const Limits& limits, std::vector<GpuFinding>& findings) {
  const ModelConfig& c = model.config();
  const auto share_of = [&](const char* what, double share, const char* limit) {
    const auto row = std::ranges::find(findings, what, &GpuFinding::what);
    if (row != findings.end()) row->share = share, row->limit = limit;
  };
  double products =
      static_cast<double>(c.vocab_size * c.hidden_size);  // multiply-adds of a token, the head's among them
  for (const NamedTensor& p : model.parameters()) {
    if (p.name.find(".layers.") != std::string::npos && p.tensor.dim() == 2)
      products += static_cast<double>(p.tensor.numel());
  }
  constexpr int64_t kSequences = 4, kTokens = 1024;
  Packed packed;
  for (uint64_t i = 0; i < kSequences; ++i) packed.append(some_tokens(kTokens, c.vocab_size, i));
  const double operations = 2 * products * kSequences * kTokens;
  const double forward = seconds_of(model.device(), [&] {
    const at::NoGradGuard no_grad;
    model.head().stats(model.hidden(packed), packed.token, 1.0);
  });
  share_of("forward", operations / forward / limits.operations, "GEMM");
  const double both = seconds_of(model.device(), [&] { run_backward(model, packed); });
  share_of("backward", 2 * operations / (both - forward) / limits.operations, "GEMM");

  // Of a decoding step: the weights once, and the keys and values of every lane.
  constexpr int64_t kLanes = 64, kSteps = 8;
  const auto cache = model.make_cache(kLanes, kTokens + kSteps);
  Packed prompt;
  prompt.append(some_tokens(kTokens, c.vocab_size, 0));
  std::vector<Lane> lanes;
  const std::vector<int64_t> first_slot = {0};
  model.prefill(prompt, *cache, first_slot);
  for (int64_t i = 0; i < kLanes; ++i) {
    std::vector<int64_t> slot = {i};
    if (i > 0) model.prefill(prompt, *cache, slot);
    lanes.push_back({i, 7, static_cast<int32_t>(kTokens), kSteps, {1, 1, 0, static_cast<uint32_t>(i), 0}, false});
  }
  const auto decoder = model.make_decoder(*cache, {});
  double steps = 1;
  const double decoding =
      seconds_of(model.device(), [&] { steps = static_cast<double>(decoder->next(lanes).size()) / kLanes; });
  const double of_token = 2.0 * 2 * static_cast<double>(c.num_hidden_layers * c.num_key_value_heads * c.head_dim);
  const double moved = 2 * products + of_token * static_cast<double>(kLanes * kTokens);
  share_of("decoding", steps * moved / decoding / limits.bandwidth, "copy");
}

}  // namespace ucas
