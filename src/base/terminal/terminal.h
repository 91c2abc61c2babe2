// How large a terminal is.
#pragma once

#include <cstddef>

namespace ucas {

size_t terminal_width(int descriptor);  // columns; 100 where it is no terminal
size_t output_width();                  // columns of standard output; 0 where it is no terminal

}  // namespace ucas
