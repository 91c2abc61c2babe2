// What a run kept of its responses, read to say which of them show a cause: texts of rollouts/, and tokens of signals/.
// Fed by records; a run that goes on may be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "records/run/rollouts.h"
#include "records/run/step_data.h"
#include "records/run/steps.h"
#include "report/causes/cause.h"

namespace ucas {

// Whether most of a text is what it said before, or its end is one piece again and again.
bool repeats_itself(const std::string& text);

// Stored responses of at most so many steps, the last ten among them and the others spread over the run.
constexpr size_t kMostStoredSteps = 100;
std::vector<StoredResponse> read_stored(const std::string& run, std::vector<std::string>& remarks);

// Adds the columns stored/repeated (share of a step's stored responses) and stored/identical (share of its prompts with
// several stored responses that are all the same text).
void add_stored_columns(StepTable& table, const std::vector<StoredResponse>& stored);

struct Witness {
  int64_t step = 0, sample = 0, tokens = -1;
  std::string problem, what, text;  // what: in words; text: the part of the response that shows it
};
struct ProblemCount {
  std::string problem;
  int64_t shown = 0, stored = 0;  // responses that show the cause, of those that were stored
};
struct WitnessedToken {
  int64_t step = 0, sample = 0, position = 0;
  std::string problem, piece, what;
};
struct Shown {
  std::vector<Witness> responses;      // the latest, at most three
  std::vector<ProblemCount> problems;  // most often first, at most five
  std::vector<WitnessedToken> tokens;  // the worst of one saved step, at most five
};
// Of the steps from `since` on.
Shown shown_by(const CauseKind& kind, const std::vector<StoredResponse>& stored, double since);
std::vector<WitnessedToken> tokens_of(ShownIn sign, const StepData& data);

}  // namespace ucas
