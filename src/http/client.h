// One connection to an HTTP server, kept open between requests. What goes wrong on the way is a value, never an error:
// who asks decides what is tried again.
// Threads: one per HttpClient; stop() from any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ucas {

// "http://HOST[:PORT][/PATH]" or https. Error(ErrorKind::usage) for anything else; user names and passwords in it are
// refused: they would end in logs and files.
struct Url {
  bool tls = false;
  std::string host;
  int64_t port = 0;
  std::string path;  // without a slash at its end; "" = the root

  std::string text() const;
};
bool is_url(const std::string& text);  // begins as one
Url parse_url(const std::string& text);

struct HttpReply {
  int status = 0;                              // 0: no reply came, `failure` says why
  std::string failure;                         // "connection refused", "timed out", "cut off" ..
  std::string body;                            // whole, unless `failure` says otherwise
  std::map<std::string, std::string> headers;  // names in lower case
};

using HttpHeaders = std::map<std::string, std::string>;

class HttpClient {
 public:
  // `timeout`: seconds that a whole reply may take, the connection included. A certificate is checked against the
  // system's authorities.
  HttpClient(const Url& server, double timeout);
  ~HttpClient();
  // `path` is appended to the server's own. A reply of more than 64 MiB fails, and a head of more than about 1 MiB.
  HttpReply get(const std::string& path, const HttpHeaders& headers = {});
  HttpReply post(const std::string& path, const std::string& json, const HttpHeaders& headers = {});
  // Ends the active request, which then fails; the next one begins afresh.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ucas
