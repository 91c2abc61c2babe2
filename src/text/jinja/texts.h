// What templates do to texts, with every character keeping its origin.
#pragma once

#include <optional>
#include <vector>

#include "text/jinja/value.h"

namespace ucas::jinja {

// Without the characters of `chars` (nullptr: white space) at its begin, its end or both.
MarkedText stripped(const MarkedText& text, const MarkedText* chars, bool left, bool right);
MarkedText replaced(const MarkedText& text, const MarkedText& old, const MarkedText& by, int64_t most, Meter& meter);
// As Python's split(): at `by` (nullptr: at white space), at most `most` times (-1: any), from the left or the right.
std::vector<MarkedText> split_text(const MarkedText& text, const MarkedText* by, int64_t most, bool from_right,
                                   Meter& meter);
std::vector<MarkedText> lines_of(const MarkedText& text);    // Python's splitlines()
enum class Case { upper, lower, title, capitalize, words };  // words: Jinja's filter title
// A fault for letters beyond ASCII that have cases.
MarkedText in_case(const MarkedText& text, Case form);

}  // namespace ucas::jinja
