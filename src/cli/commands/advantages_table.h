// One step under every method: what `ucas advantages --table` prints. A method's tokens are compared with DAPO's on the
// same saved steps by what each asks of them at the first update (methods/first_update.h), so that methods that weigh
// tokens in their loss can be compared with those that weigh them in the advantage.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "records/run/step_data.h"

namespace ucas {

// Over all tokens of the steps; a DAPO's, b the method's.
struct AgainstDapo {
  std::string name, variant;             // "ucas", "placebo permuted_confidence"
  double correlation = 0;                // of a and b; NaN if either is constant
  double size = 0;                       // mean |b| over mean |a|
  double net = 0;                        // mean b
  int64_t tokens = 0, turned = 0;        // a b < 0
  int64_t silenced = 0, woken = 0;       // b = 0 only; a = 0 only
  int64_t rare = 0, rare_lowered = 0;    // rare right responses, and those whose mean b is below their mean a
  int64_t other = 0, other_lowered = 0;  // the other right responses of groups with a difference
};

struct MethodsTable {
  int64_t steps = 0, groups = 0, responses = 0;
  double rare = 0;                    // a right response is rare where at most this share of its group is right
  std::vector<AgainstDapo> rows;      // DAPO first
  std::vector<std::string> left_out;  // "ppo: the values of a critic (..)"
};

// Every method of the registry under its first preset, the other presets of UCAS and its placebos, or `only` these
// names (NAME or NAME:PRESET), on all of these steps. Throws Error("config") naming an unknown method.
MethodsTable methods_table(std::span<const std::string> files, double rare, std::span<const std::string> only);

std::string methods_table_text(const MethodsTable& table, const std::string& source);
std::string methods_table_json(const MethodsTable& table, const std::string& source);

}  // namespace ucas
