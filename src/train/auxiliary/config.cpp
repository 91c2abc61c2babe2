#include "train/auxiliary/config.h"

namespace ucas {

void ReferenceConfig::fields(Fields& f) {
  f.field("sync_steps", sync_steps, Range{0, 1e9},
          "steps between moves of the reference model to the policy (TRL: ref_model_sync_steps); 0 = frozen at the "
          "policy's start");
}

}  // namespace ucas
