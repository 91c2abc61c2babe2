// A TCP port for processes that are about to start.
#pragma once

#include <cstdint>

namespace ucas {

// A port of 10000 to 19999 that nothing on the loopback address has now. It is below those that Linux gives to outgoing
// connections (32768 up, ip_local_port_range), so that none of them takes it before the process that is told it
// listens. Error io (exit 74) where a hundred tries find none.
int64_t free_port();

}  // namespace ucas
