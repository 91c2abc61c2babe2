#include "train/sft/sft.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "config/policy_options.h"
#include "core/metrics.h"
#include "data/prompts/templates.h"
#include "data/rows/jsonl.h"
#include "model/stored.h"
#include "text/stop_texts.h"
#include "train/optimizer/schedule.h"
#include "train/sft/sft_run.h"
#include "train/signals/balanced_pack.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

constexpr size_t kLossWindow = 20;  // updates of the running loss

// --- data -------------------------------------------------------------------------------------------------------

SftExample read_example(const JsonRow& row, const Tokenizer& tokenizer, const Template* form, int32_t eos) {
  SftExample example;
  if (row.value.contains("prompt_ids")) {
    example.prompt = ids_field(row, "prompt_ids", tokenizer.vocab_size());
  } else if (form != nullptr) {
    Problem problem;
    problem.text = text_field(row, "prompt");
    example.prompt = encode_prompt(*form, problem, tokenizer);
  } else {
    example.prompt = tokenizer.encode_prompt(text_field(row, "prompt"));
  }
  if (row.value.contains("response_ids")) {
    example.response = ids_field(row, "response_ids", tokenizer.vocab_size());
  } else {
    example.response =
        tokenizer.encode(text_field(row, "response"), Tokenizer::Special::as_text, Tokenizer::Place::later);
    if (eos >= 0) example.response.push_back(eos);
  }
  if (example.prompt.empty()) throw Error(ErrorKind::data_line, str(row.where, ": the prompt has no tokens"));
  if (example.response.empty())
    throw Error(ErrorKind::data_line, str(row.where, ": the response has no tokens to learn"));
  return example;
}

// --- one update -------------------------------------------------------------------------------------------------

struct BatchLoss {
  double loss = 0;     // token mean
  int64_t tokens = 0;  // response tokens
};

at::Tensor as_index(std::vector<int64_t>& rows, at::Device device) {
  return at::from_blob(rows.data(), {static_cast<int64_t>(rows.size())}, at::kLong).to(device);
}

// Sum of -log p over the response tokens of one micro-batch, divided by the tokens of the whole batch; leaves its
// gradient in the parameters. The last token of a sequence predicts nothing and is not run.
double micro_loss(Model& model, std::span<const SftExample* const> examples, int64_t batch_tokens) {
  Packed packed;
  std::vector<int64_t> rows;  // positions whose next token is of a response
  std::vector<int32_t> target;
  for (const SftExample* e : examples) {
    auto base = static_cast<int64_t>(packed.token.size());
    packed.append(e->prompt, std::span(e->response).first(e->response.size() - 1));
    for (size_t t = 0; t < e->response.size(); ++t) {
      rows.push_back(base + static_cast<int64_t>(e->prompt.size() + t) - 1);
      target.push_back(e->response[t]);
    }
  }
  at::Tensor hidden = model.hidden(packed).index_select(0, as_index(rows, model.device()));
  HeadStats stats = model.head().stats(hidden, target, 1.0);
  at::Tensor loss = stats.logprob.sum().mul(-1.0 / static_cast<double>(batch_tokens));
  loss.backward();
  return loss.item<double>();
}

// Micro-batches hold as many examples as fit, in order.
BatchLoss batch_gradient(Model& model, const std::vector<const SftExample*>& batch, int64_t max_tokens) {
  BatchLoss result;
  std::vector<int64_t> lengths;
  for (const SftExample* e : batch) {
    result.tokens += static_cast<int64_t>(e->response.size());
    lengths.push_back(static_cast<int64_t>(e->prompt.size() + e->response.size()));
  }
  for (const MicroBatch& micro : pack(lengths, max_tokens)) {
    result.loss += micro_loss(model, std::span(batch).subspan(micro.first, micro.last - micro.first), result.tokens);
  }
  return result;
}

// Selects batches in the order of shuffled epochs; a function of (seed, phase) alone.
class Batches {
 public:
  Batches(const SftPhase& phase, int64_t number, const SftConfig& config, int64_t sampled)  // batches
      : phase_(phase), number_(number), sampled_(sampled * config.batch_size), config_(config) {}

