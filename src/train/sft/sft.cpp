#include "train/sft/sft.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/output_directory.h"
#include "base/process/warning_counters.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "config/prompt_choice.h"
#include "core/metrics.h"
#include "data/prompts/templates.h"
#include "data/rows/jsonl.h"
#include "model/stored.h"
#include "sharding/agreement.h"
#include "sharding/gradient_schedule.h"
#include "text/stop_texts.h"
#include "train/optimizer/schedule.h"
#include "train/sft/sft_run.h"
#include "train/signals/balanced_pack.h"
#include "train/signals/logprobs.h"
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

using Examples = std::vector<const SftExample*>;

// In order, as many as fit. Of several ranks, and by micro-batches, equally much work in each, as in a training.
std::vector<Examples> micro_batches_of(Model& model, const Examples& batch, int64_t max_tokens, const Among& among) {
  std::vector<Examples> micros;
  if (!among.several() && among.reduce == Reduce::sum) {
    std::vector<int64_t> lengths;
    for (const SftExample* e : batch) lengths.push_back(static_cast<int64_t>(e->prompt.size() + e->response.size()));
    for (const MicroBatch& micro : pack(lengths, max_tokens)) {
      micros.emplace_back(batch.begin() + micro.first, batch.begin() + micro.last);
    }
    return micros;
  }
  Batch whole;
  for (const SftExample* e : batch) {
    const auto index = std::ssize(whole.responses);
    whole.groups.push_back({.problem = index, .first = index, .count = 1, .prompt = e->prompt});
    Response& o = whole.responses.emplace_back();
    o.first = std::ssize(whole.token);
    o.length = std::ssize(e->response);
    o.group = index;
    whole.token.insert(whole.token.end(), e->response.begin(), e->response.end());
  }
  for (const std::vector<int64_t>& some :
       micro_batches(model, whole, indices(0, std::ssize(batch)), max_tokens, among)) {
    Examples& micro = micros.emplace_back();
    for (const int64_t index : some) micro.push_back(batch[static_cast<size_t>(index)]);
  }
  return micros;
}

BatchLoss batch_gradient(Model& model, const Examples& batch, int64_t max_tokens, const Among& among) {
  BatchLoss result;
  for (const SftExample* e : batch) result.tokens += static_cast<int64_t>(e->response.size());
  const std::vector<Examples> micros = micro_batches_of(model, batch, max_tokens, among);
  const auto schedule = make_schedule(among, model, model.trainable(), {&result.loss, 1});
  schedule->learn(std::ssize(micros), [&](int64_t micro) {
    result.loss += micro_loss(model, micros[static_cast<size_t>(micro)], result.tokens);
  });
  schedule->finish();
  return result;
}

// Draws batches in the order of shuffled epochs; a function of (seed, phase) alone.
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

// Who keeps which moments and gradients, among several ranks.
Placement placement_of(const Ranks* ranks) {
  return ranks == nullptr ? Placement{} : Placement{.rank = ranks->rank(), .ranks = ranks->size()};
}

Among share_update(Optimizer& optimizer, Model& model, const SftConfig& config, Ranks* ranks) {
  Among among{.ranks = ranks, .reduce = config.reduce, .shard = config.shard};
  if (!among.several()) return among;
  const bool by_owner = config.shard == Shard::gradients || config.reduce == Reduce::micro;
  optimizer.shard_over(*ranks, by_owner ? Shard::gradients : Shard::moments, model.bf16_copies());
  among.owners = optimizer.owners();
  return among;
}

