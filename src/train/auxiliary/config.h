// Options [reference]: the model that KL terms compare with.
#pragma once

#include <cstdint>

#include "base/text/fields.h"

namespace ucas {

// The reference that KL terms are held to: the policy's start, or what it is moved to on the way.
struct ReferenceConfig {
  int64_t sync_steps = 0;  // 0 = never
  bool moves() const { return sync_steps > 0; }
  void fields(Fields& f);
};

}  // namespace ucas
