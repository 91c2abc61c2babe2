// Responses of a model behind an OpenAI-compatible server (vLLM, SGLang, llama-server, transformers serve, ucas serve):
// one request a response, a bounded number of them in flight, each tried again until the server has answered it whole.
// A response that never came is missing; it is never an empty one, so that no failure of a network counts as a wrong
// answer.
// A key is taken from UCAS_API_KEY, else OPENAI_API_KEY; it stands in no message, log or file.
// Threads: one caller at a time; it has a thread of its own for each request in flight.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "evaluate/sources/config.h"
#include "evaluate/sources/response_source.h"

namespace ucas {

// A prompt as it is sent: ids where there are any and the server takes them.
struct ServedPrompt {
  std::span<const int32_t> ids;
  std::string text;    // of /completions; of /chat/completions the user's message
  std::string system;  // of /chat/completions; "" = none
};

// What a server says of itself, and what it was seen to do: asked with a token or two before anything else.
struct ServedModel {
  std::string address, name;
  int64_t positions = 0;   // 0: it does not say
  bool takes_ids = false;  // prompts as token ids
  bool takes_seed = false, takes_top_k = false, takes_stop_ids = false;

  std::string text() const;  // for people: one line
};

// Errors: usage (address), server (no answer, a refusal: its own words), all before any work.
ServedModel look_at_server(const std::string& address, const ServerOptions& options);

class ServedSource final : public ResponseSource {
 public:
  struct Sampling {
    std::span<const Problem> problems;
    std::span<const ServedPrompt> prompts;                       // by problem
    std::map<std::string, std::vector<std::string>> stop_texts;  // by source
  };
  ServedSource(const ServedModel& model, const ServerOptions& options, Sampling asked);
  // Error(ErrorKind::server, exit 75) after all that could be had has ended, if some are missing: how many, and why.
  void run(const ResponseRequest& request) override;
  int64_t tried_again() const { return tried_again_; }

 private:
  const ServedModel& model_;
  const ServerOptions& options_;
  Sampling asked_;
  int64_t tried_again_ = 0;
};

}  // namespace ucas
