#include "verify/audit/explain.h"

#include "base/str.h"
#include "verify/math/read/expr.h"
#include "verify/math/read/extract.h"
#include "verify/math/read/parser.h"
#include "verify/registry.h"

namespace ucas {

namespace {

constexpr size_t kShown = 1000;  // bytes of a text

const char* name_of(math::ParseStatus status) {
  constexpr const char* names[] = {"ok", "empty", "unparseable", "over budget"};
  return names[static_cast<int>(status)];
}

Reading read(std::string_view text, bool is_response, Extract extract) {
  Reading reading;
  if (is_response) {
    math::Extracted extracted = math::extract_answer(text, extract);
    reading.how = extracted.how;
    if (!extracted.found) {
      reading.tree = "nothing";
      return reading;
    }
    text = extracted.answer;
  }
  reading.text = text.substr(0, kAnswerLimit);
  math::ParseOptions options;
  options.explain = true;
  math::ParseResult parsed = math::parse_math(text, options);
  reading.rewrites = std::move(parsed.rewrites);
  if (parsed.status == math::ParseStatus::ok) {
    reading.tree = math::to_string(parsed.tree);
  } else {
    reading.tree = str(name_of(parsed.status), parsed.reason.empty() ? "" : ": ", parsed.reason);
  }
  return reading;
}

void add_lines(std::vector<std::string>& lines, const char* name, const Reading& reading) {
  lines.push_back(str(pad_right(name, 9), printable(reading.text, kShown),
                      reading.how.empty() ? "" : str("  (", printable(reading.how, kShown), ")")));
  for (const std::string& rewrite : reading.rewrites) lines.push_back(str("  rewrite  ", printable(rewrite, kShown)));
  lines.push_back(str("  read as  ", printable(reading.tree, kShown)));
}

}  // namespace

Explanation explain(const Answer& answer, Extract extract) {
  Explanation result;
  extract = answer.extract.value_or(extract);
  if (answer.gold != nullptr) {
    for (const std::string& gold : *answer.gold) {
      result.gold.push_back(read(gold, answer.math.gold_is_response, Extract::lenient));
    }
  }
  result.answer = read(answer.response, true, extract);
  result.verdict = make_grader(GraderKind::math, extract)->grade({&answer, 1}).front();
  return result;
}

std::vector<std::string> to_lines(const Explanation& explanation) {
  std::vector<std::string> lines;
  for (const Reading& gold : explanation.gold) add_lines(lines, "gold", gold);
  add_lines(lines, "answer", explanation.answer);
  lines.push_back(str(pad_right("verdict", 9), name_of(explanation.verdict.kind), ": ", explanation.verdict.reason));
  return lines;
}

}  // namespace ucas
