// What `ucas diagnose` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/diagnosis.h"

namespace ucas {

struct DiagnosisReport {
  std::string source;                // what was read, for people
  std::vector<std::string> remarks;  // what is missing
  int64_t opening = 1;               // words that make a strategy
  int64_t strategies = 12;           // rows of that table
  DiagnosisOptions options;
  Diagnosis found;
};

std::string diagnosis_text(const DiagnosisReport& report);
std::string diagnosis_json(const DiagnosisReport& report);  // one line
// What follows for a user, in plain sentences.
std::string diagnosis_reading(const DiagnosisReport& report);

}  // namespace ucas
