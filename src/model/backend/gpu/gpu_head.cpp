#include "model/backend/gpu/gpu_head.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <mutex>

#include "base/terminal/log.h"
#include "model/backend/block.h"
#include "model/gemm/linear.h"
#include "model/head/row_signals.h"
#include "model/tensor/autograd.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

constexpr int64_t kPartAlign = 128;  // rows of a GEMM's tile

const int32_t* ids_of(const at::Tensor& x) { return x.const_data_ptr<int32_t>(); }

struct GpuSaved {
  at::Tensor h;  // [P, D] bf16, padded
  at::Tensor target, lse, entropy;
  Matrix lm_head;
  float inverse_temperature;
  int64_t rows;
  bool wants_hidden, wants_head;
};

// visit(first row, rows, first column, tile of W [n, D], logits [rows, kHeadTile] of which n columns count, and which
// are gone with the next tile).
template <class Visit>
void each_tile_of_all_rows(const at::Tensor& h, const at::Tensor& lm_head, Visit visit) {
  const int64_t vocab = lm_head.size(0), most = rows_of_head_part(h.size(0));
  const at::Tensor buffer = at::empty({most, gpu::kHeadTile}, h.options().dtype(at::kFloat));
  for (int64_t first = 0; first < h.size(0); first += most) {
    const int64_t rows = std::min(most, h.size(0) - first);
    for (int64_t column = 0; column < vocab; column += gpu::kHeadTile) {
      const int64_t n = std::min(gpu::kHeadTile, vocab - column);
      const at::Tensor w = lm_head.narrow(0, column, n), logits = buffer.narrow(0, 0, rows);
      gemm(h.narrow(0, first, rows), w, logits.narrow(1, 0, n));
      visit(first, rows, column, w, logits);
    }
  }
}

gpu::HeadStatsOfRows rows_of_stats(const HeadStats& out, const at::Tensor& lse, const at::Tensor& of_tile,
                                   int64_t vocab, float inverse_temperature) {
  return {.rows = lse.size(0),
          .tiles = gpu::head_tiles(vocab),
          .vocab = vocab,
          .inverse_temperature = inverse_temperature,
          .of_tile = static_cast<const gpu::TileStats*>(of_tile.const_data_ptr()),
          .chosen = data(out.logit),
          .logprob = data(out.logprob),
          .entropy = data(out.entropy),
          .confidence = data(out.confidence),
          .margin = data(out.margin),
          .lse = data(lse)};
}

at::Tensor room_for_tiles(int64_t rows, int64_t vocab, at::Device device) {
  const int64_t bytes = rows * gpu::head_tiles(vocab) * static_cast<int64_t>(sizeof(gpu::TileStats));
  return at::empty({bytes / 8}, at::TensorOptions().dtype(at::kDouble).device(device));
}

std::vector<at::Tensor> gpu_head_backward(const GpuSaved& s, const std::vector<at::Tensor>& gradients) {
  const c10::NoGradGuard no_grad;
  const Kernels kernels = kernels_of(s.h.device());
  const int64_t P = s.h.size(0), D = s.h.size(1), vocab = s.lm_head.compute.size(0);
  const at::TensorOptions options = s.lse.options();
  const at::Tensor d_hidden = s.wants_hidden ? at::zeros({P, D}, options) : at::Tensor();
  const at::Tensor d_head = s.wants_head ? gradient_of(s.lm_head.parameter) : at::Tensor();
  at::Tensor part[3];  // of padding, too: 0
  for (size_t k = 0; k < 3; ++k) {
    part[k] = at::zeros({P}, options);
    if (gradients[k].defined()) part[k].narrow(0, 0, s.rows).copy_(gradients[k]);
  }
  each_tile_of_all_rows(
      s.h, s.lm_head.compute,
      [&](int64_t first, int64_t rows, int64_t column, const at::Tensor& w, const at::Tensor& logits) {
        kernels.table.head_gradient(kernels.stream(), {.rows = rows,
                                                       .columns = w.size(0),
                                                       .stride = logits.stride(0),
                                                       .first_column = column,
                                                       .inverse_temperature = s.inverse_temperature,
                                                       .inverse_vocab = 1.0f / static_cast<float>(vocab),
                                                       .target = ids_of(s.target) + first,
                                                       .lse = data(s.lse) + first,
                                                       .entropy = data(s.entropy) + first,
                                                       .g = data(part[0]) + first,
                                                       .e = data(part[1]) + first,
                                                       .u = data(part[2]) + first,
                                                       .logits = data(logits)});
        const at::Tensor d = logits.view(at::kBFloat16).narrow(1, 0, w.size(0));  // in the place of the logits
        if (s.wants_hidden) gemm_input_gradient(d, w, d_hidden.narrow(0, first, rows), Into::sum);
        if (s.wants_head) gemm_weight_gradient(d, s.h.narrow(0, first, rows), d_head.narrow(0, column, w.size(0)));
      });
  return {s.wants_hidden ? d_hidden.narrow(0, 0, s.rows) : at::Tensor(), {}};  // the matrix has its own already
}

