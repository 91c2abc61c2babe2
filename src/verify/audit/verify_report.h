// What `ucas verify` prints of its verdicts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "verify/audit/verify_rows.h"

namespace ucas {

inline bool is_paid(const Verdict& verdict) { return verdict.kind == VerdictKind::equal; }

// Verdicts against what rows say is right.
struct Tally {
  int64_t known = 0, agree = 0, false_positive = 0, false_negative = 0;
  void add(const VerifyRow& row, const Verdict& verdict);
  double agreement() const { return static_cast<double>(agree) / static_cast<double>(known); }
};

std::string group_name(const std::string& name);  // in a table
std::string alternatives_text(const std::vector<std::string>& alternatives);

// Shares of the verdicts; where rows say what is right, agreement overall and per group; speed.
std::string verify_summary(std::span<const VerifyRow> rows, const Grading& grading);

// The same as one JSON object.
std::string verify_json(const std::string& path, std::span<const VerifyRow> rows, const Grading& grading);

// The first `limit` rows whose verdict is not the expected one: both texts, what was extracted, the reason; with
// `explained` (all answers, or none) how gold and answer were read, too.
std::string disagreements(std::span<const VerifyRow> rows, std::span<const Verdict> verdicts, int64_t limit,
                          std::span<const Answer> explained);

}  // namespace ucas
