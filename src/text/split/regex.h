// A regular expression as Hugging Face's tokenizers read it: Oniguruma, the library that they run, with its own syntax.
// Its \p{L}, \p{Lu} ... and \d are those of text/unicode (Unicode 16, as there), so that ids do not
// depend on which Oniguruma is installed; scripts, \w and [[:posix:]] are the library's. Threads: const functions may
// be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

class Regex {
 public:
  // Error(ErrorKind::unsupported) that starts with `where` when the library does not take the expression.
  Regex(const std::string& expression, const std::string& where);

  struct Match {
    size_t begin, end;
  };
  // The leftmost match that starts at `from` or later; look-behind sees what is before `from`. `text` must be UTF-8.
  // Error(ErrorKind::limit) when the expression goes back and forth over the text for too long.
  std::optional<Match> find(std::string_view text, size_t from) const;
  // All matches, one after the other; an empty one right after another match is none (Hugging Face's find_iter).
  std::vector<Match> find_all(std::string_view text) const;
  const std::string& expression() const { return expression_; }

 private:
  std::string expression_;
  std::shared_ptr<void> compiled_;
};

}  // namespace ucas
