// Who wants to know of a backward pass where it stands: before and after a block adds to the gradients of its own
// parameters. One that keeps gradients elsewhere brings and takes them here (train/sharded_gradients.h).
#pragma once

#include <cstddef>

namespace ucas {

class GradientWatch {
 public:
  virtual ~GradientWatch() = default;
  virtual void before(size_t layer) = 0;
  virtual void after(size_t layer) = 0;
};

}  // namespace ucas
