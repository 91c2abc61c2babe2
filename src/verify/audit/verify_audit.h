// One file under several graders: who pays what, and who is right where that is known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "verify/audit/verify_rows.h"

namespace ucas {

struct Audited {
  std::string name;
  Grading grading;
};

// Tables: verdicts, rates of error with 95 % bootstrap intervals over rows, agreement per group, which graders pay
// where they disagree; then the first `show` rows on which they do.
// In which form responses give their answer (a box, "#### X", after "answer is", the last number ..), how many of each,
// and how many of these are right when they are read leniently. `lenient`: verdicts of all rows read so.
std::string forms_table(std::span<const VerifyRow> rows, std::span<const Verdict> lenient);

std::string audit_report(std::span<const VerifyRow> rows, std::span<const Audited> graders, int64_t show);

}  // namespace ucas
