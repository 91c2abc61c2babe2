#include "base/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace ucas {

size_t terminal_width(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

size_t output_width() { return ::isatty(STDOUT_FILENO) == 1 ? terminal_width(STDOUT_FILENO) : 0; }

}  // namespace ucas
