#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "config/policy_options.h"
#include "data/problems.h"
#include "data/prompts/templates.h"
#include "hf/hub.h"
#include "hf/peft.h"
#include "rollout/policy.h"
#include "rollout/rollouter.h"
#include "sharding/ranks.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

struct Questions {
  std::vector<Problem> problems;
  std::vector<std::vector<int32_t>> prompts;  // token ids, one per problem
  std::vector<int32_t> stop_ids;
  std::function<bool(const Episode&)> ends = nullptr;  // RolloutLimits::ends
};

std::vector<Problem> read_limited(const std::vector<std::string>& files, int64_t limit, const ProblemOptions& options) {
  std::vector<Problem> problems = read_problems(files, options);
  if (limit > 0 && static_cast<int64_t>(problems.size()) > limit) problems.resize(static_cast<size_t>(limit));
  return problems;
}

// Drops prompts that leave no room for `max_tokens` in the model's positions. Borrows the policy's tokenizer.
Questions encode_questions(const std::vector<Problem>& problems, const Template& prompt_template, const Policy& policy,
                           const std::vector<std::string>& more_stops, int64_t max_tokens) {
  const ModelConfig& model = policy.model->config();
  const int64_t room = model.max_position_embeddings - max_tokens;
  if (room < 1) {
    throw Error(ErrorKind::config,
                str("max_tokens = ", max_tokens, " leaves no room for a prompt: the model has ",
                    model.max_position_embeddings, " positions (max_position_embeddings); lower max_tokens"));
  }
  PreparedPrompts prepared = prepare_prompts(prompt_template, problems, policy.tokenizer, room);
  if (prepared.dropped > 0) {
    count_warning(Warning::prompt, prepared.dropped);
    warn(str(prepared.dropped, " of ", problems.size(), " prompts dropped: empty, or longer than ", room,
             " tokens (the model's ", model.max_position_embeddings, " positions less max_tokens = ", max_tokens, ")"));
  }
  Questions out;
  for (int64_t index : prepared.problem) out.problems.push_back(problems[static_cast<size_t>(index)]);
  out.prompts = std::move(prepared.ids);
  const Stops stops = stops_of(prompt_template, more_stops, policy.tokenizer);
  out.stop_ids = collect_stop_ids(model, policy.tokenizer, stops.ids);
  out.ends = ends_at(policy.tokenizer, stops.texts);
  return out;
}

// Model output for a terminal: control characters other than newline and tab are shown, not obeyed.
std::string shown(const std::string& text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      const char* hex = "0123456789abcdef";
      out += str("\\x", hex[byte >> 4], hex[byte & 15]);
    } else {
      out += c;
    }
  }
  return out;
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

RolloutRequest request_of(const GenerateOptions& options, const Questions& questions, std::vector<PromptJob>& jobs) {
  for (size_t i = 0; i < questions.prompts.size(); ++i) {
    jobs.push_back({.prompt = questions.prompts[i], .problem = static_cast<uint32_t>(i), .samples = options.samples});
  }
  RolloutRequest request;
  request.jobs = jobs;
  request.sampling = options.sampling;
  request.seed = static_cast<uint64_t>(options.seed);
  request.limits.stop_ids = questions.stop_ids;
  request.limits.ends = questions.ends;
  return request;
}

// One prompt: the first sample streams, further ones follow whole.
void answer(Rollouter& engine, const GenerateOptions& options, const Policy& policy, const Questions& questions) {
  std::vector<PromptJob> jobs;
  RolloutRequest request = request_of(options, questions, jobs);
  Tokenizer::Stream stream(policy.tokenizer);
  int64_t tokens = 0;
  bool reading = true;  // standard output still has a reader
  const double began = now_seconds();
  request.sink.on_token = [&](int64_t, uint32_t sample, int32_t token) {
    ++tokens;
    if (sample != 0 || contains(request.limits.stop_ids, token) || token >= policy.tokenizer.vocab_size()) return;
    reading = out(shown(stream.push(token)));
  };
  request.limits.should_stop = [&] { return !reading; };
  const std::vector<Episode> responses = engine.run(request);
  if (!reading) return;
  out(shown(stream.finish()) + "\n");
  for (size_t i = 1; i < responses.size(); ++i) {
    out(str("\n--- sample ", i + 1, " of ", responses.size(), " ---\n",
            shown(response_text(policy.tokenizer, responses[i].token)), "\n"));
  }
  const double seconds = now_seconds() - began;
  log(str(grouped(tokens), " tokens in ", human_seconds(seconds), ", ",
          fixed(static_cast<double>(tokens) / std::max(seconds, 1e-9), 1), " tokens/s",
          responses.front().finished ? "" : str("; cut at max_tokens = ", options.sampling.max_tokens)));
}

