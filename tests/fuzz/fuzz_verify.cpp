// libFuzzer target of the verifier: no input crashes it, leaks, overflows, takes seconds, or gets two verdicts.
// Input: one byte of options, the gold up to the first 0x1f, the response after it. `make fuzz` builds and runs it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "verify/registry.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_verify: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const std::unique_ptr<ucas::Grader> grader = ucas::make_grader(ucas::GraderKind::math);
  const uint8_t options = data[0];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t split = text.find('\x1f');
  const std::vector<std::string> gold = {text.substr(0, split)};
  const std::string response = split == std::string::npos ? gold[0] : text.substr(split + 1);

  ucas::Answer answer{response, &gold};
  answer.extract = static_cast<ucas::Extract>(options % 3);
  answer.math.gold_is_response = (options & 4) != 0;
  answer.math.letter = (options & 8) != 0;
  answer.math.precision = (options & 16) != 0 ? options >> 5 : -1;
  std::vector<ucas::Verdict> first = grader->grade({&answer, 1});
  std::vector<ucas::Verdict> second = grader->grade({&answer, 1});
  require(first.size() == 1 && second.size() == 1, "not one verdict per answer");
  require(first[0].kind == second[0].kind && first[0].reason == second[0].reason, "two verdicts for one answer");
  require(!first[0].reason.empty(), "a verdict without a reason");

  ucas::Answer self{gold[0], &gold};
  self.extract = ucas::Extract::bare;
  std::vector<ucas::Verdict> same = grader->grade({&self, 1});
  require(same[0].kind != ucas::VerdictKind::unequal, "a text is unequal to itself");
  first.push_back(same[0]);
  grader->classify(first);
  return 0;
}
