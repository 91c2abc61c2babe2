#include "support/algorithm_cases.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "support/case_kinds.h"

namespace ucas::testing {

namespace {

constexpr const char* kEngineBinary = "ucas-tests-engine";

void validate_case(const Json& c, const std::string& where) {
  if (!c.is_object()) throw Error(ErrorKind::schema, str(where, ": expected an object"));
  for (const char* key : {"id", "method", "variant"}) {
    if (!c.contains(key) || !c.at(key).is_string())
      throw Error(ErrorKind::schema, str(where, ": ", key, " must be a text"));
  }
  for (const char* key : {"inputs", "expected"}) {
    if (!c.contains(key) || !c.at(key).is_object())
      throw Error(ErrorKind::schema, str(where, ": ", key, " must be an object"));
  }
}

Json read_cases(const std::string& path) {
  Json file = read_json(path, int64_t{64} << 20);
  if (!file.is_object() || !file.contains("cases") || !file.at("cases").is_array()) {
    throw Error(ErrorKind::schema, str(path, ": expected an object with a list \"cases\" (schema 1)"));
  }
  if (file.contains("schema") && file.at("schema") != 1) {
    throw Error(ErrorKind::schema, str(path, ": schema is ", printable(file.at("schema").dump(), 20), ", expected 1"));
  }
  size_t number = 0;
  for (const Json& c : file.at("cases")) validate_case(c, str(path, ": case ", ++number));
  return file;
}

void list_leftovers(const CaseRun& run, CaseReport& report) {
  if (auto keys = run.uncompared(); !keys.empty()) report.fail(str("nothing compares expected ", join(keys, ", ")));
  if (auto keys = run.unread(); !keys.empty()) report.fail(str("nothing reads input ", join(keys, ", ")));
}

CaseResult run_one(const Json& c, const std::map<std::string, CaseCheck>& more, Tolerance tolerance) {
  CaseResult result{c.at("id"), c.at("method"), c.at("variant"), "", CaseOutcome::not_covered, 0};
  CaseReport report(tolerance);
  try {
    auto own = more.find(result.id);
    if (own == more.end()) own = more.find(result.method);
    if (own != more.end()) {
      own->second(c, report);
    } else {
      CaseRun run(c, report);
      check_case(run);
      list_leftovers(run, report);
    }
    if (report.compared() == 0) report.fail("nothing was compared");
  } catch (const NotCovered& reason) {
    result.detail = reason.why;
    return result;
  } catch (const std::exception& error) {
    report.fail(error.what());
  }
  result.outcome = report.failure().empty() ? CaseOutcome::passed : CaseOutcome::failed;
  result.detail = report.failure();
  result.worst = report.worst();
  return result;
}

std::string scientific(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", x);
  return text;
}

struct Tally {
  int cases = 0, passed = 0, failed = 0, not_covered = 0;
  double worst = 0;
  void add(const CaseResult& result) {
    cases += 1;
    passed += result.outcome == CaseOutcome::passed;
    failed += result.outcome == CaseOutcome::failed;
    not_covered += result.outcome == CaseOutcome::not_covered;
    worst = std::max(worst, result.worst);
  }
};

std::string directory_of_this_binary() {
  char path[PATH_MAX];
  ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return "";
  std::string text(path, static_cast<size_t>(size));
  return text.substr(0, text.rfind('/'));
}

}  // namespace

std::map<std::string, CaseKind>& case_kinds() {
  static std::map<std::string, CaseKind> kinds;
  return kinds;
}

std::vector<CaseResult> run_algorithm_cases(const std::string& path, const std::map<std::string, CaseCheck>& more,
                                            Tolerance tolerance) {
  std::vector<CaseResult> results;
  Json file = read_cases(path);
  for (const Json& c : file.at("cases")) results.push_back(run_one(c, more, tolerance));
  return results;
}

std::string case_table(const std::vector<CaseResult>& results) {
  std::vector<std::string> order;
  std::map<std::string, Tally> by_method;
  Tally all;
  for (const CaseResult& result : results) {
    if (!by_method.contains(result.method)) order.push_back(result.method);
    by_method[result.method].add(result);
    all.add(result);
  }
  std::string text =
      str(pad_right("method", 24), pad_left("cases", 6), pad_left("passed", 8), "  largest difference\n");
  for (const std::string& method : order) {
    const Tally& tally = by_method[method];
    bool ran = tally.cases > tally.not_covered;
    text += str(pad_right(printable(method, 40), 24), pad_left(str(tally.cases), 6), pad_left(str(tally.passed), 8),
                "  ", ran ? scientific(tally.worst) : "-", "\n");
  }
  for (const CaseResult& result : results) {
    if (result.outcome != CaseOutcome::failed) continue;
    text += str("FAILED ", printable(result.id), " (", printable(result.method), ", ", printable(result.variant),
                "): ", printable(result.detail, 400), "\n");
  }
  for (const std::string& method : order) {
    if (int count = by_method[method].not_covered; count > 0) {
      text += str("not covered: ", printable(method, 40), ", ", count, count == 1 ? " case" : " cases", "\n");
    }
  }
  return text + str(all.cases, " cases: ", all.passed, " passed, ", all.failed, " failed, ", all.not_covered,
                    " not covered; largest difference ", scientific(all.worst), "\n");
}

int algorithm_cases_main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s --algorithm-cases FILE\n", argv[0]);
    return kBadInput;
  }
  std::string engine = path_join(directory_of_this_binary(), kEngineBinary);
  if (!has_engine_cases() && access(engine.c_str(), X_OK) == 0) {
    execv(engine.c_str(), argv);
    std::fprintf(stderr, "%s cannot be started; its cases are not covered\n", engine.c_str());
  }
  try {
    std::vector<CaseResult> results = run_algorithm_cases(argv[2], {}, kContract);
    std::fputs(case_table(results).c_str(), stdout);
    if (results.empty()) throw Error(ErrorKind::schema, str(argv[2], ": no cases"));
    bool good = std::ranges::all_of(results, [](auto& r) { return r.outcome == CaseOutcome::passed; });
    return good ? kDone : kDiffers;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ucas-tests: %s\n", error.what());
    return kBadInput;
  }
}

std::vector<std::string> algorithm_case_files() {
  std::vector<std::string> files = {UCAS_SOURCE_DIR "/tests/goldens/algorithm_cases.json"};
  const char* data = std::getenv("UCAS_SHARED_DATA");
  std::string path = path_join(data != nullptr ? data : path_join(UCAS_SOURCE_DIR, "../shared/data"),
                               "../design/algorithm-cases.json");
  if (exists(path)) files.push_back(path);
  return files;
}

}  // namespace ucas::testing
