// How a checkpoint is put behind an API (`ucas serve CHECKPOINT`). A key comes from the environment alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/fields.h"
#include "config/policy_options.h"
#include "core/model_options.h"
#include "sampling/config.h"

namespace ucas {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8000;                   // 0 = a free one
  std::string served_model;              // "" = the directory's name
  std::string prompt_template = "auto";  // of chats; "none" or "" = no chats
  int64_t max_length = 4096;             // tokens
  int64_t connections = 128;
  Dtype dtype = Dtype::f32;
  int64_t seed = 0;
  EngineConfig engine;
  MachineOptions machine;
  void fields(Fields& f);
};

}  // namespace ucas
