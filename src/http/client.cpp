#include "http/client.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <regex>
#include <thread>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "http/library.h"
#include "http/received.h"

namespace ucas {

namespace {

constexpr size_t kHeadLimit = size_t{1} << 20, kReplyLimit = size_t{64} << 20;  // bytes

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string failure_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "no connection";
    case httplib::Error::ConnectionTimeout:
      return "no connection in time";
    case httplib::Error::Read:
      return "no whole reply in time, or cut off";
    case httplib::Error::Write:
      return "the connection broke while asking";
    case httplib::Error::Canceled:
      return "the reply was too long";
    case httplib::Error::SSLConnection:
      return "no TLS connection";
    case httplib::Error::SSLLoadingCerts:
      return "the system's certificates cannot be read (package ca-certificates)";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not one that the system trusts";
    default:
      return httplib::to_string(error);
  }
}

}  // namespace

std::string Url::text() const {
  const bool usual = port == (tls ? 443 : 80);
  const std::string name = host.find(':') == std::string::npos ? host : str("[", host, "]");
  return str(tls ? "https://" : "http://", name, usual ? std::string() : str(":", port), path);
}

bool is_url(const std::string& text) { return text.starts_with("http://") || text.starts_with("https://"); }

Url parse_url(const std::string& text) {
  const std::string authority = text.substr(0, text.find('/', std::min(text.size(), text.find("://") + 3)));
  if (is_url(text) && authority.find('@') != std::string::npos) {
    throw Error(ErrorKind::usage,
                "the address of a server holds a user name or password, which would end in files and logs; "
                "put the key into UCAS_API_KEY or OPENAI_API_KEY");
  }
  static const std::regex kForm(R"((https?)://(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]/:?# ]+))(?::([0-9]{1,5}))?(/[^?# ]*)?)");
  std::smatch part;
  const bool good = text.size() < 2000 && std::regex_match(text, part, kForm);
  Url url;
  if (good) {
    url = {part.str(1) == "https", part.str(2) + part.str(3), 0, part.str(5)};
    url.port = part[4].matched ? std::stoll(part.str(4)) : url.tls ? 443 : 80;
    while (url.path.ends_with('/')) url.path.pop_back();
  }
  if (url.port < 1 || url.port > 65535) {
    throw Error(ErrorKind::usage, str(printable(text, 200),
                                      ": no address of a server; expected http://HOST:PORT/v1 or "
                                      "https://HOST/v1"));
  }
  return url;
}

// The library bounds each wait for more of a reply, not the whole, and reads a head of any size: another thread looks
// how long a request takes and how much has come, and ends it.
class RequestWatch {
 public:
  RequestWatch(httplib::Client& client, double seconds)
      : client_(client), until_(now_seconds() + seconds), thread_([this] { look(); }) {}
  ~RequestWatch() { end(); }
  RequestWatch(const RequestWatch&) = delete;
  RequestWatch& operator=(const RequestWatch&) = delete;

  void body_begins() { in_body_ = true; }
  // Why it has ended the request; "": it has not.
  std::string end() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    return why_;
  }

 private:
  void look() {
    std::unique_lock lock(mutex_);
    int64_t before = -1;  // what was read for other requests
    while (!wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return done_; })) {
      const int64_t read = bytes_read(client_.socket());
      if (before < 0) before = std::max<int64_t>(read, 0);
      if (now_seconds() > until_) why_ = "no whole reply in time";
      if (read - before > static_cast<int64_t>(in_body_ ? 2 * kReplyLimit : kHeadLimit))
        why_ = "the reply was too long";
      if (!why_.empty()) client_.stop();
    }
  }

  httplib::Client& client_;
  const double until_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::atomic<bool> in_body_{false};
  std::string why_;
  std::thread thread_;
};

struct HttpClient::Impl {
  Impl(const Url& server, double limit)
      : prefix(server.path), client(Url{server.tls, server.host, server.port, ""}.text()), timeout(limit) {
    const auto seconds = static_cast<time_t>(timeout);
    const auto micro = static_cast<time_t>((timeout - static_cast<double>(seconds)) * 1e6);
    client.set_connection_timeout(std::min<time_t>(seconds, 30), seconds < 30 ? micro : 0);
    client.set_read_timeout(seconds, micro);
    client.set_write_timeout(seconds, micro);
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
  }

  HttpReply ask(const char* method, const std::string& path, const std::string& body, const HttpHeaders& headers) {
    HttpReply reply;
    httplib::Request request;
    request.method = method;
    request.path = prefix + path;
    for (const auto& [name, value] : headers) request.set_header(name.c_str(), value);
    if (!body.empty()) {
      request.set_header("Content-Type", "application/json");
      request.body = body;
    }
    request.content_receiver = [&](const char* bytes, size_t size, uint64_t, uint64_t) {
      if (reply.body.size() + size > kReplyLimit) return false;
      reply.body.append(bytes, size);
      return true;
    };
    RequestWatch watch(client, timeout);
    request.response_handler = [&](const httplib::Response&) {
      watch.body_begins();
      return true;
    };
    const httplib::Result result = client.send(request);
    const std::string ended = watch.end();
    if (!result) {
      reply.failure = ended.empty() ? failure_of(result.error()) : ended;
      return reply;
    }
    reply.status = result->status;
    for (const auto& [name, value] : result->headers) reply.headers[lower(name)] = value;
    return reply;
  }

  std::string prefix;
  httplib::Client client;
  const double timeout;
};

HttpClient::HttpClient(const Url& server, double timeout) : impl_(std::make_unique<Impl>(server, timeout)) {}
HttpClient::~HttpClient() = default;
HttpReply HttpClient::get(const std::string& path, const HttpHeaders& headers) {
  return impl_->ask("GET", path, "", headers);
}
HttpReply HttpClient::post(const std::string& path, const std::string& json, const HttpHeaders& headers) {
  return impl_->ask("POST", path, json, headers);
}
void HttpClient::stop() { impl_->client.stop(); }

}  // namespace ucas
