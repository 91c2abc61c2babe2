// A chat template as words: its text between tags, cut as trim_blocks, lstrip_blocks and the signs "-" and "+" in tags
// say, and what stands within tags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ucas::jinja {

struct Word {
  enum class Kind : uint8_t {
    text,
    open_output,
    close_output,
    open_tag,
    close_tag,
    name,
    quoted,
    whole,
    real,
    sign,
    end
  };
  Kind kind;
  std::string text;  // of a quoted one, what it stands for
  int line;
};

// Ends with a word of kind `end`. Error(ErrorKind::config, "WHERE:LINE: ...").
std::vector<Word> words_of(std::string_view source, const std::string& where);

}  // namespace ucas::jinja
