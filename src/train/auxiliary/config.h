// Options [reference]: the model that KL terms compare with.
#pragma once

#include <cstdint>

#include "base/text/fields.h"

namespace ucas {

// The reference that KL terms are held to: the policy's start, or what it is moved to on the way.
struct ReferenceConfig {
  int64_t sync_steps = 0;  // 0 = never
  bool moves() const { return sync_steps > 0; }
  void fields(Fields& f) {
    f.field("sync_steps", sync_steps, Range{0, 1e9},
            "steps between moves of the reference model to the policy (TRL: ref_model_sync_steps); 0 = frozen at the "
            "policy's start");
  }
};

}  // namespace ucas
