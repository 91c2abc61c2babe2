#include "config/server_options.h"

namespace ucas {

void ServerOptions::fields(Fields& f) {
  f.field("served_model", served_model, "with --server: the model's name there; empty = the only one it has");
  f.field("tokenizer", tokenizer,
          "with --server: directory of the model's tokenizer.json, so that prompts go as token ids");
  f.choice("api", api, "with --server: /completions with the template's text, or /chat/completions with its question");
  f.choice("prompts", prompts, "with --server: prompts as token ids, as text, or ids where both sides can");
  f.field("requests", requests, Range{1, 1024}, "with --server: requests in flight");
  f.field("retries", retries, Range{0, 1000}, "with --server: how often one request is tried again");
  f.field("request_timeout", request_timeout, Range{0.05, 86400},
          "with --server: seconds until one try counts as lost");
  f.field("patience", patience, Range{0.1, 86400},
          "with --server: seconds without any response until the run gives up");
}

}  // namespace ucas
