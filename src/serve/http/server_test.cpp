// The server and the many requests of one caller, each against the other over the loopback interface, on a free port.
#include "serve/http/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/str.h"
#include "serve/http/ask_many.h"

namespace ucas {
namespace {

class Served {
 public:
  explicit Served(const std::function<void(HttpServer&)>& set_up) {
    set_up(server_);
    port_ = server_.bind("127.0.0.1", 0);
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Served() {
    server_.stop();
    thread_.join();
  }
  Url address() const { return parse_url(str("http://127.0.0.1:", port_)); }

 private:
  HttpServer server_{4};
  int64_t port_ = 0;
  std::thread thread_;
};

HttpReply post(const Served& server, const std::string& path, const std::string& body, const HttpHeaders& with = {}) {
  return HttpClient(server.address(), 60).post(path, body, with);
}

TEST(http_server, a_path_answers_with_its_own_handler_and_others_with_the_common_one) {
  const Served server([](HttpServer& s) {
    s.get("/health", [](std::string&, const HttpHeaders&) { return HttpAnswer{.body = "well"}; });
    s.post("/turned", [](std::string& body, const HttpHeaders&) {
      return HttpAnswer{.body = std::string(body.rbegin(), body.rend()), .type = "text/plain"};
    });
    s.otherwise([](int status) { return HttpAnswer{.status = status, .body = str("no: ", status)}; });
  });
  EXPECT_EQ(HttpClient(server.address(), 60).get("/health").body, "well");
  const HttpReply turned = post(server, "/turned", "abc");
  EXPECT_EQ(turned.body, "cba");
  EXPECT_EQ(turned.headers.at("content-type"), "text/plain");
  const HttpReply none = post(server, "/health", "{}");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.body, "no: 404");
}

TEST(http_server, a_body_comes_in_pieces_until_the_last_one) {
  const Served server([](HttpServer& s) {
    s.get("/count", [](std::string&, const HttpHeaders&) {
      return HttpAnswer{.pieces = [](const WritePiece& write) {
        for (const char* piece : {"one ", "two ", "three"}) EXPECT_TRUE(write(piece));
      }};
    });
  });
  EXPECT_EQ(HttpClient(server.address(), 60).get("/count").body, "one two three");
}

TEST(http_server, who_is_refused_by_the_headers_reaches_no_handler) {
  std::atomic<int> reached{0};
  const Served server([&](HttpServer& s) {
    s.post("/closed", [&](std::string&, const HttpHeaders&) {
      ++reached;
      return HttpAnswer{};
    });
    s.first([](const std::string& path, const HttpHeaders& headers) -> std::optional<HttpAnswer> {
      const auto key = headers.find("authorization");
      if (path != "/closed" || (key != headers.end() && key->second == "Bearer k")) return std::nullopt;
      return HttpAnswer{.status = 401};
    });
  });
  EXPECT_EQ(post(server, "/closed", "{}").status, 401);
  EXPECT_EQ(post(server, "/closed", "{}", {{"Content-Encoding", "gzip"}}).status, 415);
  EXPECT_EQ(reached, 0);
  EXPECT_EQ(post(server, "/closed", std::string(1 << 20, 'x'), headers_with("k")).status, 200);
  EXPECT_EQ(reached, 1);
}

// Of each body as many replies as the test wants to see fail, then the body itself.
struct Flaky {
  std::mutex mutex;
  std::map<std::string, int> failures;
  std::map<std::string, int> seen;
  HttpAnswer fault{.status = 500, .body = R"({"error": {"message": "out of luck"}})"};

