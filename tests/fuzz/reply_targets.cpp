// What a server says to evaluate/engine/served.cpp, which is compiled into the fuzzer with this HttpClient in place of
// the one of src/http: every reply is the input.
#include <ctime>

#include "base/str.h"
#include "evaluate/engine/served.h"
#include "fuzz/target.h"
#include "http/client.h"

// A second try need not wait here.
extern "C" int nanosleep(const timespec*, timespec*) { return 0; }

namespace ucas {

namespace {

HttpReply the_reply;

}  // namespace

struct HttpClient::Impl {};
HttpClient::HttpClient(const Url&, double) {}
HttpClient::~HttpClient() = default;
HttpReply HttpClient::get(const std::string&, const HttpHeaders&) { return the_reply; }
HttpReply HttpClient::post(const std::string&, const std::string&, const HttpHeaders&) { return the_reply; }
void HttpClient::stop() {}

std::string Url::text() const { return str("http://", host, ":", port, path); }
bool is_url(const std::string&) { return true; }
Url parse_url(const std::string&) { return {.tls = false, .host = "localhost", .port = 80, .path = "/v1"}; }

namespace fuzz {

namespace {

// The first byte says which API, and whether the reply is a refusal.
void reply(std::string_view input) {
  if (input.empty()) return;
  ServerOptions options;
  options.api = (input[0] & 1) != 0 ? ServedApi::chat : ServedApi::completions;
  options.served_model = (input[0] & 2) != 0 ? "m" : "";
  options.requests = 1;
  options.retries = 0;
  the_reply = {
      .status = (input[0] & 4) != 0 ? 400 : 200, .failure = "", .body = std::string(input.substr(1)), .headers = {}};
  const ServedModel model = look_at_server("http://localhost/v1", options);
  model.text();
  const Problem& problem = sum_problem();
  const ServedPrompt prompt{.ids = {}, .text = problem.text, .system = ""};
  ServedSource source(model, options, {.problems = {&problem, 1}, .prompts = {&prompt, 1}, .stop_texts = {}});
  const EvalConfig config;
  const ResponseJob job{.greedy = true};
  source.run(
      {.jobs = {&job, 1},
       .config = config,
       .ended = [](size_t, const Output& output) { require(valid_utf8(output.text), "a response that is not UTF-8"); },
       .token = {},
       .should_stop = {}});
}

}  // namespace

std::vector<Target> reply_targets() { return {{"reply", reply}}; }

}  // namespace fuzz

}  // namespace ucas