class GpuSampler final : public TokenSampler {
 public:
  explicit GpuSampler(const SamplingConfig& sampling) : sampling_(sampling) {}

  std::vector<SampledToken> sample(const at::Tensor& logits, std::span<const SampleRequest> asks) override {
    std::vector<SampledToken> sampled;
    const auto n = static_cast<int64_t>(asks.size());
    constexpr int64_t kRows = 64;
    for (int64_t first = 0; first < n; first += kRows) {
      const std::span part = asks.subspan(first, std::min(kRows, n - first));
      const std::vector<SampledToken> of_part = sample_part(logits, part);
      sampled.insert(sampled.end(), of_part.begin(), of_part.end());
    }
    return sampled;
  }

 private:
  std::vector<SampledToken> sample_part(const at::Tensor& logits, std::span<const SampleRequest> asks) const {
    const auto n = static_cast<int64_t>(asks.size());
    const DeviceSampler sample(kernels_of(logits.device()), n, logits.size(1), sampling_);
    std::vector<int32_t> rows;
    std::vector<gpu::SamplerState> states;
    bool any_greedy = false;
    for (const SampleRequest& ask : asks) {
      rows.push_back(static_cast<int32_t>(ask.row));
      states.push_back(sample.state_of(ask.key, ask.greedy));
      any_greedy = any_greedy || ask.greedy;
    }
    sample.state().copy_(at::from_blob(states.data(), sample.state().sizes(), at::kInt));
    gpu::SamplerRun of_run{asks.front().key.seed, asks.front().key.step};
    sample.of_run().copy_(at::from_blob(&of_run, sample.of_run().sizes(), at::kInt));
    sample.run(at::index_select(logits, 0, on_device(rows, logits.device())), any_greedy);
    const at::Tensor host = sample.sampled().cpu();
    const auto* tokens = static_cast<const gpu::DeviceSampledToken*>(host.const_data_ptr());
    std::vector<SampledToken> sampled;
    for (int64_t i = 0; i < n; ++i) sampled.push_back(sampled_of(tokens[i]));
    return sampled;
  }
  const SamplingConfig sampling_;
};

// Said once: nothing else shows that a loss takes the slow path.
void warn_of_tokens() {
  static std::once_flag said;
  std::call_once(said, [] {
    warn(
        "no GPU kernel gives the gradient of a row's likeliest tokens: in updates LibTorch's operations compute "
        "the LM head, which is slower");
  });
}

// Rows of a tile, without those of padding.
void read_tile(RowSignals& signals, int64_t first, int64_t count, int64_t column, const at::Tensor& logits) {
  if (count <= 0) return;
  const at::Tensor host = logits.narrow(0, 0, count).cpu().contiguous();
  const int64_t n = host.size(1);
  each_row(count, n, [&](int64_t i) { signals.read(first + i, host.const_data_ptr<float>() + i * n, n, column); });
}

