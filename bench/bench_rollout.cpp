// Rollouter end to end and its parts, one thread, random weights. Items are generated tokens.
//   bench_rollout --benchmark_min_time=1
// tiny: d 128, 4 layers, V 512, 16 prompts x 16 samples of 16 + 64 tokens. task: the embedded task's model.
// rollout/decode is the share of the engine's time that is the model's own decode with its LM head; the rest is
// sampling, prefill, copies and bookkeeping.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <benchmark/benchmark.h>

#include "base/rng.h"
#include "model/model.h"
#include "rollout/rollouter.h"
#include "rollout/sampling/sampler.h"

namespace ucas {

namespace {

struct Shape {
  ModelConfig model;
  int64_t prompts, samples, prompt, response;
};

Shape tiny() {
  Shape s{{}, 16, 16, 16, 64};
  s.model.hidden_size = 128;
  s.model.num_hidden_layers = 4;
  s.model.head_dim = 32;
  s.model.intermediate_size = 512;
  s.model.vocab_size = 512;
  return s;
}
Shape task() { return {{}, 48, 16, 19, 20}; }

void rollout(benchmark::State& state, Shape shape) {
  at::set_num_threads(1);
  auto model = make_model(shape.model, 1, at::kCPU);
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(shape.prompts));
  Rng rng(1, 1);
  std::vector<PromptJob> jobs;
  for (size_t i = 0; i < prompts.size(); ++i) {
    for (int64_t t = 0; t < shape.prompt; ++t) {
      prompts[i].push_back(static_cast<int32_t>(rng.below(shape.model.vocab_size)));
    }
    jobs.push_back({.prompt = prompts[i], .problem = static_cast<uint32_t>(i), .samples = shape.samples});
  }
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling.max_tokens = shape.response;
  auto engine = make_engine(*model, {.max_slots = state.range(0)});
  for (auto _ : state) {
    ++request.step;
    benchmark::DoNotOptimize(engine->run(request).data());
  }
  state.SetItemsProcessed(state.iterations() * shape.prompts * shape.samples * shape.response);
}

void decode(benchmark::State& state, Shape shape) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  auto model = make_model(shape.model, 1, at::kCPU);
  const int64_t n = state.range(0);
  std::vector<int32_t> token(static_cast<size_t>(n)), position(static_cast<size_t>(n));
  std::vector<int64_t> slot;
  for (int64_t i = 0; i < n; ++i) slot.push_back(i);
  auto cache = model->make_cache(n, shape.prompt + shape.response);
  for (auto _ : state) {
    for (int64_t t = 0; t < shape.prompt + shape.response; ++t) {
      std::fill(position.begin(), position.end(), static_cast<int32_t>(t));
      const bool counted = t >= shape.prompt;
      if (!counted) state.PauseTiming();
      const at::Tensor logits = model->head().logits(model->decode(token, position, slot, *cache));
      benchmark::DoNotOptimize(logits.data_ptr());
      if (!counted) state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations() * n * shape.response);
}

void sampler(benchmark::State& state, SamplingConfig config) {
  Rng rng(1, 1);
  std::vector<float> logits;
  for (int64_t i = 0; i < state.range(0); ++i) logits.push_back(static_cast<float>(3 * rng.normal()));
  Sampler sampler(config);
  uint32_t position = 0;
  for (auto _ : state) {
    const double u = uniform({.seed = 1, .position = ++position});
    benchmark::DoNotOptimize(sampler.sample(logits, u));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(rollout, tiny, tiny())->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, tiny, tiny())->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rollout, task, task())->Arg(64)->Arg(256)->Arg(512)->Arg(768)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, task, task())->Arg(256)->Arg(768)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(sampler, full, SamplingConfig{})->Arg(58)->Arg(512)->Arg(151936);
BENCHMARK_CAPTURE(sampler, top_p, SamplingConfig{.top_p = 0.95})->Arg(512)->Arg(151936);
BENCHMARK_CAPTURE(sampler, greedy, SamplingConfig{.temperature = 0})->Arg(512)->Arg(151936);

}  // namespace

}  // namespace ucas
