// f32 masters of bf16 weights among ranks: each keeps those of the parameters that it updates, 1 / size of them or
// nearly, and the bf16 weights of all. What an owner has updated travels rounded, as the others would round it: two
// bytes an element, and the bits of one process.
// Borrows ranks; shares the tensors with their model. Threads: one caller; all ranks call, in order.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "train/ranks.h"

namespace ucas {

class SharedMasters {
 public:
  // `copies` (Model::narrow_copies()) of some of `parameters`, whose owners `owners` says. All values stay where they
  // are until release().
  SharedMasters(Ranks& ranks, const std::vector<NamedTensor>& parameters, const std::vector<int64_t>& owners,
                const std::vector<NarrowCopy>& copies);

  bool has(const at::Tensor& leaf) const;
  // The weights that each owner's masters round to.
  void hand_out() const;
  // Rank 0 has all masters, until release(): for files.
  void gather() const;
  // The masters of other ranks take no memory here any more.
  void release() const;

 private:
  Ranks& ranks_;
  std::vector<std::vector<NarrowCopy>> owned_;  // by rank
};

}  // namespace ucas
