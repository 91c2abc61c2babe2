// An HTTP server: paths, each with a function that answers. A reply is whole, or comes in pieces as they are made.
// Threads: the functions are called from threads of the server's own, several at a time; bind() and run() from one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"

namespace ucas {

// False: the client has left.
using WritePiece = std::function<bool(std::string_view)>;

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::function<void(const WritePiece&)> pieces = {};  // the body, where it comes in pieces
};

// The body of a request. Of those that take much memory few are there at once: who has read one drops it.
class HttpBody {
 public:
  HttpBody() = default;
  ~HttpBody() { drop(); }
  HttpBody(const HttpBody&) = delete;
  HttpBody& operator=(const HttpBody&) = delete;
  const std::string& text() const { return text_; }
  // More of it. False: others held their places for too long.
  bool append(std::string_view bytes);
  void drop();  // its memory goes back to the system, and so does what was made of it and freed

 private:
  std::string text_;
  size_t most_ = 0;  // bytes that it had
  bool has_place_ = false;
};

class HttpServer {
 public:
  // `connections`: how many are served at once; further ones wait.
  explicit HttpServer(int64_t connections);
  ~HttpServer();
  // A body of more than 64 MiB, unpacked where it is packed, is refused (413), and a head of more than 64 KiB or 128
  // lines (431). So is what comes too slowly (408), has lines or chunks that HTTP does not know, no length, or two keys
  // (400, 411): the connection is closed. Names of headers are in lower case.
  using Handler = std::function<HttpAnswer(HttpBody& body, const HttpHeaders& headers)>;
  void get(const std::string& path, Handler handler);
  void post(const std::string& path, Handler handler);
  // Asked before the body of a request is read, and of every path: what it answers refuses the request.
  using Guard = std::function<std::optional<HttpAnswer>(const std::string& path, const HttpHeaders& headers)>;
  void first(Guard guard);
  // What other paths, and requests that are no HTTP, are answered.
  void otherwise(std::function<HttpAnswer(int status)> handler);
  // The port, also where 0 asks for a free one. Error(ErrorKind::server) where the address is taken or not this
  // machine's.
  int64_t bind(const std::string& host, int64_t port);
  void run();   // until stop(), and until every reply under way has ended
  void stop();  // from any thread, after run() was called in another

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ucas
