#include "train/optimizer/optimizer.h"
#include "model/tensor/parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/str.h"
#include "model/backend/gpu/gpu_block.h"
#include "model/gemm/linear.h"
#include "model/tensor/stream.h"

namespace ucas {

namespace {

constexpr int64_t kNormChunk = 16384;  // elements of one partial sum
// Bytes of gradients that are given back to the system at once: glibc keeps blocks of less than 32 MiB. Below this the
// pages' way back and forth costs more than they are worth.
constexpr size_t kTrimmedFrom = size_t{64} << 20;

[[noreturn]] void refuse_result(const std::string& name, int64_t update, double lr) {
  throw Error(ErrorKind::numeric,
              str("update ", update, " (learning rate ", lr, ") left ", name,
                  " or its moments with values that are not finite; lower the learning rate, or look at the data. "
                  "Nothing of it is saved: the last checkpoint remains"),
              kNumeric);
}

std::vector<double> cpu_sums_of_squares(std::span<const at::Tensor> gradients) {
  std::vector<double> sums;
  for (const at::Tensor& gradient : gradients) sums.push_back(sum_of_squares(gradient));
  return sums;
}

// Partial sums of all gradients side by side, added up on the host, which waits once.
std::vector<double> gpu_sums_of_squares(std::span<const at::Tensor> gradients) {
  if (gradients.empty()) return {};
  const auto parts_of = [](const at::Tensor& g) { return (g.numel() + gpu::kSquaresChunk - 1) / gpu::kSquaresChunk; };
  int64_t parts = 0, first = 0;
  for (const at::Tensor& gradient : gradients) parts += parts_of(gradient);
  const at::Tensor part = at::empty({parts}, gradients[0].options().dtype(at::kDouble));
  const Kernels kernels = kernels_of(gradients[0].device());
  for (const at::Tensor& gradient : gradients) {
    const at::Tensor flat = gradient.contiguous();
    kernels.table.sum_of_squares(kernels.stream(),
                                 {flat.numel(), flat.const_data_ptr<float>(), part.data_ptr<double>() + first});
    first += parts_of(gradient);
  }
  const at::Tensor host = part.cpu();
  const double* next = host.const_data_ptr<double>();
  std::vector<double> sums;
  for (const at::Tensor& gradient : gradients) {
    const double* end = next + parts_of(gradient);
    sums.push_back(std::accumulate(next, end, 0.0));
    next = end;
  }
  return sums;
}

std::vector<double> aten_sums_of_squares(std::span<const at::Tensor> gradients) {
  std::vector<double> sums;
  for (const at::Tensor& gradient : gradients) {
    const double norm = at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble).item<double>();
    sums.push_back(norm * norm);
  }
  return sums;
}

}  // namespace

// Eight lanes inside a chunk, chunks one after another.
double sum_of_squares(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const float* g = flat.const_data_ptr<float>();
  const int64_t n = flat.numel();
  int64_t chunks = (n + kNormChunk - 1) / kNormChunk;
  std::vector<double> partial(chunks);
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const float* x = g + c * kNormChunk;
      int64_t size = std::min(kNormChunk, n - c * kNormChunk), whole = size / 8 * 8;
      double lane[8] = {};
      for (int64_t i = 0; i < whole; i += 8) {
        for (int j = 0; j < 8; ++j) lane[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
      }
      for (int64_t i = whole; i < size; ++i) lane[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      partial[c] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
  });
  double sum = 0;
  for (double p : partial) sum += p;
  return sum;
}

const Optimizer::Rule Optimizer::kOnCpu{cpu_sums_of_squares, adamw_on_cpu};
const Optimizer::Rule Optimizer::kOnGpu{gpu_sums_of_squares, adamw_on_gpu};
const Optimizer::Rule Optimizer::kByAten{aten_sums_of_squares, adamw_by_aten};

