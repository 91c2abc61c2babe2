#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/process/activity.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "config/policy_options.h"
#include "data/prompts/templates.h"
#include "hf/hub.h"
#include "hf/peft.h"
#include "rollout/policy.h"
#include "rollout/rollouter.h"
#include "serve/api.h"
#include "serve/http/server.h"
#include "serve/service.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

std::string own_name(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  return directory.substr(directory.find_last_of('/') + 1);
}

// A file that holds a key often ends with a line break.
std::string asked_key() {
  const char* key = std::getenv("UCAS_API_KEY");
  if (key == nullptr) return "";
  const std::string text(trim(key));
  if (text.empty()) {
    throw Error(ErrorKind::usage,
                "UCAS_API_KEY is empty; set a key, or unset it to serve anyone who can reach the port");
  }
  return text;
}

}  // namespace

int run_serve(const Words& words) {
  const PolicyLine line = read_policy_line(words, {});
  if (line.positionals.size() != 1) throw Error(ErrorKind::usage, "expected one CHECKPOINT; see `ucas serve --help`");
  const std::string &asked = line.positionals[0], directory = checkpoint_directory(asked);
  ServeOptions options;
  ucas::apply(options, line.settings);
  options.dtype = decided(options.dtype, options.machine.device);
  ServedAs as{.name = options.served_model.empty() ? own_name(asked) : options.served_model, .key = asked_key()};
  const std::string tokenizer = directory_with(directory, "tokenizer.json");
  const std::string chosen = choose_template(options.prompt_template, tokenizer, "");
  if (chosen != options.prompt_template) {
    log(chosen.empty() ? std::string("no chats: the checkpoint has no chat template; --template NAME gives one")
                       : template_in_words(chosen));
  }
  if (!chosen.empty() && chosen != "none") as.prompt_template = load_template(chosen, tokenizer);
  use_threads(options.machine.threads);
  const Policy policy = open_policy(directory, parse_device(options.machine.device), inference(options.dtype));
  require_sound_gpu(*policy.model);
  const ModelConfig& model = policy.model->config();
  as.tokenizer = &policy.tokenizer;
  as.vocab = model.vocab_size;
  as.stop_ids = collect_stop_ids(model, policy.tokenizer);
  if (as.prompt_template) as.form_stops = stops_of(*as.prompt_template, {}, policy.tokenizer);

  const auto engine = make_engine(*policy.model, options.engine);
  Service service(*engine, policy.tokenizer, std::min(options.max_length, model.max_position_embeddings),
                  static_cast<uint64_t>(options.seed));
  ServeApi api(service, as);
  HttpServer server(options.connections);
  api.add_to(server);
  const int64_t port = server.bind(options.host, options.port);
  install_stop_signals();
  if (!is_loopback(options.host) && as.key.empty()) {
    warn(str("the server is open to anyone who can reach ", options.host, "; set UCAS_API_KEY to require a key"));
  }
  out(str("serving ", as.name, " on http://", options.host, ":", port, "/v1\n"));
  std::thread listening([&] { server.run(); });
  try {
    service.run(stop_requested);
  } catch (...) {
    server.stop();
    listening.join();
    throw;
  }
  server.stop();
  listening.join();
  log(str("served ", grouped(service.requests()), " requests, ", grouped(service.tokens()), " tokens"));
  return kDone;
}

}  // namespace ucas
