// The graders, one row each: X(kind, name in options and files). A row without its make_KIND_grader() fails to link.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict.h"
#include "verify/grader.h"
#include "verify/sandbox/sandbox.h"

// math       math/: the last box, decided by exact arithmetic
// letter     text_graders.h: the choice letter in the response
// choice     the same, of a response that the evaluation makes from the choice of greatest log-prob
// numeric    numeric.cpp: a number within a tolerance
// countdown  countdown.cpp: an expression that reaches a target with given numbers
// code       code/code_grader.h: a program, run in a sandbox against tests
#define UCAS_GRADERS(X)     \
  X(math, "math")           \
  X(letter, "letter")       \
  X(choice, "choice")       \
  X(numeric, "numeric")     \
  X(countdown, "countdown") \
  X(code, "code")

namespace ucas {

// Options of graders.
struct GraderSetup {
  GraderSetup(Extract extract = Extract::strict, code::CodeOptions code = {}, double tolerance = 1e-4)  // NOLINT
      : extract(extract), code(std::move(code)), tolerance(tolerance) {}
  Extract extract;  // where an answer is looked for that does not say it itself
  code::CodeOptions code;
  double tolerance;  // of numeric, relative
};

#define UCAS_DECLARE(kind, name) std::unique_ptr<Grader> make_##kind##_grader(const GraderSetup& setup);
UCAS_GRADERS(UCAS_DECLARE)
#undef UCAS_DECLARE

#define UCAS_KIND(kind, name) kind,
enum class GraderKind : uint8_t { UCAS_GRADERS(UCAS_KIND) };
#undef UCAS_KIND

#define UCAS_NAME(kind, name) name,
constexpr auto names(GraderKind) { return std::to_array<const char*>({UCAS_GRADERS(UCAS_NAME)}); }
#undef UCAS_NAME

std::unique_ptr<Grader> make_grader(GraderKind kind, const GraderSetup& setup = {});

// Which grader gave a verdict. Evaluations state it (records/evaluation.h), so that verdicts of different times can be
// distinguished.

// Raised whenever the verdict on any answer may change.
constexpr int kGraderVersion = 7;

// Who grades what, where problems of several kinds are in one run: a standard grader, and one for each data source that
// has its own. Read by evaluate/score, sharding/agreement and train/collect/reward.

struct Graders {
  std::shared_ptr<const Grader> standard;
  std::map<std::string, std::shared_ptr<const Grader>> of;  // sources with one of their own

  const Grader& for_source(const std::string& source) const;
};

// "SOURCE=GRADER" each. Error(ErrorKind::config, "WHERE: ...") where one is not of that form or not a grader.
std::map<std::string, GraderKind> parse_graders(const std::vector<std::string>& by_source, const std::string& where);
Graders make_graders(GraderKind standard, const std::map<std::string, GraderKind>& by_source, const GraderSetup& setup);

// A response to one of the problems.
struct GradeItem {
  const Problem* problem = nullptr;
  std::string_view response;
};
// One verdict per item, in order, by the grader of its problem's source; each grader gets all of its own at once.
std::vector<Verdict> grade_all(const Graders& graders, std::span<const GradeItem> items);

// A right answer that its grader cannot read, and a grader that cannot work here, are found before the first response:
// Error(ErrorKind::data_line, "sandbox").
void check_golds(const Graders& graders, std::span<const Problem> problems);

// Where an answer is looked for, as options say it: one of Extract, or "auto", which the prompt decides
// (config/policy_options.h).

enum class ExtractOption : uint8_t { automatic, strict, lenient, answer_tag };
constexpr std::array<const char*, 4> names(ExtractOption) { return {"auto", "strict", "lenient", "answer_tag"}; }

// nullopt: auto.
constexpr std::optional<Extract> said(ExtractOption option) {
  if (option == ExtractOption::automatic) return std::nullopt;
  return static_cast<Extract>(static_cast<int>(option) - 1);
}
constexpr ExtractOption option_of(Extract extract) {
  return static_cast<ExtractOption>(static_cast<int>(extract) + 1);  // bare is no option
}

}  // namespace ucas
