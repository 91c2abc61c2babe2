// Why a training went as it did: what became of its reward, and which causes of the table stand in its records, each
// with when it began, its figures before and after, and the responses and tokens that show it. For `ucas diagnose`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/causes/cause.h"
#include "report/causes/stored.h"
#include "report/causes/trend.h"

namespace ucas {

struct Evidence {
  std::string key;
  double before = kUnknown;  // mean of up to ten steps before it began
  double after = kUnknown;   // of the last ten since; of what happened at one step, that step's
};

struct Cause {
  const CauseKind* kind = nullptr;
  double since = 0;         // the step
  bool at_once = false;     // it happened at that step; otherwise it stands
  bool always = false;      // it stands since the first step: that explains no fall
  bool note = false;        // not harmful here
  double until = kUnknown;  // the last step of it, where it ended in the run: a note
  std::string what;         // what the figures do not say
  std::vector<Evidence> evidence;
  Shown shown;
};

struct Causes {
  std::vector<Trend> trends;          // reward, accuracy, validation: those that were logged
  std::vector<Cause> found;           // what may explain a fall first; see find_causes
  std::vector<std::string> quiet;     // titles of what was looked for in vain
  std::vector<std::string> unlooked;  // of what the run has no numbers for
  std::vector<std::string> remarks;

  const Trend* fallen() const;  // the first of the trends that fell
  bool risen() const;           // one rose and none fell
};

// In order: what began in the run up to the fall of the reward, by step; what stands since the first step; what began
// later; notes. `stored`: of read_stored. Of signals/ the last saved step that shows a cause is read.
Causes find_causes(const RunRecord& run, const std::vector<StoredResponse>& stored);

// The index in the series at which a rule's sign began, if it stands or happened.
std::optional<size_t> began(const CauseKind& kind, const KnownSteps& series);

// Whether answers of the last steps were read at all: a method without right answers has none.
bool was_graded(const StepTable& table);

// A sign that stood and ended: the last stretch of it, as it was said while the run went on. Of rules that compare a
// mean with a limit, and of "No right answer"; none where the sign stands at the end, or never did.
struct Passed {
  double from = 0, to = 0;  // steps
  double most = 0;          // the mean farthest beyond the limit
};
std::optional<Passed> passed(const CauseKind& kind, const KnownSteps& series);

}  // namespace ucas
