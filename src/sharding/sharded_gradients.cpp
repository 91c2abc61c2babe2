#include "sharding/sharded_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <exception>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "model/gemm/linear.h"

namespace ucas {

ShardedGradients::ShardedGradients(Model& model, std::span<const NamedTensor> parameters,
                                   std::span<const int64_t> owners, Ranks& ranks, const How& how)
    : model_(model), ranks_(ranks), how_(how) {
  UCAS_CHECK(owners.empty() ? ranks.alone() : parameters.size() == owners.size(),
             "expected an owner of each parameter");
  std::map<const at::TensorImpl*, Entry> left;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].tensor;
    left.emplace(parameter.unsafeGetTensorImpl(), Entry{parameter, owners.empty() ? 0 : owners[i], {}});
  }
  if (ranks.alone() || how.shard == Shard::gradients) {
    for (const std::vector<at::Tensor>& layer : model.set_backward_hook(this)) {
      Entries& entries = layers_.emplace_back();
      for (const at::Tensor& parameter : layer) {
        const auto found = left.extract(parameter.unsafeGetTensorImpl());
        UCAS_CHECK(!found.empty(), "a block's parameters must be its own and the optimizer's");
        entries.push_back(found.mapped());
      }
    }
  }
  for (const NamedTensor& p : parameters) {  // in their order, the same on every rank
    const auto found = left.extract(p.tensor.unsafeGetTensorImpl());
    if (!found.empty()) rest_.push_back(found.mapped());
  }
}

ShardedGradients::~ShardedGradients() { model_.set_backward_hook(nullptr); }

void ShardedGradients::begin() {
  const at::NoGradGuard no_grad;
  const auto define = [this](const Entries& entries) {
    for (const Entry& entry : entries)
      if (mine(entry)) gradient_of(entry.parameter);
  };
  for (const Entries& layer : layers_) define(layer);
  define(rest_);
}

void ShardedGradients::pass(const std::function<void()>& work, int64_t contributors) {
  contributors_ = contributors;
  begin_micro(rest_);
  if (work) {
    work();
  } else {
    for (size_t layer = layers_.size(); layer-- > 0;) {
      before(layer);
      after(layer);
    }
  }
  reduce_to_owners(rest_);
  contributors_ = 0;
}

// Outside of pass(), as where a response is only logged, nothing moves.
void ShardedGradients::before(size_t layer) {
  if (contributors_ > 0) begin_micro(layers_[layer]);
}
void ShardedGradients::after(size_t layer) {
  if (contributors_ > 0) reduce_to_owners(layers_[layer]);
}

ShardedGradients::OfOwners ShardedGradients::by_owner(const Entries& entries) const {
  OfOwners lists(static_cast<size_t>(ranks_.size()));
  for (const Entry& entry : entries) lists[static_cast<size_t>(entry.owner)].push_back(gradient_of(entry.parameter));
  return lists;
}

// A micro-batch begins at zero.
void ShardedGradients::begin_micro(Entries& entries) {
  if (how_.reduce != Reduce::micro) return;
  const at::NoGradGuard no_grad;
  for (Entry& entry : entries) {
    at::Tensor& gradient = entry.parameter.mutable_grad();
    entry.sum = std::move(gradient);
    gradient = scratch_for(entry.parameter);
  }
}

at::Tensor ShardedGradients::scratch_for(const at::Tensor& parameter) {
  std::vector<at::Tensor>& spare = scratch_[parameter.sizes().vec()];
  if (spare.empty()) return at::zeros_like(parameter.detach());
  at::Tensor scratch = std::move(spare.back());
  spare.pop_back();
  return scratch.zero_();
}

// Brings them to who keeps them. By sums the memory of the others' is free again; by micro-batches another block uses
// it.
void ShardedGradients::reduce_to_owners(Entries& entries) {
  const at::NoGradGuard no_grad;
  {
    const OfOwners to = by_owner(entries);
    std::vector<at::Tensor> sums;
    for (const Entry& entry : entries)
      if (how_.reduce == Reduce::micro && mine(entry)) sums.push_back(entry.sum);
    if (how_.reduce == Reduce::sum) {
      ranks_.reduce("summing gradients of a block", to);
    } else {
      ranks_.add_in_order("adding gradients of micro-batches", to, sums, contributors_);
    }
  }
  for (Entry& entry : entries) {
    at::Tensor& gradient = entry.parameter.mutable_grad();
    if (how_.reduce == Reduce::micro) {
      scratch_[gradient.sizes().vec()].push_back(std::exchange(gradient, std::move(entry.sum)));
    } else if (!mine(entry)) {
      gradient.reset();
    }
  }
}

namespace {

constexpr const char* kLending = "lending master weights";
constexpr int64_t kEnough = -1;       // rank 0 needs no more
constexpr int64_t kAtOnce = 1 << 24;  // elements: all ranks receive what rank 0 requests

}  // namespace

