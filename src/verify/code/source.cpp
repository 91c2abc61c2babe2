#include "verify/code/source.h"

#include <algorithm>

#include "base/str.h"
#include "verify/math/read/extract.h"

namespace ucas::code {

namespace {

bool is_python(std::string_view language) {
  return language.empty() || language == "python" || language == "py" || language == "python3" || language == "Python";
}

// Blocks are told by their opening lines in order; one that never closes (a response cut short) is none.
std::optional<std::string_view> last_block(std::string_view text, bool& fences) {
  std::optional<std::string_view> found;
  bool open = false, python = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(text.substr(at, end - at));
    if (line.starts_with("```")) {
      fences = true;
      if (open && line == "```") {
        if (python) found = text.substr(begin, at - begin);
        open = false;
      } else if (!open) {
        open = true;
        python = is_python(trim(line.substr(3)));
        begin = std::min(end + 1, text.size());
      }
    }
    at = end + 1;
  }
  return found;
}

}  // namespace

std::optional<std::string_view> find_source(std::string_view response, Extract extract) {
  if (extract == Extract::bare) return trim(response).empty() ? std::nullopt : std::optional(response);
  if (extract == Extract::answer_tag) {
    const auto tag = math::last_answer_tag(response);
    if (!tag) return std::nullopt;
    response = *tag;
  } else {
    response = math::without_thoughts(response);
  }
  bool fences = false;
  const auto block = last_block(response, fences);
  if (block && !trim(*block).empty()) return block;
  if (extract != Extract::lenient || fences || trim(response).empty()) return std::nullopt;
  return response;
}

}  // namespace ucas::code