class GpuHead final : public Head {
 public:
  using Head::Head;
  std::unique_ptr<Head> over(Matrix weight) const override { return make_gpu_head(std::move(weight)); }
  std::unique_ptr<TokenSampler> make_sampler(const SamplingConfig& config) const override {
    return std::make_unique<GpuSampler>(config);
  }

 protected:
  // The kernels keep the sampled token's logit alone: what signals read is picked on the host, without a gradient.
  HeadStats compute(const at::Tensor& hidden, const std::vector<int32_t>& target, double temperature,
                    std::span<const TokenSignal> signals, bool wants_gradient) const override {
    const int64_t rows = hidden.size(0), vocab = weight().compute.size(0);
    const auto inverse_temperature = static_cast<float>(1 / temperature);
    RowSignals read(signals, rows, vocab, inverse_temperature, wants_gradient);
    if (read.read_tokens() && wants_gradient) {
      warn_of_tokens();
      return make_aten_head(weight())->stats(hidden, target, temperature, signals);
    }
    GpuSaved s{.lm_head = weight(),
               .inverse_temperature = inverse_temperature,
               .rows = rows,
               .wants_hidden = hidden.requires_grad(),
               .wants_head = weight().parameter.requires_grad()};
    const Kernels kernels = kernels_of(hidden.device());
    HeadStats out;
    {
      const c10::NoGradGuard no_grad;
      s.h = aligned_rows(hidden.detach(), 0, rows, weight().compute.scalar_type());
      const int64_t P = s.h.size(0);
      std::vector<int32_t> targets = target;
      targets.resize(P, 0);
      s.target = on_device(targets, hidden.device());
      for (at::Tensor* t : {&out.logprob, &out.entropy, &out.confidence, &out.logit, &out.margin, &s.lse}) {
        *t = at::empty({P}, hidden.options());
      }
      const at::Tensor of_tile = room_for_tiles(P, vocab, hidden.device());
      auto* stats = static_cast<gpu::TileStats*>(of_tile.mutable_data_ptr());
      each_tile_of_all_rows(
          s.h, s.lm_head.compute,
          [&](int64_t first, int64_t count, int64_t column, const at::Tensor& w, const at::Tensor& logits) {
            kernels.table.head_stats_of_tiles(kernels.stream(), {.rows = count,
                                                                 .columns = w.size(0),
                                                                 .stride = logits.stride(0),
                                                                 .first_tile = column / gpu::kHeadTile,
                                                                 .tiles = gpu::head_tiles(vocab),
                                                                 .inverse_temperature = s.inverse_temperature,
                                                                 .logits = data(logits),
                                                                 .target = ids_of(s.target) + first,
                                                                 .of_tile = stats + first * gpu::head_tiles(vocab),
                                                                 .chosen = data(out.logit) + first});
            if (read.read_tokens())
              read_tile(read, first, std::min(count, rows - first), column, logits.narrow(1, 0, w.size(0)));
          });
      kernels.table.head_stats_of_rows(kernels.stream(),
                                       rows_of_stats(out, s.lse, of_tile, vocab, s.inverse_temperature));
      s.entropy = out.entropy;
    }
    for (at::Tensor* t : {&out.logprob, &out.entropy, &out.confidence, &out.logit, &out.margin}) {
      *t = t->narrow(0, 0, rows);
    }
    read.finish(out, s.lse.narrow(0, 0, rows));
    if (!wants_gradient) return out;
    s.entropy = s.entropy.clone();  // the output becomes part of a graph
    return with_gradient(std::move(out), signals, {hidden, weight().parameter},
                         [s](const std::vector<at::Tensor>& g) { return gpu_head_backward(s, g); });
  }
};

}  // namespace

SampledToken sampled_of(const gpu::DeviceSampledToken& t) {
  return {.token = t.token,
          .logprob = t.logprob,
          .whole_logprob = t.whole_logprob,
          .entropy = t.entropy,
          .confidence = t.confidence,
          .logit = t.logit};
}

