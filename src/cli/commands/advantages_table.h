// One step under every method: what `ucas advantages --table` prints. A method's tokens are compared with DAPO's on the
// same saved steps by what each asks of them at the first update (methods/apply.h), so that methods that weigh
// tokens in their loss can be compared with those that weigh them in the advantage.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "records/run/step_methods.h"

namespace ucas {

// Every method of the registry under its first preset, the other presets of UCAS and its placebos, or `only` these
// names (NAME, NAME:PRESET or NAME:PLACEBO), on all of these steps. Throws Error("config") naming an unknown method.
MethodsTable methods_table(std::span<const std::string> files, double rare, std::span<const std::string> only);

std::string methods_table_text(const MethodsTable& table, const std::string& source);

}  // namespace ucas
