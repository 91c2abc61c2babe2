#include "http/server.h"

#include <sys/socket.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/str.h"
#include "http/library.h"

namespace ucas {

namespace {

constexpr size_t kBodyLimit = size_t{64} << 20;  // bytes
constexpr time_t kIdle = 2;                      // seconds that a connection without a request is kept

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void give(HttpAnswer answer, httplib::Response& response) {
  response.status = answer.status;
  if (!answer.pieces) {
    response.set_content(answer.body, answer.type.c_str());
    return;
  }
  response.set_chunked_content_provider(answer.type.c_str(),
                                        [pieces = std::move(answer.pieces)](size_t, httplib::DataSink& sink) {
                                          bool read = true;
                                          pieces([&](std::string_view piece) {
                                            read = read && sink.is_writable() && sink.write(piece.data(), piece.size());
                                            return read;
                                          });
                                          if (read) sink.done();
                                          return read;
                                        });
}

httplib::Server::Handler called(HttpServer::Handler handler) {
  return [handler = std::move(handler)](const httplib::Request& request, httplib::Response& response) {
    HttpHeaders headers;
    for (const auto& [name, value] : request.headers) headers[lower_case(name)] = value;
    give(handler(request.body, headers), response);
  };
}

}  // namespace

struct HttpServer::Impl {
  httplib::Server server;
  std::atomic<bool> ended{false};
};

HttpServer::HttpServer(int64_t connections) : impl_(std::make_unique<Impl>()) {
  httplib::Server& server = impl_->server;
  server.new_task_queue = [connections] { return new httplib::ThreadPool(static_cast<size_t>(connections)); };
  // The library's own choice lets two servers have one port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_tcp_nodelay(true);
  server.set_payload_max_length(kBodyLimit);
  server.set_keep_alive_timeout(kIdle);
  server.set_keep_alive_max_count(1 << 30);
  server.set_write_timeout(30);
}
HttpServer::~HttpServer() = default;

void HttpServer::get(const std::string& path, Handler handler) { impl_->server.Get(path, called(std::move(handler))); }
void HttpServer::post(const std::string& path, Handler handler) {
  impl_->server.Post(path, called(std::move(handler)));
}

void HttpServer::otherwise(std::function<HttpAnswer(int status)> handler) {
  impl_->server.set_error_handler([handler = std::move(handler)](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) give(handler(response.status), response);
  });
}

int64_t HttpServer::bind(const std::string& host, int64_t port) {
  httplib::Server& server = impl_->server;
  const int got = port == 0 ? server.bind_to_any_port(host.c_str())
                            : (server.bind_to_port(host.c_str(), static_cast<int>(port)) ? static_cast<int>(port) : -1);
  if (got < 0) {
    throw Error("server",
                str(printable(host, 200), ":", port, ": cannot listen there: the port is taken, or the address is ",
                    "not this machine's; choose another --port or --host"));
  }
  return got;
}

void HttpServer::run() {
  impl_->server.listen_after_bind();
  impl_->ended = true;
}
void HttpServer::stop() {
  while (!impl_->server.is_running() && !impl_->ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  impl_->server.stop();
}

}  // namespace ucas