DeviceSampler::DeviceSampler(const Kernels& kernels, int64_t rows, int64_t vocab, const SamplingConfig& sampling)
    : kernels_(kernels),
      rows_(rows),
      vocab_(vocab),
      inverse_temperature_(sampling.temperature == 0 ? 1.0f : static_cast<float>(1 / sampling.temperature)),
      all_greedy_(sampling.temperature == 0),
      sampling_(sampling) {
  const auto ints = [&](size_t bytes) {
    return at::zeros({rows, static_cast<int64_t>(bytes / 4)},
                     at::TensorOptions().dtype(at::kInt).device(kernels.device));
  };
  of_run_ = ints(sizeof(gpu::SamplerRun)).narrow(0, 0, 1);
  state_ = ints(sizeof(gpu::SamplerState));
  sampled_ = ints(sizeof(gpu::DeviceSampledToken));
}

gpu::SamplerState DeviceSampler::state_of(const SampleKey& key, bool greedy) const {
  return {key.problem, key.response, key.position, greedy || all_greedy_ ? 1u : 0u};
}

at::Tensor DeviceSampler::tile_stats(const at::Tensor& logits, float inverse_temperature) const {
  const at::Tensor of_tile = room_for_tiles(rows_, vocab_, kernels_.device);
  kernels_.table.head_stats_of_tiles(kernels_.stream(),
                                     {.rows = rows_,
                                      .columns = vocab_,
                                      .stride = logits.stride(0),
                                      .first_tile = 0,
                                      .tiles = gpu::head_tiles(vocab_),
                                      .inverse_temperature = inverse_temperature,
                                      .logits = data(logits),
                                      .target = nullptr,
                                      .of_tile = static_cast<gpu::TileStats*>(of_tile.mutable_data_ptr()),
                                      .chosen = nullptr});
  return of_tile;
}

void DeviceSampler::run(const at::Tensor& logits, bool any_greedy, const at::Tensor& token,
                        const at::Tensor& position) const {
  const at::Tensor sampled = tile_stats(logits, inverse_temperature_);
  at::Tensor greedy;
  if (any_greedy || all_greedy_) greedy = inverse_temperature_ == 1.0f ? sampled : tile_stats(logits, 1.0f);
  const auto stats = [](const at::Tensor& x) {
    return x.defined() ? static_cast<const gpu::TileStats*>(x.const_data_ptr()) : nullptr;
  };
  kernels_.table.sample(kernels_.stream(),
                        {.rows = rows_,
                         .vocab = vocab_,
                         .stride = logits.stride(0),
                         .tiles = gpu::head_tiles(vocab_),
                         .inverse_temperature = inverse_temperature_,
                         .run = static_cast<const gpu::SamplerRun*>(of_run_.const_data_ptr()),
                         .logits = data(logits),
                         .of_tile = stats(sampled),
                         .of_tile_greedy = stats(greedy),
                         .state = static_cast<gpu::SamplerState*>(state_.mutable_data_ptr()),
                         .sampled = static_cast<gpu::DeviceSampledToken*>(sampled_.mutable_data_ptr()),
                         .token = token.defined() ? token.data_ptr<int32_t>() : nullptr,
                         .position = position.defined() ? position.data_ptr<int32_t>() : nullptr,
                         .top_k = all_greedy_ ? 0 : sampling_.top_k,
                         .top_p = all_greedy_ ? 1 : sampling_.top_p,
                         .min_p = all_greedy_ ? 0 : sampling_.min_p});
}

std::unique_ptr<Head> make_gpu_head(Matrix weight) { return std::make_unique<GpuHead>(std::move(weight)); }

// Of so many parts as it takes, equal ones: a small last one would leave most of a device idle.
int64_t rows_of_head_part(int64_t rows) {
  const int64_t parts = (rows + kGpuHeadRows - 1) / kGpuHeadRows;
  if (parts <= 1) return rows;
  return ((rows + parts - 1) / parts + kPartAlign - 1) / kPartAlign * kPartAlign;
}

}  // namespace ucas