  void add_to(HttpServer& server) {
    server.post("/echo", [this](std::string& body, const HttpHeaders&) {
      const std::lock_guard lock(mutex);
      return ++seen[body] <= failures[body] ? fault : HttpAnswer{.body = body};
    });
  }
};

struct Asked {
  std::vector<std::string> replies;
  std::string missing, gave_up;
  int64_t came = 0, again = 0;
};
Asked ask(const Served& server, size_t items, const AskMany::Limits& limits) {
  Asked out{.replies = std::vector<std::string>(items)};
  AskMany many({server.address()}, items, limits,
               {.path = "/echo",
                .ask = [](size_t item) { return str("item ", item); },
                .read = [&](size_t item, const HttpReply& reply) { return out.replies[item] = reply.body, ""; },
                .took = [&](size_t) {}});
  many.run();
  out.missing = many.missing(), out.gave_up = many.gave_up();
  out.came = many.came(), out.again = many.tried_again_count();
  return out;
}

TEST(ask_many, each_request_is_tried_again_until_it_has_its_own_reply) {
  Flaky flaky;
  flaky.failures = {{"item 1", 1}, {"item 4", 1}};
  const Served server([&](HttpServer& s) { flaky.add_to(s); });
  const Asked got = ask(server, 6, {.requests = 3, .retries = 2});
  EXPECT_EQ(got.came, 6);
  EXPECT_EQ(got.again, 2);
  EXPECT_EQ(got.missing, "");
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got.replies[i], str("item ", i));
}

TEST(ask_many, what_has_no_try_left_is_counted_with_the_servers_words) {
  Flaky flaky;
  flaky.failures = {{"item 0", 9}};
  const Served server([&](HttpServer& s) { flaky.add_to(s); });
  const Asked got = ask(server, 2, {.requests = 2, .retries = 1});
  EXPECT_EQ(got.came, 1);
  EXPECT_EQ(flaky.seen["item 0"], 2);
  EXPECT_EQ(got.missing, "1 x HTTP 500: out of luck");
}

TEST(ask_many, a_refusal_is_final_and_a_server_that_refuses_all_is_left) {
  Flaky flaky;
  flaky.fault.status = 400;
  for (int i = 0; i < 30; ++i) flaky.failures[str("item ", i)] = 9;
  const Served server([&](HttpServer& s) { flaky.add_to(s); });
  const Asked got = ask(server, 30, {.requests = 1, .retries = 5});
  EXPECT_EQ(got.again, 0);
  EXPECT_EQ(got.gave_up, "the server refuses them all");
}

TEST(ask_many, an_answer_that_cannot_be_read_is_a_failed_try) {
  Flaky flaky;
  const Served server([&](HttpServer& s) { flaky.add_to(s); });
  std::atomic<int> read{0};
  AskMany many({server.address()}, 1, {.requests = 1, .retries = 3},
               {.path = "/echo",
                .ask = [](size_t) { return std::string("item"); },
                .read = [&](size_t, const HttpReply&) { return ++read < 2 ? "half of it" : ""; },
                .took = [](size_t) {}});
  many.run();
  EXPECT_EQ(many.came(), 1);
  EXPECT_EQ(many.tried_again_count(), 1);
}

TEST(ask_many, a_key_never_comes_back_in_an_error) {
  EXPECT_EQ(words_of({.status = 401, .body = R"J({"detail": "bad key sk-1 (sk-1)"})J"}, "sk-1"),
            "HTTP 401: bad key *** (***)");
  EXPECT_EQ(words_of({.status = 0, .failure = "timed out"}, "sk-1"), "timed out");
  EXPECT_EQ(words_of({.status = 502, .body = " <html> "}, ""), "HTTP 502: <html>");
}

TEST(ask_many, patience_ends_after_the_tries_or_with_a_final_status) {
  for (const auto& [status, calls] : std::map<int, int>{{503, 4}, {404, 1}, {200, 1}}) {
    int called = 0, failed = 0;
    const HttpReply last = ask_patiently(
        3, 0, 600, [&, status = status] { return ++called, HttpReply{.status = status}; },
        [&](const HttpReply&) { ++failed; });
    EXPECT_EQ(last.status, status);
    EXPECT_EQ(called, calls) << status;
    EXPECT_EQ(failed, calls - 1) << status;
  }
}

}  // namespace
}  // namespace ucas
