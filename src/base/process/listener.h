// A TCP socket that processes of this host alone can reach, which is handed to the one that will answer on it.
#pragma once

#include <cstdint>

namespace ucas {

struct Listener {
  int fd = -1;
  int64_t port = 0;
};

// Listens on the loopback address; port 0: on a free one. Closed by exec. Error io (exit 74) where it cannot.
Listener listen_on_loopback(int64_t port);

}  // namespace ucas
