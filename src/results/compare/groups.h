// Runs that differ only in their seed (in a study: and base) belong together: a group is one line of every chart and
// one row of every table. Fed by run_reader; feeds summary, series and the page. A group points into the runs it was
// made from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace ucas {

struct RunGroup {
  std::string title;                   // label, else the method's title, else its name in capitals, else the run's
  bool trained = false;                // has training steps or a method; untrained ones come first
  size_t color = 0;                    // 0: the gray of what was not trained; 1 .. 7 otherwise
  std::vector<const RunRecord*> runs;  // by seed
  std::string seeds() const;           // "seeds 0, 1, 2", "seed 0", "3 runs", ""
};

std::vector<RunGroup> group_runs(std::span<const RunRecord> runs);

// The evaluation of `run` on `data` that speaks for it: the latest step; nullptr if there is none.
const EvalRecord* final_evaluation(const RunRecord& run, const std::string& data);
// Names of the data evaluated by any run, in order of appearance.
std::vector<std::string> evaluated_data(const std::vector<RunGroup>& groups);

// True for settings that say where or by which dice a run was made, not what it does: seeds, labels, and the paths of
// model and data, whose hashes decide (env.json) where runs recorded them.
bool is_incidental(const std::string& key);

}  // namespace ucas
