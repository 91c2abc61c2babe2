#include "base/process/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

Listener listen_on_loopback(int64_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 && ::bind(fd, address, size) == 0 &&
      ::listen(fd, SOMAXCONN) == 0 && ::getsockname(fd, address, &size) == 0) {
    return {fd, ntohs(at.sin_port)};
  }
  const std::string why = std::strerror(errno);
  if (fd >= 0) ::close(fd);
  throw Error(ErrorKind::io, str("port ", port, " of 127.0.0.1 cannot be listened on: ", why), kIoFailure);
}

}  // namespace ucas