  std::vector<const SftExample*> next() {
    std::vector<const SftExample*> batch;
    auto count = static_cast<int64_t>(phase_.examples.size());
    for (int64_t i = 0; i < config_.batch_size; ++i, ++sampled_) {
      if (order_.empty() || sampled_ % count == 0) {
        int64_t stream = number_ * (int64_t{1} << 24) + sampled_ / count;  // phases do not share an order
        order_ = epoch_order(static_cast<uint64_t>(config_.seed), stream, count);
      }
      batch.push_back(&phase_.examples[order_[sampled_ % count]]);
    }
    return batch;
  }

 private:
  const SftPhase& phase_;
  int64_t number_, sampled_;
  const SftConfig& config_;
  std::vector<int64_t> order_;
};

double mean(const std::deque<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(std::max<size_t>(1, values.size()));
}

// --- output -----------------------------------------------------------------------------------------------------

std::vector<std::pair<std::string, double>> shown(const SftStep& s) {
  return {{metric::sft_loss.key, s.loss},
          {metric::sft_lr.key, s.lr},
          {metric::sft_grad_norm.key, s.grad_norm},
          {metric::sft_tokens.key, static_cast<double>(s.tokens)}};
}

std::string log_line(const SftStep& s) {
  OrderedJson json;
  json["step"] = s.step;
  json["phase"] = s.phase;
  json[metric::sft_loss.key] = s.loss;
  json[metric::sft_lr.key] = s.lr;
  json[metric::sft_grad_norm.key] = s.grad_norm;
  json[metric::sft_tokens.key] = s.tokens;
  json["applied"] = s.applied;
  return json_text(json);
}

std::vector<SftPhase> read_phases(const SftConfig& config, const Tokenizer& tokenizer, int32_t eos) {
  std::vector<SftPhase> phases;
  for (size_t i = 0; i < config.data.size(); ++i) {
    SftPhase phase;
    phase.name = config.data[i];
    phase.examples = read_sft_examples(config.data[i], tokenizer, eos, config);
    auto count = static_cast<int64_t>(phase.examples.size());
    phase.steps =
        config.steps.empty() ? (count * config.epochs + config.batch_size - 1) / config.batch_size : config.steps[i];
    phases.push_back(std::move(phase));
  }
  return phases;
}

// The token that ends a response: the model's own if its tokenizer has it, else the tokenizer's.
int32_t end_token(const Model& model, const Tokenizer& tokenizer, bool wanted) {
  if (!wanted) return -1;
  std::vector<int32_t> ids = tokenizer.eos_ids();
  const std::vector<int32_t>& stops = model.config().eos_token_id;
  ids.insert(ids.end(), stops.begin(), stops.end());
  for (int32_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) return id;
  }
  throw Error(ErrorKind::tokenizer, str(printable(tokenizer.directory(), 400),
                                        ": names no end token (eos_token), so responses would never end; add it to "
                                        "tokenizer_config.json, or give --append_eos false"));
}

}  // namespace

std::vector<SftExample> read_sft_examples(const std::string& path, const Tokenizer& tokenizer, int32_t eos,
                                          const SftConfig& config) {
  Template form;
  const std::string chosen = choose_template(config.prompt_template, tokenizer.directory(), "");
  if (chosen != config.prompt_template && !chosen.empty()) log(template_in_words(chosen));
  if (!chosen.empty()) form = load_template(chosen, tokenizer.directory());
  std::vector<SftExample> examples;
  int64_t too_long = 0;
  UnencodableRows unencodable(tokenizer);
  read_json_lines(path, config.bad_rows, [&](const JsonRow& row) {
    SftExample e = read_example(row, tokenizer, chosen.empty() ? nullptr : &form, eos);
    if (static_cast<int64_t>(e.prompt.size() + e.response.size()) > config.max_length) {
      ++too_long;
    } else {
      for (const char* key : {"prompt", "response"}) {
        if (!row.value.contains(str(key, "_ids"))) unencodable.look_at(text_field(row, key), row.where);
      }
      examples.push_back(std::move(e));
    }
  });
  if (too_long > 0) {
    count_warning(Warning::demonstration, too_long);
    warn(str(printable(path, 400), ": ", grouped(too_long), " of ",
             grouped(too_long + static_cast<int64_t>(examples.size())),
             " rows have more than max_length = ", config.max_length, " tokens and are left out"));
  }
  if (examples.empty())
    throw Error(ErrorKind::empty, str(printable(path, 400), ": no row of at most ", config.max_length, " tokens"));
  unencodable.say("rows", std::ssize(examples));
  return examples;
}

