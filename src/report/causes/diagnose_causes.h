// What `ucas diagnose` prints of a training: what became of the reward, and the causes that its records show.
#pragma once

#include <string>

#include "records/run_record.h"
#include "report/causes/find.h"

namespace ucas {

struct CausesReport {
  const RunRecord& run;
  const Causes& causes;
};

std::string causes_text(const CausesReport& report);
std::string causes_json(const CausesReport& report);  // one line

}  // namespace ucas
