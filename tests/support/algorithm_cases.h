// Runs worked numeric cases {id, method, variant, inputs, expected} against the program. The file's figures are rounded
// to 6 decimals. Cases whose formula lives in another library are checked by functions that the caller brings.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json.h"

namespace ucas::testing {

// Compares numbers of any nesting; remembers the first that is too far off and the largest difference of all.
class CaseReport {
 public:
  // |got - expected| <= tolerance * (1 + |expected|)
  explicit CaseReport(double tolerance = 2e-6) : tolerance_(tolerance) {}
  void close(const std::string& what, double got, double expected);
  void close(const std::string& what, const std::vector<double>& got, const Json& expected);  // flattened
  void close(const std::string& what, const std::vector<float>& got, const Json& expected);
  void fail(const std::string& why);

  int compared() const { return compared_; }
  double worst() const { return worst_; }
  const std::string& failure() const { return failure_; }

 private:
  double tolerance_, worst_ = 0;
  int compared_ = 0;
  std::string failure_;
};

enum class CaseOutcome { passed, failed, not_covered };
struct CaseResult {
  std::string id, method, variant, detail;
  CaseOutcome outcome = CaseOutcome::not_covered;
  double worst = 0;
};

using CaseCheck = std::function<void(const Json& test_case, CaseReport& report)>;
// `more`: checks by the case's id or method, tried before the built-in ones.
std::vector<CaseResult> run_algorithm_cases(const std::string& path, const std::map<std::string, CaseCheck>& more = {});

// The design sheet's file beside the shared data, or "" where it is absent.
std::string shared_algorithm_cases();

}  // namespace ucas::testing
