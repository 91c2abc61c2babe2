// What `ucas check` does besides reading each path as the other commands would.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "data/problems.h"

namespace ucas {

struct CheckOptions {
  bool summary = false, decode = false, prompt = false;
  std::string ids, tokenizer;
  int64_t show = 5;
  ProblemColumns columns;
  void fields(Fields& f);
};

// Tests of programs as a training reads them, by the code grader: Error(ErrorKind::data_line) for what it would refuse.
void check_tests(std::span<const Problem> problems);
// What data files hold, before a training reads them.
int summarize_data(const std::vector<std::string>& files, const CheckOptions& options);
// Whether the tokenizer in `directory` gives the ids of a file's rows; kDiffers where it does not.
int compare_ids(const std::string& directory, const CheckOptions& options);

}  // namespace ucas
