// The matrices of blocks, where a rank does not have all of them all the time (sharding/sharded_weights.h). A pass
// through the blocks says which one is next; the others may be absent then.
#pragma once

#include <cstddef>

namespace ucas {

class BlockWeights {
 public:
  virtual ~BlockWeights() = default;
  // Before a block's forward, or its backward with what that makes again: its matrices are here from now on, until
  // another block is asked for. The pass goes on to the next block, or (back) to the one before; after the last one, or
  // the first one, anything may come.
  virtual void need(size_t layer, bool back) = 0;
  // The leaves that they are made of have changed.
  virtual void changed() = 0;
};

}  // namespace ucas
