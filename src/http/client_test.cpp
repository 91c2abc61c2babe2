// Replies that have no end: of a server of this process, which writes them by hand.
#include "http/client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/str.h"

namespace ucas {
namespace {

// Answers one request by `write(connection)`, until that comes back.
class RawServer {
 public:
  explicit RawServer(std::function<void(int)> write) : listener_(listen_on_loopback(0)) {
    thread_ = std::thread([this, write = std::move(write)] {
      connection_ = ::accept(listener_.fd, nullptr, nullptr);
      std::string request(4096, '\0');
      if (::recv(connection_, request.data(), request.size(), 0) > 0) write(connection_);
    });
  }
  ~RawServer() {
    for (const int fd : {listener_.fd, connection_.load()}) ::shutdown(fd, SHUT_RDWR);
    thread_.join();
    for (const int fd : {listener_.fd, connection_.load()}) ::close(fd);
  }
  Url address() const { return parse_url(str("http://127.0.0.1:", listener_.port)); }

 private:
  Listener listener_;
  std::atomic<int> connection_{-1};
  std::thread thread_;
};

bool say(int connection, const std::string& text) {
  return ::send(connection, text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
}

TEST(http_client, an_address_has_a_host_a_port_and_a_path_and_nothing_else) {
  const Url url = parse_url("https://[::1]:8443/v1/");
  EXPECT_EQ(std::tie(url.tls, url.host, url.port, url.path), std::tuple(true, "::1", 8443, "/v1"));
  EXPECT_EQ(url.text(), "https://[::1]:8443/v1");
  EXPECT_EQ(parse_url("http://host").text(), "http://host");
  for (const char* text : {"ftp://x", "http://", "http://:80", "http://a:0", "http://a:99999", "http://a:b",
                           "http://[::1", "http://a/?x", "http://a/b c", "http://me:secret@a"}) {
    EXPECT_THROW(parse_url(text), Error) << text;
  }
}

TEST(http_client, a_reply_of_a_byte_now_and_then_ends_with_the_time_of_a_whole_one) {
  const RawServer server([](int connection) {
    say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (say(connection, "x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  HttpClient client(server.address(), 0.5);
  const HttpReply reply = client.get("/");
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.failure, "no whole reply in time");
}

TEST(http_client, a_head_without_an_end_is_left_before_it_fills_the_memory) {
  for (const bool one_line : {true, false}) {
    size_t sent = 0;
    {
      const RawServer server([&](int connection) {
        say(connection, "HTTP/1.1 200 OK\r\nX: ");
        std::string more(1 << 16, 'x');
        for (size_t i = 0; i + 64 <= more.size() && !one_line; i += 64) more.replace(i, 5, "\r\nY: ");
        while (sent < (size_t{1} << 32) && say(connection, more)) sent += more.size();
      });
      HttpClient client(server.address(), 1000);
      const HttpReply reply = client.get("/");
      EXPECT_EQ(reply.status, 0);
      EXPECT_EQ(reply.failure, "the reply was too long");
    }
    EXPECT_LT(sent, size_t{1} << 31) << "it did not read on";
  }
}

TEST(http_client, a_body_beyond_the_limit_fails) {
  const RawServer server([](int connection) {
    say(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n");
    while (say(connection, std::string(1 << 20, 'x'))) {
    }
  });
  HttpClient client(server.address(), 1000);
  EXPECT_EQ(client.get("/").failure, "the reply was too long");
}

}  // namespace
}  // namespace ucas
