// The page of a report, put together from its sections (results, curves, explorer ...).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/page/responses.h"

namespace ucas {

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

}  // namespace ucas
