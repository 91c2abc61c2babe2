// What it takes to write on a terminal: its size, how many cells a text takes, small charts out of characters, and a
// block of lines that rewrites itself in place. No full screen and no alternate screen: what scrolled above stays.
// Text from files or models goes through visible(): nothing in it can move the cursor or change the terminal.
// Threads: any; a LiveBlock belongs to one lock of its user.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucas {

struct TerminalSize {
  size_t columns = 100, rows = 24;
};
TerminalSize terminal_size(int descriptor);  // the defaults where it is none
size_t output_width();                       // columns of standard output; 0 where it is no terminal

bool colors_wanted();   // NO_COLOR is not set (https://no-color.org)
bool locale_is_utf8();  // LC_ALL, LC_CTYPE or LANG says so

// printable() of base/str for one line of a terminal: invisible and direction-changing characters are escaped, too.
// Without UTF-8 all that is not ASCII is.
std::string visible(std::string_view text, bool utf8);
// Cells that the text takes, at most: wide characters two, all others one.
size_t cells(std::string_view text);
// The text in at most `width` cells: its end, or its middle, gives way to "...".
std::string fit(std::string_view text, size_t width);
std::string fit_middle(std::string_view text, size_t width);

// One character a cell, lowest to highest value; more values than cells are averaged, unknown ones (NaN) leave a gap.
std::string sparkline(std::span<const double> values, size_t width, bool utf8);
std::string progress_bar(double share, size_t width, bool utf8);

enum class Ink { plain, strong, faint, good, bad, alarm };
struct Inked {
  std::string text;
  Ink ink = Ink::plain;
};
using InkedLine = std::vector<Inked>;
std::string plain_text(const InkedLine& line);
InkedLine fit(const InkedLine& line, size_t width);

// Lines at the bottom of a terminal. Each draw is one write, after which the cursor stands at the start of the line
// below the block and every mode is as it was: a program that dies leaves nothing to mend.
class LiveBlock {
 public:
  using Write = std::function<void(const std::string&)>;
  LiveBlock(Write write, bool colors) : write_(std::move(write)), colors_(colors) {}

  // Replaces what stands there; lines are cut to the size.
  void draw(const std::vector<InkedLine>& lines, TerminalSize size);
  // A message of its own lines, which stays above the block.
  void print_above(const std::string& message, TerminalSize size);
  // What stands there is left alone: the next draw begins on the cursor's line (after others wrote on the terminal).
  void leave() { lines_.clear(); }

 private:
  std::string up(TerminalSize size) const;
  std::string block() const;
  Write write_;
  bool colors_;
  std::vector<InkedLine> lines_;  // as drawn
  size_t columns_ = 0;            // of the terminal then
};

}  // namespace ucas
