#include "rollout/environment/config.h"

namespace ucas {

void EnvironmentConfig::fields(Fields& f) {
  f.choice("environment", kind,
           "environment that answers the model's turns; messages are inserted as context (docs/environments.md)");
  f.field("max_turns", max_turns, Range{1, 1024},
          "maximum turns of the model in an episode with an environment; an episode that asks for more is cut");
}

}  // namespace ucas
