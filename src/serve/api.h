// The OpenAI-compatible API in front of a Service: /v1/completions, /v1/chat/completions, /v1/models, /health. What a
// request asks for and is not there is refused, never ignored; a refusal is {"error": {"message", "type"}}.
// Besides OpenAI's own keys, as vLLM has them: prompts as token ids, top_k, stop_token_ids, return_token_ids.
// Threads: any, several at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/prompts/templates.h"
#include "serve/http/server.h"
#include "serve/service.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

struct ServedAs {
  std::string name;
  std::string key;  // "" = anybody may ask
  const Tokenizer* tokenizer = nullptr;
  int64_t vocab = 0;                        // rows of the LM head
  std::vector<int32_t> stop_ids;            // of the model's files
  std::optional<Template> prompt_template;  // of chats; nullopt = none
  Stops form_stops;
};

class ServeApi {
 public:
  ServeApi(Service& service, ServedAs as) : service_(service), as_(std::move(as)) {}
  void add_to(HttpServer& server);
  HttpAnswer complete(std::string& body, bool chat);
  HttpAnswer models() const;
  // 401 for who has no key, where there is one.
  std::optional<HttpAnswer> without_key(const std::string& path, const HttpHeaders& headers) const;

 private:
  Service& service_;
  const ServedAs as_;
};

}  // namespace ucas
