// What a failed UCAS_CHECK (base/error.h) does where the code runs inside another program, whose process is not ours to
// end: the Python package. Without a handler it prints the place and aborts.
#pragma once

#include <string>

namespace ucas {

// Called with "FILE:LINE: message (condition)"; must throw. Set once, before any thread; nullptr: abort.
using OnFailedCheck = void (*)(const std::string& what);
void on_failed_check(OnFailedCheck handler);

}  // namespace ucas
