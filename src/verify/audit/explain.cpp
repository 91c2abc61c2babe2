#include "verify/audit/explain.h"

#include <algorithm>
#include <vector>

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

constexpr size_t kExamples = 3, kTailBytes = 80;

const char* place_of(Extract extract) {
  switch (extract) {
    case Extract::strict:
      return "the last \\boxed{}";
    case Extract::lenient:
      return "a box, else the usual phrases";
    case Extract::answer_tag:
      return "the last \\boxed{} inside <answer>..</answer>";
    case Extract::bare:
      break;
  }
  return "the whole text";
}

// The end of a response, where answers stand, on one line.
std::string tail_of(std::string_view response) {
  const std::string_view text = trim(response);
  if (text.empty()) return "\"\" (empty)";
  size_t from = text.size() > kTailBytes ? text.size() - kTailBytes : 0;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return str("\"", from > 0 ? ".." : "", printable(text.substr(from), 4 * kTailBytes), "\"");
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

std::string unreadable_in_words(double share, int64_t of, std::span<const std::string_view> responses,
                                GraderKind grader, Extract used, const std::string& option) {
  std::string text = str("no answer was found in ", percent(share), " of ", grouped(of), " responses");
  const bool reads_text = grader == GraderKind::math || grader == GraderKind::numeric;
  if (reads_text) {
    text += str(" (", option, " ", word_of(used), ": ", place_of(used), ")");
    for (Extract other : {Extract::lenient, Extract::strict, Extract::answer_tag}) {
      if (other == used) continue;
      const auto found = std::ranges::count_if(
          responses, [&](std::string_view response) { return math::extract_answer(response, other).found; });
      if (found == 0) continue;
      text += str("; ", grouped(found), " of ", grouped(std::ssize(responses)), " of these hold one for ", option, " ",
                  word_of(other));
      break;
    }
  } else {
    text += str(" (grader ", word_of(grader), ")");
  }
  std::vector<std::string> shown;
  for (size_t i = 0; i < responses.size() && shown.size() < kExamples;
       i += std::max<size_t>(1, responses.size() / kExamples)) {
    shown.push_back(tail_of(responses[i]));
  }
  return shown.empty() ? text : str(text, "; such as ", join(shown, ", "));
}

}  // namespace ucas
