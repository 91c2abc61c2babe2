// An HTTP server: paths, each with a function that answers. A reply is whole, or comes in pieces as they are made.
// Threads: the functions are called from threads of the server's own, several at a time; bind() and run() from one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/client.h"

namespace ucas {

// False: the client has left.
using WritePiece = std::function<bool(std::string_view)>;

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::function<void(const WritePiece&)> pieces = {};  // the body, where it comes in pieces
};

class HttpServer {
 public:
  // `connections`: how many are served at once; further ones wait.
  explicit HttpServer(int64_t connections);
  ~HttpServer();
  // A body of more than 1 MiB is refused (413), a packed one (415), one in chunks (411), and a head of more than 64 KiB
  // or 128 lines (431). So is what comes too slowly (408), has lines that HTTP does not know, no length, or two keys
  // (400, 411): the connection is closed. Names of headers are in lower case. Who has read the body may take it.
  using Handler = std::function<HttpAnswer(std::string& body, const HttpHeaders& headers)>;
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
  void run();   // until stop(), and until every active reply has ended
  void stop();  // from any thread, after run() was called in another

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ucas
