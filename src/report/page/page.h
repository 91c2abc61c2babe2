// The page of a report, put together from its sections (results, responses, curves, explorer ...). All text is escaped
// (report/escape.h) and cut, so that a report stays small.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/summary.h"

namespace ucas {

struct SampleLimits {
  size_t problems = 8;                   // side by side
  size_t responses = 3;                  // of the samples, folded below the greedy one
  size_t bytes = 4000;                   // of one text
  size_t token_bytes = size_t{5} << 20;  // of the token explorer's JSON
};

class Page {
 public:
  struct Parts;  // what was read and computed once, however often the page is made

  Page(const std::vector<RunRecord>& runs, const std::string& title);  // `runs` must outlive it
  ~Page();
  std::string html(const SampleLimits& limits);

 private:
  const std::vector<RunRecord>& runs_;
  std::unique_ptr<Parts> parts_;
};

// Accuracies, differences between groups as a forest plot and in words, the table: the numbers of summary.h.
std::string results_html(const std::vector<RunGroup>& groups, const std::vector<ResultTable>& summaries);

// Responses to read: for a few problems the answers of every group side by side, and how many problems each method won
// and lost; from training, those of the first and the last stored step with their rewards and advantages. "" if no run
// has responses.
std::string responses_html(const std::vector<RunGroup>& groups, const SampleLimits& limits);

}  // namespace ucas