Optimizer::Optimizer(std::vector<NamedTensor> parameters, const OptimizerConfig& config, Path path,
                     const Placement& placement)
    : config_(config) {
  at::NoGradGuard no_grad;
  const std::vector<int64_t> owners = owners_of(parameters, placement.ranks);
  if (placement.on_host && !parameters.empty())
    host_ = std::make_unique<HostState>(parameters.front().tensor.device(), placement.slice);
  bool on_cpu = path == Path::by_device, on_gpu = on_cpu;
  for (const NamedTensor& p : parameters) {
    UCAS_CHECK(p.tensor.scalar_type() == at::kFloat && p.tensor.is_contiguous(), "master weights are contiguous f32");
    ParameterState& slot = slots_.emplace_back();
    slot.name = p.name;
    slot.index = static_cast<int64_t>(slots_.size()) - 1;
    slot.parameter = p.tensor;
    slot.by_muon = config.kind == OptimizerKind::muon && is_hidden_matrix(p);
    slot.decays = config.decay == Decay::all || p.tensor.dim() >= 2;
    slot.owner = owners[slots_.size() - 1];
    if (slot.owner == placement.rank) {
      if (host_) move_to_host(slot, placement);
      make_moments(slot);
    }
    on_cpu = on_cpu && p.tensor.is_cpu();
    on_gpu = on_gpu && has_kernels(p.tensor.device());
  }
  on_gpu = on_gpu || path == Path::kernels;
  rule_ = on_cpu ? &kOnCpu : on_gpu ? &kOnGpu : &kByAten;
  if (on_gpu && !slots_.empty()) {
    const at::TensorOptions options = slots_.front().parameter.options();
    nonfinite_ = at::zeros({static_cast<int64_t>(slots_.size())}, options.dtype(at::kInt).requires_grad(false));
  }
}

void Optimizer::make_moments(ParameterState& slot) const {
  const auto made = [&](bool square) {
    if (!host_) return make_moment(slot.parameter, config_.moments, square);
    // Of the same shape, on the host and without memory.
    const at::Tensor like = at::empty({1}, at::kFloat).expand(slot.parameter.sizes());
    Moment moment = make_moment(like, config_.moments, square);
    const at::Device device = slot.parameter.device();
    for (at::Tensor* part : {&moment.values, &moment.scales})
      if (part->defined() && !device.is_cpu()) *part = zeros_on_host(part->sizes(), part->scalar_type(), device);
    return moment;
  };
  slot.mean = made(false);
  if (!slot.by_muon) slot.square = made(true);
}

// The values of a master: where it has a bf16 copy nothing on the device reads them but its update.
void Optimizer::move_to_host(ParameterState& slot, const Placement& placement) const {
  const auto found =
      std::ranges::find_if(placement.copies, [&](const Bf16Copy& copy) { return copy.master.is_same(slot.parameter); });
  if (found == placement.copies.end()) return;
  slot.copy = *found;
  slot.host_master = zeros_on_host(slot.parameter.sizes(), at::kFloat, slot.parameter.device());
  slot.host_master.copy_(slot.parameter.detach());
  drop_values(slot.parameter);
}

void Optimizer::shard_over(Ranks& ranks, Shard shard, const std::vector<Bf16Copy>& copies) {
  ranks_ = &ranks;
  own_gradients_ = shard == Shard::gradients;
  std::vector<NamedTensor> parameters;
  for (const ParameterState& slot : slots_) parameters.push_back({slot.name, slot.parameter});
  const std::vector<int64_t> of_ranks = owners_of(parameters, ranks.size());
  for (ParameterState& slot : slots_) {
    slot.owner = of_ranks[static_cast<size_t>(slot.index)];
    if (!mine(slot)) slot.mean = {}, slot.square = {};
    if (mine(slot) && !slot.mean.defined()) make_moments(slot);
  }
  if (copies.empty()) return;
  masters_.emplace(ranks, parameters, owners(), copies);
  for (ParameterState& slot : slots_) slot.narrow = masters_->has(slot.parameter);
}

std::vector<int64_t> Optimizer::owners() const {
  std::vector<int64_t> owners;
  for (const ParameterState& slot : slots_) owners.push_back(slot.owner);
  return owners;
}

void Optimizer::broadcast_weights() const {
  if (ranks_ == nullptr) return;
  std::vector<std::vector<at::Tensor>> owned(static_cast<size_t>(ranks_->size()));
  for (const ParameterState& slot : slots_)
    if (!slot.narrow) owned[static_cast<size_t>(slot.owner)].push_back(slot.parameter);
  ranks_->broadcast("broadcasting parameters", owned);
  if (masters_) masters_->broadcast_weights();
}

at::Tensor Optimizer::values_of(const at::Tensor& parameter) const {
  if (has_values(parameter)) return parameter.detach();
  const auto found = std::ranges::find_if(slots_, [&](const auto& slot) { return slot.parameter.is_same(parameter); });
  return found == slots_.end() ? at::Tensor() : found->host_master;
}

void Optimizer::with_masters(const std::function<void(const MasterValues&)>& work) const {
  const MasterValues own = [this](const at::Tensor& parameter) { return values_of(parameter); };
  if (masters_) return masters_->lend(work, own);
  if (ranks_ == nullptr || ranks_->leads()) work(own);
}

