#include "serve/http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/str.h"
#include "serve/http/connection.h"
#include "serve/http/library.h"

namespace ucas {

namespace {

constexpr size_t kBodyLimit = size_t{1} << 20;  // bytes
constexpr int kIdle = 2;                        // seconds that a connection without a request is kept
constexpr int kWaiting = 1024;                  // connections that the kernel keeps until one is free

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

HttpHeaders headers_of(const httplib::Request& request) {
  HttpHeaders headers;
  for (const auto& [name, value] : request.headers) headers[lower_case(name)] = value;
  return headers;
}

// The connection that this thread serves.
thread_local Connection* served = nullptr;

}  // namespace

// The library, with limits of a head and a queue of our own.
class BoundedServer final : public httplib::Server {
 public:
  void queue_connections() const { ::listen(svr_sock_, kWaiting); }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket);
    served = &connection;
    bool went_well = false;
    while (connection.wait_for_request(kIdle, [&] { return svr_sock_ == INVALID_SOCKET; })) {
      bool closed = false;
      went_well = one_request(*this, connection, closed);
      if (!went_well || closed || connection.rest_is_left()) break;
    }
    if (connection.rest_is_left()) connection.close_after_reply();
    served = nullptr;
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return went_well;
  }

  // As the versions of the library want it.
  template <class Self>
  static bool one_request(Self& self, Connection& connection, bool& closed) {
    if constexpr (requires { self.process_request(connection, false, closed, nullptr); }) {
      return self.process_request(connection, false, closed, nullptr);
    } else {
      return self.process_request(connection, "", 0, "", 0, false, closed, nullptr);
    }
  }
};

namespace {

httplib::Server::Handler called(HttpServer::Handler handler) {
  return [handler = std::move(handler)](const httplib::Request& request, httplib::Response& response) {
    std::string none;
    give(handler(none, headers_of(request)), response);
  };
}

// With the body, as long as the head says.
httplib::Server::HandlerWithContentReader called_with_body(HttpServer::Handler handler) {
  return [handler = std::move(handler)](const httplib::Request& request, httplib::Response& response,
                                        const httplib::ContentReader& content) {
    std::string body;
    if (content([&](const char* bytes, size_t size) { return body.append(bytes, size), true; })) {
      return give(handler(body, headers_of(request)), response);
    }
    served->leave_rest();
    response.status = served->is_too_slow() ? 408 : 400;
  };
}

// Of the headers alone: a status that refuses the request, or 0.
int refused(const httplib::Request& request) {
  const size_t lengths = request.get_header_value_count("Content-Length");
  if (lengths > 1 || request.get_header_value_count("Authorization") > 1) return 400;
  if (request.has_header("Transfer-Encoding") || (lengths == 0 && request.method == "POST")) return 411;
  if (lengths == 1) {
    const std::string text = request.get_header_value("Content-Length");
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return 400;
    if (text.size() > 9 || std::stoul(text) > kBodyLimit) return 413;
  }
  return request.is_multipart_form_data() || request.has_header("Content-Encoding") ? 415 : 0;
}

}  // namespace

struct HttpServer::Impl {
  BoundedServer server;
  std::atomic<bool> ended{false};
  std::set<std::string> got, posted;  // paths
  Guard guard;
  std::function<HttpAnswer(int status)> otherwise;

  // Before the body is read. What is refused here is not read any more.
  bool refuses(const httplib::Request& request, httplib::Response& response) {
    const bool has_body = request.has_header("Content-Length");
    const bool gets = request.method == "GET" || request.method == "HEAD";
    std::optional<HttpAnswer> answer;
    if (const int status = refused(request); status != 0) {
      answer = refusal(status);
      served->leave_rest();
    } else if (guard) {
      answer = guard(request.path, headers_of(request));
    }
    if (!answer && !(gets ? got : posted).contains(request.path)) answer = refusal(404);
    if (!answer && !gets && request.method != "POST") answer = refusal(404);
    if (has_body && (answer || gets)) served->leave_rest();
    if (answer) give(std::move(*answer), response);
    return answer.has_value();
  }
  HttpAnswer refusal(int status) const { return otherwise ? otherwise(status) : HttpAnswer{.status = status}; }
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
  server.set_keep_alive_timeout(kIdle);  // what it says of it
  server.set_keep_alive_max_count(1 << 30);
  server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return impl_->refuses(request, response) ? httplib::Server::HandlerResponse::Handled
                                             : httplib::Server::HandlerResponse::Unhandled;
  });
  server.set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& response) {
    return impl_->refuses(request, response) ? response.status : 100;
  });
}
HttpServer::~HttpServer() = default;

void HttpServer::get(const std::string& path, Handler handler) {
  impl_->got.insert(path);
  impl_->server.Get(path, called(std::move(handler)));
}
void HttpServer::post(const std::string& path, Handler handler) {
  impl_->posted.insert(path);
  impl_->server.Post(path, called_with_body(std::move(handler)));
}
void HttpServer::first(Guard guard) { impl_->guard = std::move(guard); }

void HttpServer::otherwise(std::function<HttpAnswer(int status)> handler) {
  impl_->otherwise = std::move(handler);
  impl_->server.set_error_handler([this](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    if (served->head_is_too_large()) response.status = 431;
    if (served->is_too_slow()) response.status = 408;
    served->leave_rest();  // what the library refuses it has not read to its end
    give(impl_->refusal(response.status), response);
  });
}

int64_t HttpServer::bind(const std::string& host, int64_t port) {
  httplib::Server& server = impl_->server;
  const int got = port == 0 ? server.bind_to_any_port(host.c_str())
                            : (server.bind_to_port(host.c_str(), static_cast<int>(port)) ? static_cast<int>(port) : -1);
  if (got < 0) {
    throw Error(ErrorKind::server,
                str(printable(host, 200), ":", port, ": cannot listen there: the port is taken, or the address is ",
                    "not this machine's; choose another --port or --host"));
  }
  impl_->server.queue_connections();
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
