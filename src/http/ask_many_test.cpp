// Many requests of one caller against a server of this process, which fails so many times.
#include "http/ask_many.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/str.h"
#include "http/library.h"

namespace ucas {
namespace {

// Of each body as many replies as the test wants to see fail, then the body itself.
class Flaky {
 public:
  explicit Flaky(std::map<std::string, int> failures, int status = 500) : failures_(std::move(failures)) {
    server_.Post("/echo", [this, status](const httplib::Request& asked, httplib::Response& reply) {
      const std::lock_guard lock(mutex_);
      const bool fails = ++seen_[asked.body] <= failures_[asked.body];
      reply.status = fails ? status : 200;
      reply.set_content(fails ? R"({"error": {"message": "out of luck"}})" : asked.body, "application/json");
    });
    server_.set_keep_alive_max_count(1);  // else stop() waits for connections without a request
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Flaky() {
    server_.stop();
    thread_.join();
  }
  Url address() const { return parse_url(str("http://127.0.0.1:", port_)); }
  int seen(const std::string& body) {
    const std::lock_guard lock(mutex_);
    return seen_[body];
  }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::map<std::string, int> failures_, seen_;
};

struct Asked {
  std::vector<std::string> replies;
  std::string missing, gave_up;
  int64_t came = 0, again = 0;
};
Asked ask(const Flaky& server, size_t items, const AskMany::Limits& limits) {
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
  const Flaky server({{"item 1", 1}, {"item 4", 1}});
  const Asked got = ask(server, 6, {.requests = 3, .retries = 2});
  EXPECT_EQ(got.came, 6);
  EXPECT_EQ(got.again, 2);
  EXPECT_EQ(got.missing, "");
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got.replies[i], str("item ", i));
}

TEST(ask_many, what_has_no_try_left_is_counted_with_the_servers_words) {
  Flaky server({{"item 0", 9}});
  const Asked got = ask(server, 2, {.requests = 2, .retries = 1});
  EXPECT_EQ(got.came, 1);
  EXPECT_EQ(server.seen("item 0"), 2);
  EXPECT_EQ(got.missing, "1 x HTTP 500: out of luck");
}

TEST(ask_many, a_refusal_is_final_and_a_server_that_refuses_all_is_left) {
  std::map<std::string, int> failures;
  for (int i = 0; i < 30; ++i) failures[str("item ", i)] = 9;
  const Flaky server(failures, 400);
  const Asked got = ask(server, 30, {.requests = 1, .retries = 5});
  EXPECT_EQ(got.again, 0);
  EXPECT_EQ(got.gave_up, "the server refuses them all");
}

TEST(ask_many, an_answer_that_cannot_be_read_is_a_failed_try) {
  const Flaky server({});
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