std::string row_of(const Episode& response, const Questions& questions, const Policy& policy) {
  const auto i = static_cast<size_t>(response.job);
  double logprob = 0;
  for (float value : response.logprob) logprob += value;
  OrderedJson row;
  row["id"] = questions.problems[i].id;
  row["sample"] = response.sample;
  row["prompt"] = policy.tokenizer.decode(questions.prompts[i]);
  row["prompt_ids"] = questions.prompts[i];
  row["response"] = response_text(policy.tokenizer, response.token);
  row["response_ids"] = response.token;
  row["finished"] = response.finished;
  row["logprob"] = logprob;
  const std::vector<std::string>& gold = questions.problems[i].gold;
  if (gold.size() == 1) row["answer"] = gold.front();
  if (gold.size() > 1) row["answer"] = gold;
  return json_text(row) + "\n";
}

void answer_file(Rollouter& engine, const GenerateOptions& options, const Policy& policy, const Questions& questions) {
  std::vector<PromptJob> jobs;
  RolloutRequest request = request_of(options, questions, jobs);
  Progress progress("generate", static_cast<int64_t>(jobs.size()) * options.samples, "responses");
  int64_t ended = 0, tokens = 0;
  request.sink.on_response = [&](const Episode&) { ++ended; };
  request.sink.on_token = [&](int64_t, uint32_t, int32_t) {
    if (++tokens % 64 == 0) progress.update(ended, str(grouped(tokens), " tokens"));
  };
  const std::vector<Episode> responses = engine.run(request);
  progress.update(ended);
  progress.finish(str(grouped(tokens), " tokens"));
  std::string rows;
  for (const Episode& response : responses) {
    rows += row_of(response, questions, policy);
    if (!options.out.empty()) continue;
    out(rows);
    rows.clear();
  }
  if (options.out.empty()) return;
  write_output(options.out, rows);
  log(str(options.out, ": ", grouped(static_cast<int64_t>(responses.size())), " responses"));
}

// What was asked for, ready to be sampled.
struct GenerateWork {
  GenerateOptions options;
  std::shared_ptr<const Policy> policy;  // stays where it is: stop texts read its tokenizer
  Questions questions;
};

GenerateWork read_generate_work(const Words& words) {
  PolicyLine line = read_policy_line(words, {"data", "stop"});
  GenerateWork work;
  GenerateOptions& options = work.options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() > (options.model.empty() ? 1 : 0)) {
    throw Error(ErrorKind::usage, str(printable(line.positionals.back()),
                                      ": unexpected word; expected one MODEL, and the prompt after --prompt"));
  }
  if (!line.positionals.empty()) options.model = line.positionals[0];
  options.dtype = decided(options.dtype, options.machine.device);
  options.validate();
  resolve_hub_names(options);
  use_threads(options.machine.threads);
  const std::string tokenizer = directory_with(options.model, "tokenizer.json");
  const std::string chosen = choose_template(options.prompt_template, tokenizer, "plain");
  if (chosen != options.prompt_template && chosen == "chat") log(template_in_words(chosen));
  const Template prompt_template = load_template(chosen, tokenizer, options.examples);
  std::vector<Problem> problems;
  if (options.data.empty()) {
    problems.push_back({.id = "prompt", .source = "", .text = options.prompt, .system = "", .gold = {}});
  } else {
    options.problems.labels = false;  // those that there are go into the rows
    problems = read_limited(options.data, options.limit, options.problems);
  }
  work.policy = std::make_shared<const Policy>(
      open_policy(options.model, parse_device(options.machine.device), inference(options.dtype)));
  require_sound_gpu(*work.policy->model);
  work.questions = encode_questions(problems, prompt_template, *work.policy, options.stop, options.sampling.max_tokens);
  return work;
}

}  // namespace

int run_generate(const Words& words) {
  if (rank_of_environment() > 0) return kDone;  // of several ranks the first does it all
  const GenerateWork work = read_generate_work(words);
  const auto engine = make_engine(*work.policy->model, work.options.engine);
  if (work.options.data.empty()) {
    answer(*engine, work.options, *work.policy, work.questions);
  } else {
    answer_file(*engine, work.options, *work.policy, work.questions);
  }
  return kDone;
}

}  // namespace ucas