SftResult train_sft(Model& model, const std::vector<SftPhase>& phases, const SftConfig& config,
                    const std::function<void(const SftStep&)>& on_step, SftRun* run,
                    const std::function<void(int64_t done)>& on_begin) {
  int64_t planned = 0;
  for (const SftPhase& phase : phases) {
    if (phase.examples.empty()) throw Error(ErrorKind::empty, str(printable(phase.name), ": no examples"));
    planned += phase.steps;
  }
  double began = now_seconds();
  Optimizer optimizer(model.trainable(), config.optimizer);
  SftProgress at;
  if (run != nullptr) run->begin(optimizer, at);
  if (on_begin) on_begin(at.result.steps);
  const auto last = static_cast<int64_t>(phases.size()) - 1;
  for (; at.phase <= last; at.recent.clear()) {
    const SftPhase& phase = phases[static_cast<size_t>(at.phase)];
    Batches batches(phase, at.phase, config, at.update);
    while (at.update < phase.steps) {
      BatchLoss batch = batch_gradient(model, batches.next(), config.max_tokens);
      double lr = update_lr(config.optimizer, at.result.steps, planned);
      StepResult update = optimizer.step(lr);
      model.refresh();
      at.result.tokens += batch.tokens;
      if (++at.result.steps == 1) at.result.first_loss = batch.loss;
      at.recent.push_back(batch.loss);
      if (at.recent.size() > kLossWindow) at.recent.pop_front();
      ++at.update;
      if (on_step) on_step({at.result.steps, at.phase, batch.loss, lr, update.grad_norm, batch.tokens, update.applied});
      at.skipped.note(update.applied, str("update ", at.result.steps), "the gradient",
                      str("lower optimizer.lr or check the data (loss ", batch.loss, ")"));
      at.result.skipped = at.skipped.total;
      if (run != nullptr) run->after_update(optimizer, at);
    }
    if (at.phase == last) break;
    ++at.phase;
    at.update = 0;
  }
  at.result.last_loss = mean(at.recent);
  at.result.seconds = now_seconds() - began;
  return at.result;
}

SftResult run_sft(Model& model, const Tokenizer& tokenizer, const SftConfig& config, const std::string& out,
                  TrainObserver& observer) {
  config.validate();
  check_output(out);
  require_sound_gpu(model);
  const std::vector<SftPhase> phases = read_phases(config, tokenizer, end_token(model, tokenizer, config.append_eos));
  int64_t planned = 0;
  for (const SftPhase& phase : phases) {
    planned += phase.steps;
    log(str("sft: ", printable(phase.name, 400), ": ", grouped(static_cast<int64_t>(phase.examples.size())),
            " examples, ", grouped(phase.steps), " updates of ", config.batch_size));
  }
  OutputDirectory partial(out);
  std::optional<SftRun> run;
  if (config.save_freq > 0) run.emplace(sft_run_path(out), model, config, sft_fingerprint(model, config, phases));
  std::string lines;  // without a run: those of sft.jsonl
  SftResult result = train_sft(
      model, phases, config,
      [&](const SftStep& s) {
        run ? run->step(log_line(s)) : void(lines += log_line(s) + "\n");
        observer.step(s.step, shown(s));
      },
      run ? &*run : nullptr, [&](int64_t done) { observer.begin({"sft", out, done, planned, 0, 0, true}); });
  save_model(model, partial.path(), tokenizer.directory());
  observer.end();
  write_file(path_join(partial.path(), "sft.jsonl"), run ? run->log() : lines);
  write_file(path_join(partial.path(), "sft.toml"), to_toml(config));
  partial.put_in_place();
  if (run) remove_sft_run(run->path());
  return result;
}

}  // namespace ucas