void say_low(const SftPhase& phase, double loss, double bound, int64_t updates, const SftPhase& next) {
  log(str("sft: ", printable(phase.name), ": loss ", fixed(loss, 4), " is below ", bound, " after ", updates, " of ",
          phase.steps, " updates, on to ", printable(next.name)));
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
  return json.dump();
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

// What must be the same on all ranks.
std::vector<std::string> lines_of_ranks(const std::string& fingerprint, const std::string& out) {
  std::vector<std::string> lines = {str("out = ", out)};
  for (std::string& line : split(fingerprint, '\n'))
    if (!line.empty() && !line.starts_with("threads = ")) lines.push_back(std::move(line));
  return lines;
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
                    const std::function<void(const SftStep&)>& on_step, SftKeeper* keeper,
                    const std::function<void(int64_t progress)>& on_begin, Ranks* ranks,
                    const std::function<void(const Optimizer&)>& on_end) {
  SftResult result;
  for (const SftPhase& phase : phases) {
    if (phase.examples.empty()) throw Error(ErrorKind::empty, str(printable(phase.name), ": no examples"));
    result.planned += phase.steps;
  }
  double began = now_seconds();
  Optimizer optimizer(model.trainable(), config.optimizer, Optimizer::Path::by_device, placement_of(ranks));
  const Among among = share_update(optimizer, model, config, ranks);
  SftProgress at;
  if (keeper != nullptr) keeper->begin(optimizer, at);
  const auto planned_before = [&](int64_t phase) {
    return std::accumulate(phases.begin(), phases.begin() + phase, int64_t{0},
                           [](int64_t sum, const SftPhase& before) { return sum + before.steps; });
  };
  if (on_begin) on_begin(planned_before(at.phase) + at.update);
  const auto last = static_cast<int64_t>(phases.size()) - 1;
  for (; at.phase <= last; at.recent.clear()) {
    const SftPhase& phase = phases[static_cast<size_t>(at.phase)];
    const int64_t start = planned_before(at.phase);  // where the phase stands in the plan
    Batches batches(phase, at.phase, config, at.update);
    bool low = false;
    while (at.update < phase.steps && !low) {
      BatchLoss batch = batch_gradient(model, batches.next(), config.max_tokens, among);
      double lr = update_lr(config.optimizer, start + at.update, result.planned);
      StepResult update = optimizer.step(lr);
      model.refresh();
      at.result.tokens += batch.tokens;
      if (++at.result.steps == 1) at.result.first_loss = batch.loss;
      at.recent.push_back(batch.loss);
      if (at.recent.size() > kLossWindow) at.recent.pop_front();
      ++at.update;
      if (on_step) {
        on_step({at.result.steps, start + at.update, result.planned, at.phase, batch.loss, lr, update.grad_norm,
                 batch.tokens, update.applied});
      }
      at.skipped.note(update.applied, str("update ", at.result.steps), "the gradient",
                      str("lower optimizer.lr or check the data (loss ", batch.loss, ")"));
      at.result.skipped = at.skipped.total;
      low = at.phase < last && at.update < phase.steps && at.recent.size() == kLossWindow &&
            mean(at.recent) < config.phase_end_loss;
      if (low) {
        say_low(phase, mean(at.recent), config.phase_end_loss, at.update, phases[static_cast<size_t>(at.phase) + 1]);
        at.update = phase.steps;
      }
      if (keeper != nullptr) keeper->after_update(optimizer, at);
    }
    if (at.phase == last) break;
    ++at.phase;
    at.update = 0;
  }
  if (on_end) on_end(optimizer);
  at.result.planned = result.planned;
  at.result.last_loss = mean(at.recent);
  at.result.seconds = now_seconds() - began;
  return at.result;
}

SftResult run_sft(Model& model, const Tokenizer& tokenizer, const SftConfig& config, const std::string& out,
                  TrainObserver& observer, std::shared_ptr<Ranks> ranks) {
  const bool leads = ranks->leads();
  const std::vector<SftPhase> phases = ranks->together("reading the examples", [&] {
    config.validate();
    if (leads) check_output(out);
    require_sound_gpu(model);
    return read_phases(config, tokenizer, end_token(model, tokenizer, config.append_eos));
  });
  int64_t planned = 0;
  for (const SftPhase& phase : phases) {
    planned += phase.steps;
    log(str("sft: ", printable(phase.name, 400), ": ", grouped(static_cast<int64_t>(phase.examples.size())),
            " examples, ", grouped(phase.steps), " updates of ", config.batch_size));
  }
  std::string fingerprint;
  if (config.save_freq > 0 || !ranks->alone()) fingerprint = sft_fingerprint(model, config, phases);
  if (!ranks->alone()) require_same(*ranks, "comparing the ranks' fine-tunings", lines_of_ranks(fingerprint, out));
  std::optional<OutputDirectory> partial;
  ranks->together("creating the output", [&] {
    if (leads) partial.emplace(out);
  });
  std::optional<SftRun> run;
  if (config.save_freq > 0) run.emplace(sft_run_path(out), model, config, fingerprint, *ranks);
  std::string lines;  // without a run: those of sft.jsonl
  SftResult result = train_sft(
      model, phases, config,
      [&](const SftStep& s) {
        run ? run->step(log_line(s)) : void(lines += log_line(s) + "\n");
        observer.step(s.progress, shown(s), nullptr);
      },
      run ? &*run : nullptr, [&](int64_t progress) { observer.begin({"sft", out, progress, planned, 0, 0, true}); },
      ranks.get(),
      [&](const Optimizer& optimizer) {
        ranks->together("writing the weights", [&] {
          optimizer.with_masters(
              [&](const MasterValues& values) { save_model(model, partial->path(), tokenizer.directory(), values); });
        });
      });
  observer.end();
  ranks->together("writing the output", [&] {
    if (!leads) return;
    write_file(path_join(partial->path(), "sft.jsonl"), run ? run->log() : lines);
    write_file(path_join(partial->path(), "sft.toml"), to_toml(config));
    partial->put_in_place();
    if (run) remove_sft_run(run->path());
  });
  return result;
}

}  // namespace ucas
