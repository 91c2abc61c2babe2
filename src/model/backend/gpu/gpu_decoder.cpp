// Decoding on a device: kStepsAhead tokens of every lane before the host looks at them. A step is recorded once for
// each size (lanes rounded up, blocks of keys rounded up) and then played.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "model/backend/gpu/gpu_forward.h"
#include "model/backend/gpu/gpu_head.h"
#include "model/decoder.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

// Lanes of a recorded step: few sizes, none much larger than what it is for.
int64_t size_for(int64_t lanes) {
  for (int64_t unit = kRowAlign;; unit *= 2) {
    if (lanes <= 8 * unit) return (lanes + unit - 1) / unit * unit;
  }
}
int64_t power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

// The buffers of one size, and the step that works on them.
struct Step {
  Step(const Kernels& kernels, int64_t lanes, int64_t most_blocks, int64_t vocab, const SamplingConfig& sampling)
      : sample(kernels, lanes, vocab, sampling) {
    const auto ints = at::TensorOptions().dtype(at::kInt).device(kernels.device);
    rows = {at::zeros({lanes}, ints), at::zeros({lanes}, ints), at::zeros({lanes}, ints), most_blocks};
  }
  DecodeRows rows;
  DeviceSampler sample;
  std::unique_ptr<Recorded> recorded;
};

class GpuDecoder final : public Decoder {
 public:
  GpuDecoder(GpuForward& forward, Head& head, GpuCache& cache, const SamplingConfig& sampling)
      : forward_(forward), head_(head), cache_(cache), sampling_(sampling), device_(forward.kernels().device) {
    if (!device_.is_cpu()) recorder_ = make_recorder(device_);
  }

  int64_t most_steps() const override { return kStepsAhead; }
  std::vector<SampledToken> next(std::span<const Lane> lanes) override {
    const at::NoGradGuard no_grad;
    const auto n = static_cast<int64_t>(lanes.size());
    int64_t furthest = 0, left = 0;
    bool any_greedy = false;
    for (const Lane& lane : lanes) {
      left = std::max(left, lane.left);
      any_greedy = any_greedy || lane.greedy;
    }
    const int64_t steps = std::min(left, kStepsAhead);
    for (const Lane& lane : lanes) {
      furthest = std::max<int64_t>(furthest, lane.position + steps - 1);
      UCAS_CHECK(cache_.reserve(lane.slot, lane.position + steps), "the KV cache must have room before a decode");
    }
    cache_.upload();
    Step& step = step_for(n, furthest, any_greedy);
    fill(step, lanes);
    const int64_t size = step.rows.token.size(0);
    const at::Tensor sampled = on_host({steps, size, static_cast<int64_t>(sizeof(gpu::DeviceSampledToken) / 4)});
    for (int64_t i = 0; i < steps; ++i) {
      if (step.recorded) {
        step.recorded->play();
      } else {
        play(step, any_greedy);
      }
      sampled.select(0, i).copy_(step.sample.sampled(), /*non_blocking=*/true);
    }
    wait_for(device_);
    const auto* tokens = static_cast<const gpu::DeviceSampledToken*>(sampled.const_data_ptr());
    std::vector<SampledToken> out;
    for (int64_t i = 0; i < steps; ++i) {
      for (int64_t lane = 0; lane < n; ++lane) out.push_back(sampled_of(tokens[i * size + lane]));
    }
    return out;
  }

 private:
  at::Tensor on_host(at::IntArrayRef shape) const {
    return device_.is_cpu() ? at::empty(shape, at::kInt) : pinned(shape, at::kInt);
  }

  void play(Step& step, bool any_greedy) {
    const at::Tensor hidden = forward_.decode_rows(step.rows, cache_);
    const at::Tensor& w = head_.weight().compute;
    const at::Tensor logits = at::empty({hidden.size(0), w.size(0)}, hidden.options());
    gemm(hidden.to(w.scalar_type()), w, logits);
    step.sample.run(logits, any_greedy, step.rows.token, step.rows.position);
  }

  Step& step_for(int64_t lanes, int64_t furthest, bool any_greedy) {
    const int64_t size = size_for(lanes), blocks = power_of_two(furthest / gpu::kBlockTokens + 1);
    auto& step = steps_[{size, blocks, any_greedy}];
    if (step) return *step;
    forward_.reach(cache_.length() + kStepsAhead);
    step = std::make_unique<Step>(forward_.kernels(), size, blocks, head_.weight().compute.size(0), sampling_);
    step->rows.slot.fill_(cache_.spare_slot());
    if (!device_.is_cpu()) step->recorded = recorder_->record([&] { play(*step, any_greedy); });
    return *step;
  }

  // Lanes beyond n are padding: they decode at the beginning of the spare slot.
  void fill(const Step& step, std::span<const Lane> lanes) {
    const int64_t size = step.rows.token.size(0);
    const at::Tensor host = at::zeros({3 + 4 + 1, size}, at::kInt);  // sizes are at least kRowAlign
    auto* token = host.data_ptr<int32_t>();
    int32_t *position = token + size, *slot = position + size;
    auto* state = reinterpret_cast<gpu::SamplerState*>(slot + size);
    std::fill_n(slot, size, static_cast<int32_t>(cache_.spare_slot()));
    for (size_t i = 0; i < lanes.size(); ++i) {
      const Lane& lane = lanes[i];
      token[i] = lane.token;
      position[i] = lane.position;
      slot[i] = static_cast<int32_t>(lane.slot);
      state[i] = step.sample.state_of(lane.key, lane.greedy);
    }
    const gpu::SamplerRun of_run{lanes.front().key.seed, lanes.front().key.step};
    std::memcpy(host.select(0, 7).data_ptr<int32_t>(), &of_run, sizeof(of_run));
    const at::Tensor there = device_.is_cpu() ? host : host.to(device_);
    step.rows.token.copy_(there.select(0, 0));
    step.rows.position.copy_(there.select(0, 1));
    step.rows.slot.copy_(there.select(0, 2));
    step.sample.state().view({-1}).copy_(there.narrow(0, 3, 4).view({-1}));
    step.sample.of_run().view({-1}).copy_(there.select(0, 7).narrow(0, 0, sizeof(of_run) / 4));
  }

  GpuForward& forward_;
  Head& head_;
  GpuCache& cache_;
  const SamplingConfig sampling_;
  const at::Device device_;
  std::unique_ptr<Recorder> recorder_;  // must outlive the steps
  std::map<std::tuple<int64_t, int64_t, bool>, std::unique_ptr<Step>> steps_;
};

}  // namespace

std::unique_ptr<Decoder> GpuForward::make_decoder(Head& head, KvCache& cache, const SamplingConfig& sampling) {
  return std::make_unique<GpuDecoder>(*this, head, static_cast<GpuCache&>(cache), sampling);
}

}  // namespace ucas
