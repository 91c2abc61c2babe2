#include "config/serve_options.h"

namespace ucas {

void ServeOptions::fields(Fields& f) {
  f.field("host", host, "address to listen on; 127.0.0.1 = this machine alone, 0.0.0.0 = every network it is in");
  f.field("port", port, Range{0, 65535}, "port to listen on; 0 = a free one, which is printed");
  f.field("served_model", served_model, "the model's name; empty = that of its directory");
  f.field(
      "template", prompt_template,
      "prompt template of /v1/chat/completions: auto (the checkpoint's chat template, if it has one), a name such as "
      "qwen_math, or none = no chats");
  f.field("max_length", max_length, Range{2, 1 << 24}, "tokens of a prompt and its response together, at most");
  f.field("connections", connections, Range{1, 4096}, "clients served at once; further ones wait");
  f.choice("dtype", dtype, "of products, activations, keys and values");
  f.field("seed", seed, Range{0, 9e15}, "of the draws, with the one that a request has");
  engine.fields(f);
  machine.fields(f);
}

}  // namespace ucas
