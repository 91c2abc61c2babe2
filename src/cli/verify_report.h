// What `ucas verify` prints of its verdicts.
#pragma once

#include <span>
#include <string>

#include "cli/verify_rows.h"

namespace ucas {

// Shares of the verdicts; where rows say what is right, agreement overall and per group; speed.
std::string verify_summary(std::span<const VerifyRow> rows, const Grading& grading);

// The first `limit` rows whose verdict is not the expected one: both texts, what was extracted, the reason; with
// `explained` (all answers, or none) how gold and answer were read, too.
std::string disagreements(std::span<const VerifyRow> rows, std::span<const Verdict> verdicts, int64_t limit,
                          std::span<const Answer> explained);

}  // namespace ucas
