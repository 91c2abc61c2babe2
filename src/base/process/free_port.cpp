#include "base/process/free_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

constexpr int64_t kFirst = 10000, kLast = 19999;
constexpr int kTries = 100;

// 0, or errno.
int try_port(int64_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  const int error = ::bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 ? 0 : errno;
  ::close(socket);
  return error;
}

}  // namespace

int64_t free_port() {
  std::random_device source;
  std::uniform_int_distribution<int64_t> ports(kFirst, kLast);
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    const int64_t port = ports(source);
    error = try_port(port);
    if (error == 0) return port;
  }
  throw Error(ErrorKind::io, str("no free TCP port of ", kFirst, " to ", kLast, ": ", std::strerror(error)),
              kIoFailure);
}

}  // namespace ucas
