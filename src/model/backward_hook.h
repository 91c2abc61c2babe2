// Hook called before and after each block's backward. ZeRO-2 uses it to move gradients in and out
// (sharding/sharded_gradients.h).
#pragma once

#include <cstddef>

namespace ucas {

class BackwardHook {
 public:
  virtual ~BackwardHook() = default;
  virtual void before(size_t layer) = 0;
  virtual void after(size_t layer) = 0;
};

}  // namespace ucas
