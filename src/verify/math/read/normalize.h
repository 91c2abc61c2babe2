// Answers without what LaTeX, Markdown and habit put around them, so that equal answers look alike more often.
// Linear in the length of the answer.
#pragma once

#include <string>
#include <string_view>

namespace ucas::math {

// Commands whose first letter some program took for an escape get it back: a form feed and "rac" is \\frac, a tab and
// "imes" \\times. The text itself where there are none, otherwise a view of `buffer`.
std::string_view restore_commands(std::string_view text, std::string& buffer);

// trim(), but for a blank in front that is such a letter: a tab before "an x" stays, so that an answer reads as the
// same text would as a gold answer.
std::string_view trim_answer(std::string_view text);

// Delimiters, sizes and spacing commands gone, one spelling per command and symbol, \text for every text command,
// single spaces: the form that numbers and units are read from.
std::string normalize(std::string_view answer);

// The key that two texts are compared by: normalised text without spaces, \text and needless braces; words in lower
// case.
std::string text_key(std::string_view normalized);

// Braces match and no control character or invalid UTF-8 is inside.
bool well_formed(std::string_view answer);

}  // namespace ucas::math