// The largest first, each to who has least.
std::vector<int64_t> owners_of(const std::vector<NamedTensor>& parameters, int64_t ranks) {
  std::vector<size_t> largest_first(parameters.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  const auto size = [&](size_t i) { return parameters[i].tensor.numel(); };
  std::ranges::stable_sort(largest_first, [&](size_t a, size_t b) { return size(a) > size(b); });
  std::vector<int64_t> elements(static_cast<size_t>(ranks)), owners(parameters.size());
  for (const size_t i : largest_first) {
    const auto least = std::ranges::min_element(elements);
    owners[i] = least - elements.begin();
    *least += size(i);
  }
  return owners;
}

KeptMasters own_masters(int64_t rank, int64_t ranks) {
  if (ranks == 1) return nullptr;
  return [rank, ranks](const std::vector<NamedTensor>& trained) {
    std::vector<bool> mine;
    for (const int64_t owner : owners_of(trained, ranks)) mine.push_back(owner == rank);
    return mine;
  };
}

ShardedMasters::ShardedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters,
                               const std::vector<int64_t>& owners, const std::vector<Bf16Copy>& copies)
    : ranks_(ranks), owned_(static_cast<size_t>(ranks.size())) {
  UCAS_CHECK(parameters.size() == owners.size(), "expected one owner rank per parameter");
  std::map<const at::TensorImpl*, Bf16Copy> by_master;
  for (const Bf16Copy& copy : copies) by_master.emplace(copy.master.unsafeGetTensorImpl(), copy);
  for (size_t i = 0; i < parameters.size(); ++i) {  // in the model's order, the same on every rank
    const auto found = by_master.find(parameters[i].tensor.unsafeGetTensorImpl());
    if (found == by_master.end()) continue;
    owned_[static_cast<size_t>(owners[i])].push_back(found->second);
    if (owners[i] != ranks.rank()) drop_values(found->second.master);
  }
}

bool ShardedMasters::has(const at::Tensor& parameter) const { return place_of(parameter).first >= 0; }

// Its owner, and which of the owner's it is; -1: it is not sharded.
std::pair<int64_t, int64_t> ShardedMasters::place_of(const at::Tensor& parameter) const {
  for (size_t owner = 0; owner < owned_.size(); ++owner) {
    const auto& list = owned_[owner];
    const auto found = std::ranges::find_if(list, [&](const Bf16Copy& copy) { return copy.master.is_same(parameter); });
    if (found != list.end()) return {static_cast<int64_t>(owner), found - list.begin()};
  }
  return {-1, 0};
}

void ShardedMasters::broadcast_weights() const {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> weights;
  for (int64_t owner = 0; owner < ranks_.size(); ++owner) {
    weights.emplace_back();
    for (const Bf16Copy& copy : owned_[static_cast<size_t>(owner)]) {
      if (owner == ranks_.rank()) copy.refresh();
      weights.back().push_back(copy.compute);
    }
  }
  ranks_.broadcast("broadcasting weights", weights);
}

// All of it through the host, where the file is written from: no device makes room for what is of others.
void ShardedMasters::lend(const std::function<void(const MasterValues&)>& work, const MasterValues& own) const {
  const at::NoGradGuard no_grad;
  ranks_.barrier(kLending);
  if (!ranks_.leads()) return answer(own);
  const auto ask = [&](int64_t owner, int64_t which) {
    ranks_.broadcast(kLending, {{at::tensor(std::vector<int64_t>{owner, which})}}, 0);
  };
  const auto values = [&](const at::Tensor& parameter) {
    const auto [owner, which] = place_of(parameter);
    if (owner <= 0) return own(parameter);
    ask(owner, which);
    const at::Tensor received = at::empty(parameter.sizes(), at::kFloat);
    lend_one(owner, parameter.numel(), received);
    return received;
  };
  std::exception_ptr failure;
  try {
    work(values);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::ranks) throw;  // no rank is left to notify
    failure = std::current_exception();
  }
  ask(kEnough, 0);
  if (failure) std::rethrow_exception(failure);
}

void ShardedMasters::answer(const MasterValues& own) const {
  const at::Tensor asked = at::empty({2}, at::kLong);
  for (;;) {
    ranks_.broadcast(kLending, {{asked}}, 0);
    const int64_t owner = asked.const_data_ptr<int64_t>()[0], which = asked.const_data_ptr<int64_t>()[1];
    if (owner == kEnough) return;
    const at::Tensor& master = owned_[static_cast<size_t>(owner)][static_cast<size_t>(which)].master;
    const bool mine = owner == ranks_.rank();
    lend_one(owner, master.numel(), mine ? own(master).detach().cpu().contiguous() : at::Tensor());
  }
}

// `values`: of the owner, and where they go; undefined: what passes by is dropped.
void ShardedMasters::lend_one(int64_t owner, int64_t count, const at::Tensor& values) const {
  const at::Tensor dropped = values.defined() ? at::Tensor() : at::empty({std::min(count, kAtOnce)}, at::kFloat);
  for (int64_t first = 0; first < count; first += kAtOnce) {
    const int64_t n = std::min(kAtOnce, count - first);
    ranks_.broadcast(kLending, {{values.defined() ? values.view({-1}).narrow(0, first, n) : dropped.narrow(0, 0, n)}},
                     owner);
  }
}

}  // namespace ucas
