// How much has been read of a TCP connection. Apart, as the system's two headers of TCP cannot be included together.
#pragma once

#include <cstdint>

namespace ucas {

int64_t bytes_read(int socket);  // -1: it is none

}  // namespace ucas
