// One file under several graders: who pays what, and who is right where that is known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/verify_rows.h"

namespace ucas {

struct Audited {
  std::string name;
  Grading grading;
};

// Tables: verdicts, rates of error with 95 % bootstrap intervals over rows, agreement per group, which graders pay
// where they disagree; then the first `show` rows on which they do.
std::string audit_report(std::span<const VerifyRow> rows, std::span<const Audited> graders, int64_t show);

}  // namespace ucas
