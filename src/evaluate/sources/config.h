// How a served model is asked (`ucas evaluate --server URL`). Keys come from the environment alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/text/fields.h"

namespace ucas {

enum class ServedApi { completions, chat };
constexpr std::array<const char*, 2> names(ServedApi) { return {"completions", "chat"}; }

struct ServerOptions {
  std::string served_model;  // "" = the only one that the server has
  std::string tokenizer;     // directory with tokenizer.json; "" = prompts are texts
  ServedApi api = ServedApi::completions;
  int64_t requests = 32;         // in flight
  int64_t retries = 10;          // of one request
  double request_timeout = 600;  // seconds
  double patience = 300;         // seconds
  void fields(Fields& f);
};

}  // namespace ucas
