#include "evaluate/sources/config.h"

namespace ucas {

void ServerOptions::fields(Fields& f) {
  f.field("served_model", served_model, "model name on the server of --server; empty = the only model served");
  f.field("tokenizer", tokenizer, OptionNames::tokenizer,
          "directory with the tokenizer.json of the model behind --server, for prompts as token ids");
  f.choice("api", api,
           "endpoint of --server: /completions with the template's text, or /chat/completions with the question");
  f.field("requests", requests, Range{1, 1024}, "maximum requests in flight to --server");
  f.field("retries", retries, Range{0, 1000}, "retries of one failed request to --server");
  f.field("request_timeout", request_timeout, Range{0.05, 86400},
          "seconds until one request to --server counts as lost");
  f.field("patience", patience, Range{0.1, 86400}, "seconds without any response from --server until the run stops");
}

}  // namespace ucas
