// Why a training went as it did, for `ucas diagnose`: what became of its reward, which signs its records show
// (report/signs.h), each with its figures before and after and the stored responses that show it. An unfinished run may
// be read.
#pragma once

#include <string>
#include <vector>

#include "records/run/rollouts.h"
#include "records/run_record.h"
#include "report/signs.h"

namespace ucas {

struct Evidence {
  std::string key;
  double before = kUnknown;  // mean of up to ten steps before it began
  double after = kUnknown;   // of the last ten since; of what happened at one step, that step's
};

struct Witness {
  int64_t step = 0, sample = 0;
  std::string problem, what, text;  // what: in words; text: the end of the response
};
struct Cause {
  FoundSign sign;
  bool always = false;  // active since the first step: that explains no fall
  std::vector<Evidence> evidence;
  std::vector<Witness> shown;  // the latest, at most three
};

struct RunDiagnosis {
  std::vector<Trend> trends;  // reward, accuracy, validation: those that were logged
  std::vector<Cause> found;   // what began in the run up to the fall of the reward, by step; what is active since
                              // the first step; what began later; notes
  std::vector<const SignRow*> quiet, blind;
  std::vector<std::string> remarks;
  const Trend* fallen() const;  // the trend that fell first
};

// Stored responses of at most 100 steps, the last ten among them and the others spread over the run.
std::vector<StoredResponse> read_stored(const std::string& run, std::vector<std::string>& remarks);
RunDiagnosis diagnose_run(const RunRecord& run, const std::vector<StoredResponse>& stored);

std::string diagnosis_text(const RunRecord& run, const RunDiagnosis& diagnosis);

}  // namespace ucas
