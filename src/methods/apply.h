// A method on a batch: what the trainer's step, `ucas advantages` and tests ask for.
#pragma once

#include <string>
#include <vector>

#include "methods/method.h"

namespace ucas {

struct Advantages {
  std::vector<float> advantage;  // [N] A_it; 0 in masked responses, which learn nothing
  Recording recording;
};

// What the method needs and the batch does not hold, for people; empty where nothing lacks.
std::string missing(const Needs& needs, const Batch& batch);

// Throws Error(ErrorKind::unsupported) where something is missing.
Advantages compute_advantages(const Method& method, const Batch& batch);
// Under a preset ("" = the first) and with these of its options changed.
Advantages compute_advantages(const std::string& method, const Batch& batch, const std::string& preset = "",
                              const std::vector<Setting>& settings = {});

}  // namespace ucas
