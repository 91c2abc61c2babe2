// The bytes of one connection to the server, read and written with limits of time, and of the size of a request's head:
// the library itself reads heads of any size, for as long as one byte follows another. For the files of this folder
// alone.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "serve/http/library.h"

namespace ucas {

class Connection final : public httplib::Stream {
 public:
  static constexpr size_t kHeadBytes = size_t{64} << 10, kHeadLines = 128;
  static constexpr int kReadSeconds = 5, kWriteSeconds = 30;
  // Of a head as a whole; of a body, and for each so many bytes of it a second more.
  static constexpr int kHeadSeconds = 5, kBodySeconds = 10;
  static constexpr int64_t kBytesPerSecond = int64_t{128} << 10;

  explicit Connection(socket_t socket) : socket_(socket) {}

  // Waits for the first byte of a request, unless `ended`.
  bool wait_for_request(int seconds, const std::function<bool()>& ended) {
    head_bytes_ = head_lines_ = line_ = 0;
    last_ = '\0';
    in_head_ = true;
    for (int left = seconds * 1000; left > 0 && !ended(); left -= kLookMilliseconds) {
      if (at_ < filled_ || ready(POLLIN, kLookMilliseconds)) {
        give_time(kHeadSeconds);
        return at_ < filled_ || fill() > 0;
      }
    }
    return false;
  }
  bool head_is_too_large() const { return too_large_; }
  bool is_too_slow() const { return too_slow_; }
  // From now on, for what is read next.
  void give_time(int seconds) { deadline_ = Clock::now() + std::chrono::seconds(seconds); }
  // What is left of the request is not read, so nothing can follow it on this connection.
  void leave_rest() { rest_ = true; }
  bool rest_is_left() const { return rest_ || too_large_ || too_slow_ || malformed_; }
  // The peer reads the reply before it learns that the connection is closed; what it still sends is thrown away.
  void close_after_reply() {
    ::shutdown(socket_, SHUT_WR);
    char thrown[4096];
    size_t bytes = 0;
    give_time(kThrownSeconds);
    while (bytes < kThrownBytes && ready(POLLIN, std::min(kThrownMilliseconds, milliseconds_left()))) {
      const ssize_t n = ::recv(socket_, thrown, sizeof thrown, 0);
      if (n <= 0) return;
      bytes += static_cast<size_t>(n);
    }
  }

  ssize_t read(char* out, size_t size) override {
    if (too_large_ || malformed_) return -1;
    if (at_ == filled_) {
      const int left = milliseconds_left();
      too_slow_ = left == 0 || !ready(POLLIN, std::min(kReadSeconds * 1000, left));
      if (too_slow_) return -1;
      const ssize_t n = fill();
      if (n <= 0) return n;
      if (!in_head_) deadline_ += std::chrono::microseconds(n * 1'000'000 / kBytesPerSecond);
    }
    size = std::min(size, filled_ - at_);
    if (in_head_) size = count_head(size);
    if (too_large_) return -1;
    std::memcpy(out, buffer_ + at_, size);
    at_ += size;
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* bytes, size_t size) override {
    if (!ready(POLLOUT, kWriteSeconds * 1000)) return -1;
    for (;;) {
      const ssize_t n = ::send(socket_, bytes, size, MSG_NOSIGNAL);
      if (n >= 0 || errno != EINTR) return n;
    }
  }
  using httplib::Stream::write;

  bool is_readable() const override { return at_ < filled_ || ready(POLLIN, 0); }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return socket_; }
  // Of some versions of the library; they override where it has them.
  bool is_writable() const { return ready(POLLOUT, kWriteSeconds * 1000) && is_peer_alive(); }
  void get_local_ip_and_port(std::string& ip, int& port) const { ip.clear(), port = 0; }
  bool wait_readable() const { return at_ < filled_ || ready(POLLIN, kReadSeconds * 1000); }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const { return 0; }
  bool is_peer_alive() const {
    char byte = 0;
    return !ready(POLLIN, 0) || ::recv(socket_, &byte, 1, MSG_PEEK) > 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLookMilliseconds = 50, kThrownMilliseconds = 500, kThrownSeconds = 2;
  static constexpr size_t kThrownBytes = size_t{16} << 20;
  int milliseconds_left() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, int64_t{1} << 30));
  }

  bool ready(short what, int milliseconds) const {
    pollfd one{socket_, what, 0};
    int n = 0;
    while ((n = ::poll(&one, 1, milliseconds)) < 0 && errno == EINTR) {
    }
    return n > 0;
  }

  ssize_t fill() {
    ssize_t n = 0;
    while ((n = ::recv(socket_, buffer_, sizeof buffer_, 0)) < 0 && errno == EINTR) {
    }
    at_ = 0;
    filled_ = n > 0 ? static_cast<size_t>(n) : 0;
    return n;
  }

  // How many of the next bytes may be given: up to the end of the head, or of a line without its \r.
  size_t count_head(size_t size) {
    for (size_t i = 0; i < size; ++i) {
      const char c = buffer_[at_ + i];
      too_large_ |= ++head_bytes_ > kHeadBytes;
      const bool returned = std::exchange(last_, c) == '\r';
      if (c == '\n') {
        if (!returned) {
          malformed_ = true;
          return i + 1;
        }
        if (line_ == 0 && head_lines_ > 0) {
          in_head_ = false;
          give_time(kBodySeconds);
          return i + 1;
        }
        line_ = 0;
        too_large_ |= ++head_lines_ > kHeadLines;
      } else if (c != '\r') {
        ++line_;
      }
    }
    return size;
  }

  const socket_t socket_;
  char buffer_[4096];
  size_t at_ = 0, filled_ = 0;
  bool in_head_ = true, too_large_ = false, too_slow_ = false, malformed_ = false, rest_ = false;
  size_t head_bytes_ = 0, head_lines_ = 0, line_ = 0;  // bytes of the line so far
  char last_ = '\0';                                   // byte of the head
  Clock::time_point deadline_;                         // of the head, or of what came of the body
};

}  // namespace ucas
