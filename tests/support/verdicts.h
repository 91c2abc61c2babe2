// Short ways to grade in tests.
#pragma once

#include <string>
#include <vector>

#include "verify/grader.h"

namespace ucas {

Verdict grade_one(const std::vector<std::string>& gold, const std::string& response, Extract extract = Extract::bare);
bool is_rewarded(const std::string& gold, const std::string& answer);

// Inside a rapidcheck property, both ways round: neither text may be worth more as the gold.
void expect_equal(const std::string& a, const std::string& b);
void expect_unequal(const std::string& a, const std::string& b);

}  // namespace ucas
