#include "http/received.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ucas {

int64_t bytes_received(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (socket < 0 || ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

}  // namespace ucas
