#include "cli/options/serve_options.h"

namespace ucas {

void ServeOptions::fields(Fields& f) {
  f.field("host", host, "address to listen on: 127.0.0.1 = this machine only, 0.0.0.0 = all network interfaces");
  f.field("port", port, Range{0, 65535}, "port to listen on; 0 = a free port, which is printed");
  f.field("served_model", served_model, "model name in the API; empty = the directory's name");
  f.field(
      "template", prompt_template,
      "chat template of /v1/chat/completions: auto = the checkpoint's, a name such as qwen_math, or none = no chats");
  f.field("max_length", max_length, Range{2, 1 << 24}, "maximum tokens of prompt plus response");
  f.field("connections", connections, Range{1, 4096}, "maximum clients served at once; further clients wait");
  f.choice("dtype", dtype, "dtype of matmuls, activations and KV cache");
  f.field("seed", seed, Range{0, 9e15}, "random seed of sampling, combined with a request's seed");
  engine.fields(f);
  machine.fields(f);
}

}  // namespace ucas
