#include "train/auxiliary/config.h"

namespace ucas {

void ReferenceConfig::fields(Fields& f) {
  f.field("sync_steps", sync_steps, Range{0, 1e9},
          "steps between moves of the reference model to the policy (TRL: ref_model_sync_steps); 0 = frozen at the "
          "policy's start");
  f.field(
      "mixup_alpha", mixup_alpha, Range{1e-9, 1},
      "mixing weight: reference = alpha policy + (1 - alpha) reference; 1 = reset; small with sync_steps = 1 = EMA");
}

}  // namespace ucas
