#include "http/received.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace ucas {

int64_t bytes_read(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  int waiting = 0;
  if (socket < 0 || ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return -1;
  if (::ioctl(socket, FIONREAD, &waiting) != 0) return -1;
  return static_cast<int64_t>(info.tcpi_bytes_received) - waiting;
}

}  // namespace ucas
