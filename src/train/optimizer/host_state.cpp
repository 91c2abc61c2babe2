#include "train/optimizer/host_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace ucas {

// Elements [first, first + count) of a parameter.
struct HostState::Part {
  const ParameterState* parameter;
  int64_t first, count;

  at::Tensor of(const at::Tensor& whole) const {
    return whole.defined() ? whole.detach().view({-1}).narrow(0, first, count) : at::Tensor();
  }
  at::Tensor scales(const Moment& moment) const {
    if (!moment.scales.defined()) return {};
    return moment.scales.narrow(0, first / kQuantBlock, (count + kQuantBlock - 1) / kQuantBlock);
  }
  // Muon's keep their shape.
  at::Tensor shaped(const at::Tensor& flat) const {
    return parameter->by_muon && flat.defined() ? flat.view(parameter->parameter.sizes()) : flat;
  }
};

// Of a device that copies in the background: a fetch waits for no other work, a write-back for its update.
struct HostState::Streams {
  explicit Streams(at::Device device)
      : device(device),
        guard(device.type()),
        in(guard.getStreamFromGlobalPool(device, false)),
        out(guard.getStreamFromGlobalPool(device, false)) {
    for (auto* events : {&fetched, &updated, &put})
      for (size_t i = 0; i < kBuffers; ++i) events->emplace_back(device.type());
  }
  c10::Stream work() const { return guard.getStream(device); }

  const at::Device device;
  const c10::impl::VirtualGuardImpl guard;
  const c10::Stream in, out;
  std::vector<c10::Event> fetched, updated, put;  // by buffer
};

HostState::HostState(at::Device device, int64_t slice) : device_(device), slice_(slice) {
  UCAS_CHECK(slice_ > 0 && slice_ % kQuantBlock == 0, "parts begin where blocks of 8-bit codes do");
  if (!device.is_cpu()) streams_ = std::make_unique<Streams>(device);
}

HostState::~HostState() = default;

HostState::Tensors HostState::on_host(const Part& part) {
  const ParameterState& p = *part.parameter;
  return {part.of(p.host_master), part.of(p.mean.values), part.scales(p.mean), part.of(p.square.values),
          part.scales(p.square)};
}

at::Tensor HostState::room_for(size_t buffer, size_t kind, const at::Tensor& host) {
  at::Tensor& room = bytes_[buffer][kind];
  const auto needed = static_cast<int64_t>(host.numel() * static_cast<int64_t>(host.element_size()));
  if (!room.defined() || room.numel() < needed) {
    // It is given back to the work's stream, whose next tensor may get it: not before its last way to the host ended.
    if (streams_ && room.defined()) streams_->put[buffer].block(streams_->work());
    room.reset();
    room = at::empty({needed}, at::TensorOptions().dtype(at::kByte).device(device_));
    // The device's allocator gives what earlier work on this stream has used, and that may not have ended.
    if (streams_) {
      c10::Event made(device_.type());
      made.record(streams_->work());
      made.block(streams_->in);
    }
  }
  return room.narrow(0, 0, needed).view(host.scalar_type());
}

void HostState::fetch(const Part& part, size_t buffer, bool again) {
  const Tensors host = on_host(part);
  Tensors& here = held_[buffer];
  if (streams_ && again) streams_->put[buffer].block(streams_->in);  // what was in it is back
  for (size_t kind = 0; kind < kKinds; ++kind)
    here[kind] = host[kind].defined() ? room_for(buffer, kind, host[kind]) : at::Tensor();
  std::optional<c10::StreamGuard> background;
  if (streams_) background.emplace(streams_->in);
  for (size_t kind = 0; kind < kKinds; ++kind)
    if (host[kind].defined()) here[kind].copy_(host[kind], /*non_blocking=*/true);
  if (streams_) streams_->fetched[buffer].record(streams_->in);
}

ParameterState HostState::on_device(const Part& part, size_t buffer) const {
  const ParameterState& p = *part.parameter;
  const Tensors& here = held_[buffer];
  ParameterState made = p;
  made.first = part.first;
  made.parameter = part.shaped(here[0].defined() ? here[0] : part.of(p.parameter));
  at::Tensor& gradient = p.parameter.mutable_grad();
  if (!gradient.is_contiguous()) gradient = gradient.contiguous();
  made.parameter.mutable_grad() = part.shaped(part.of(gradient));
  made.mean.values = part.shaped(here[1]);
  made.mean.scales = here[2];
  made.square.values = part.shaped(here[3]);
  made.square.scales = here[4];
  return made;
}

void HostState::put(const Part& part, size_t buffer) {
  const Tensors host = on_host(part);
  const Tensors& here = held_[buffer];
  if (here[0].defined()) {
    const Bf16Copy& copy = part.parameter->copy;
    part.of(copy.compute).copy_(copy.scale == 1 ? here[0] : here[0] * copy.scale);
  }
  std::optional<c10::StreamGuard> background;
  if (streams_) {
    streams_->updated[buffer].record(streams_->work());
    streams_->updated[buffer].block(streams_->out);
    background.emplace(streams_->out);
  }
  for (size_t kind = 0; kind < kKinds; ++kind) {
    at::Tensor to = host[kind];
    if (to.defined()) to.copy_(here[kind], /*non_blocking=*/true);
  }
  if (streams_) streams_->put[buffer].record(streams_->out);
}

void HostState::run(std::span<const ParameterState* const> parameters,
                    const std::function<void(const ParameterState& part)>& update) {
  std::vector<Part> parts;
  for (const ParameterState* p : parameters) {
    const int64_t all = p->parameter.numel(), slice = p->by_muon ? all : slice_;
    for (int64_t first = 0; first < all; first += slice) parts.push_back({p, first, std::min(slice, all - first)});
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == 0) fetch(parts[0], 0, false);
    if (i + 1 < parts.size()) fetch(parts[i + 1], (i + 1) % kBuffers, i + 1 >= kBuffers);
    const size_t buffer = i % kBuffers;
    if (streams_) streams_->fetched[buffer].block(streams_->work());
    update(on_device(parts[i], buffer));
    put(parts[i], buffer);
  }
  if (streams_) streams_->out.synchronize();  // the host reads what was put back: files, the next fetch
}

}  // namespace ucas
