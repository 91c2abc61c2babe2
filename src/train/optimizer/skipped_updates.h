// Optimizer updates left out because a gradient was not finite: counted and logged, and after three in a row an error.
// Part of every checkpoint, so that an interrupted run counts on. Owned by the code that updates.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ucas {

struct SkippedUpdates {
  int64_t total = 0, in_a_row = 0;

  // After each update. `whose` is "the gradient", "the critic's gradient" ...; `advice` ends the error.
  // Throws Error(ErrorKind::numeric) at the third in a row.
  void note(bool applied, const std::string& where, const std::string& whose, const std::string& advice);

  // For AuxiliaryModel::state() and restore().
  std::map<std::string, double> state() const;
  void restore(const std::map<std::string, double>& state);
};

}  // namespace ucas