// Of each parameter, added up in their order, on whichever rank its gradient is.
double Optimizer::grad_norm() const {
  std::vector<at::Tensor> gradients;
  std::vector<size_t> which;
  for (const ParameterState& slot : slots_) {
    if (!slot.parameter.grad().defined() || (own_gradients_ && !mine(slot))) continue;
    gradients.push_back(slot.parameter.grad());
    which.push_back(static_cast<size_t>(slot.index));
  }
  std::vector<double> sums(slots_.size());
  const std::vector<double> here = rule_->sums_of_squares(gradients);
  for (size_t i = 0; i < here.size(); ++i) sums[which[i]] = here[i];
  if (own_gradients_) sums = exchanged(sums);
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

// Each from who has it.
std::vector<double> Optimizer::exchanged(const std::vector<double>& sums) const {
  const std::string bytes(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double));
  const auto all = ranks_->all_gather("the norm of the gradient", bytes);
  std::vector<double> of_owners(sums.size());
  for (const ParameterState& slot : slots_) {
    const auto index = static_cast<size_t>(slot.index);
    std::memcpy(&of_owners[index], all[static_cast<size_t>(slot.owner)].data() + index * sizeof(double),
                sizeof(double));
  }
  return of_owners;
}

StepResult Optimizer::step(double lr) {
  at::NoGradGuard no_grad;
  StepResult result{grad_norm(), false};
  if (!std::isfinite(result.grad_norm)) {
    zero_grad();
    return result;
  }
  result.applied = true;
  ++steps_;
  double clip = config_.grad_clip > 0 ? std::min(1.0, config_.grad_clip / (result.grad_norm + 1e-6)) : 1.0;
  std::vector<const ParameterState*> changed;
  for (ParameterState& slot : slots_) {
    if (!slot.parameter.grad().defined()) {
      if (!slot.dropped_gradient) continue;
      gradient_of(slot.parameter);
    }
    if (mine(slot)) {
      changed.push_back(&slot);
    } else {
      slot.parameter.mutable_grad().zero_();
    }
  }
  const auto update = [&](const ParameterState& slot) {
    double decay = slot.decays ? config_.weight_decay : 0;
    const auto rule = slot.by_muon ? muon : rule_->adamw;
    int32_t* nonfinite = nonfinite_.defined() ? nonfinite_.data_ptr<int32_t>() + slot.index : nullptr;
    if (!rule(slot, {config_, steps_, lr, clip, decay, nonfinite})) refuse_result(slot.name, steps_, lr);
  };
  if (host_) {
    host_->run(changed, update);
  } else {
    for (const ParameterState* slot : changed) update(*slot);
  }
  broadcast_weights();
  if (!nonfinite_.defined()) return result;
  const at::Tensor nonfinite = nonfinite_.cpu();  // all of them at once: the host waits once
  for (const ParameterState& slot : slots_) {
    if (nonfinite.const_data_ptr<int32_t>()[slot.index] != 0) refuse_result(slot.name, steps_, lr);
  }
  return result;
}

void Optimizer::zero_grad() {
  at::NoGradGuard no_grad;
  for (ParameterState& slot : slots_) {
    at::Tensor& g = slot.parameter.mutable_grad();
    if (g.defined()) g.zero_();
  }
}

void Optimizer::drop_gradients() {
  size_t of_host = 0;
  for (ParameterState& slot : slots_) {
    at::Tensor& g = slot.parameter.mutable_grad();
    if (!g.defined()) continue;
    slot.dropped_gradient = true;
    if (g.is_cpu()) of_host += g.nbytes();
    g.reset();
  }
#ifdef __GLIBC__
  if (of_host >= kTrimmedFrom) malloc_trim(0);
#endif
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> tensors;
  const auto add = [&tensors](const char* what, const std::string& name, const Moment& moment) {
    tensors.push_back({str(what, "/", name), moment.values});
    if (moment.scales.defined()) tensors.push_back({str(what, "_scale/", name), moment.scales});
  };
  for (const ParameterState& slot : slots_) {
    if (!slot.mean.defined()) continue;
    if (slot.by_muon) {
      add("momentum_buffer", slot.name, slot.mean);
      continue;
    }
    add("exp_avg", slot.name, slot.mean);
    add("exp_avg_sq", slot.name, slot.square);
  }
  return tensors;
}

}  // namespace ucas
