// Stored against recomputed advantages of one step: what `ucas advantages` prints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "records/run/step_data.h"

namespace ucas {

struct Recomputed {
  std::string name, title, preset;
  std::vector<FieldValue> settings;  // method.alpha ...
  std::vector<float> advantage;      // [N]
};

// Over all tokens; stored a, recomputed b. A token is changed where |a - b| > 1e-6; its sign turns where a b < 0.
struct Change {
  int64_t tokens = 0, changed = 0, turned = 0, silenced = 0, woken = 0;  // silenced: b = 0 only; woken: a = 0 only
  int64_t responses = 0, responses_turned = 0;                           // by their mean advantage
  double stored_size = 0, new_size = 0;                                  // mean |A|
  double stored_net = 0, new_net = 0;                                    // mean A
  double correlation = 0;                                                // of a and b; NaN if either is constant
};
Change change_of(const StepData& data, std::span<const float> recomputed);

std::string comparison_text(const StepData& data, const Recomputed& method, int64_t show);

}  // namespace ucas
