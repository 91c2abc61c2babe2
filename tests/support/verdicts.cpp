#include "support/verdicts.h"

#include <rapidcheck.h>

#include "base/str.h"
#include "verify/registry.h"

namespace ucas {

Verdict grade_one(const std::vector<std::string>& gold, const std::string& response, Extract extract) {
  static const std::unique_ptr<Grader> grader = make_grader(GraderKind::math);
  Answer answer{response, &gold};
  answer.extract = extract;
  return grader->grade({&answer, 1}).front();
}

bool is_rewarded(const std::string& gold, const std::string& answer) {
  return grade_one({gold}, answer).kind == VerdictKind::equal;
}

void expect_equal(const std::string& a, const std::string& b) {
  if (!is_rewarded(a, b)) RC_FAIL(str(a, "  is not equal to  ", b, ": ", grade_one({a}, b).reason));
  if (!is_rewarded(b, a)) RC_FAIL(str(b, "  is not equal to  ", a, ": ", grade_one({b}, a).reason));
}

void expect_unequal(const std::string& a, const std::string& b) {
  if (is_rewarded(a, b)) RC_FAIL(str(a, "  is equal to  ", b, ": ", grade_one({a}, b).reason));
  if (is_rewarded(b, a)) RC_FAIL(str(b, "  is equal to  ", a, ": ", grade_one({b}, a).reason));
}

}  // namespace ucas
