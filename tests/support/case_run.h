// One worked case while it is checked: hands out its inputs, compares what the program makes of them, and in the end
// says which inputs nobody read and which expected figures nobody compared; both are failures.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/text/json.h"

namespace ucas::testing {

// |got - expected| <= absolute + relative |expected|
struct Tolerance {
  double absolute = 2e-6;
  double relative = 2e-6;
};
// What the algorithm sheet asks of float32 implementations, and what our arithmetic (float64 inside, float32 arrays)
// keeps on the committed cases.
constexpr Tolerance kContract{1e-4, 1e-4};
constexpr Tolerance kTight{2e-6, 2e-6};

// Compares numbers of any nesting; remembers the first that is too far off and the largest difference of all.
class CaseReport {
 public:
  explicit CaseReport(Tolerance tolerance = kTight) : tolerance_(tolerance) {}
  void close(const std::string& what, double got, double expected);
  void close(const std::string& what, const std::vector<double>& got, const Json& expected);  // flattened
  void close(const std::string& what, const std::vector<float>& got, const Json& expected);
  void fail(const std::string& why);

  int compared() const { return compared_; }
  double worst() const { return worst_; }
  const std::string& failure() const { return failure_; }

 private:
  Tolerance tolerance_;
  double worst_ = 0;
  int compared_ = 0;
  std::string failure_;
};

class CaseRun {
 public:
  // `test_case` must have id, method, variant, inputs, expected (algorithm_cases.cpp sees to it), and outlive this.
  CaseRun(const Json& test_case, CaseReport& report);

  const std::string& method() const { return method_; }
  const std::string& variant() const { return variant_; }
  CaseReport& report() { return report_; }

  // Inputs. A missing one is an Error that names it.
  bool has(const std::string& key) const;
  const Json& in(const std::string& key);
  double number(const std::string& key);
  double number(const std::string& key, double fallback);
  void ignore(const std::string& key) { read_.insert(key); }  // known, and without influence here
  std::vector<std::string> unread() const;
  void forget_options();  // numbers and texts count as unread again: for a second method

  // [B, T] arrays: `mask` says which slots are tokens (anywhere in the row), without one every row has one token.
  size_t rows();
  const std::vector<size_t>& slots(size_t row);  // where the tokens of a row are
  int64_t length(size_t row) { return static_cast<int64_t>(slots(row).size()); }
  std::vector<float> tokens(const std::string& key, size_t row);           // the valid slots of a row
  std::vector<double> valid(const Json& padded, const std::string& name);  // the valid slots of all rows
  double outside(const std::string& key, size_t row);                      // sum of its other slots
  std::vector<double> packed(const std::string& key);                      // those of an input

  // Expected figures. Each compares if the case has the figure, and marks it as compared.
  bool wants(const std::string& key) const;
  const Json& expected(const std::string& key);  // marks
  void number_is(const std::string& key, double got);
  void numbers_are(const std::string& key, const std::vector<double>& got);            // any shape, flattened
  void tokens_are(const std::string& key, std::span<const double> got);                // packed [N] against [B, T]
  void tokens_are(const std::string& key, std::span<const float> got);                 // the same
  void responses_are(const std::string& key, std::span<const double> got);             // [B]
  void each_token_is(const std::string& key, const std::vector<double>& by_response);  // [B] against [B] or [B, T]
  std::vector<std::string> uncompared() const;

 private:
  void compute_advantages();

  const Json& case_;
  std::string method_, variant_;
  CaseReport& report_;
  std::set<std::string> read_, compared_;
  bool shaped_ = false;
  std::vector<std::vector<size_t>> slots_;  // the valid slots of each row
};

// All numbers of any nesting in order; booleans count as 0 and 1. Throws Error on anything else.
std::vector<double> flat(const Json& value, const std::string& name);

}  // namespace ucas::testing
