#include "verify/audit/explain.h"

#include <algorithm>
#include <vector>

#include "base/str.h"
#include "verify/math/read/extract.h"

namespace ucas {

namespace {

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
