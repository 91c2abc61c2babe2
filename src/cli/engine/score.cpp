#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "cli/command.h"
#include "cli/engine/speaking.h"
#include "config/policy_options.h"
#include "data/rows/jsonl.h"
#include "hf/hub.h"
#include "rollout/policy.h"
#include "sharding/agreement.h"
#include "text/stop_texts.h"
#include "train/state/fingerprint.h"
#include "train/update/self_check.h"

namespace ucas {

namespace {

struct Row {
  int64_t line = 0;
  std::string id;  // JSON text, "" if the row has none
  std::vector<int32_t> prompt, response;
  int64_t length() const { return static_cast<int64_t>(prompt.size() + response.size()); }
};

std::vector<int32_t> tokens_of(const JsonRow& row, const std::string& key, const Policy& policy) {
  const std::string ids_key = key + "_ids";
  if (row.value.contains(ids_key)) return ids_field(row, ids_key, policy.model->config().vocab_size);
  if (!row.value.contains(key)) {
    throw Error(ErrorKind::data_line, str(row.where, ": neither \"", key, "\" nor \"", ids_key, "\" is there"));
  }
  const std::string text = text_field(row, key);
  if (key == "prompt") return policy.tokenizer.encode_prompt(text);
  return policy.tokenizer.encode(text, Tokenizer::Special::parse, Tokenizer::Place::later);
}

Row read_row(const JsonRow& row, const Policy& policy) {
  Row out;
  out.line = row.line;
  if (row.value.contains("id")) out.id = row.value.at("id").dump(-1, ' ', false, Json::error_handler_t::replace);
  out.prompt = tokens_of(row, "prompt", policy);
  out.response = tokens_of(row, "response", policy);
  if (out.prompt.empty()) {
    throw Error(ErrorKind::data_line,
                str(row.where, ": the prompt has no tokens; the first token of a response needs one before it"));
  }
  const int64_t positions = policy.model->config().max_position_embeddings;
  if (out.length() > positions) {
    throw Error(ErrorKind::data_line, str(row.where, ": prompt and response have ", out.length(), " tokens, the model ",
                                          positions, " positions (max_position_embeddings)"));
  }
  return out;
}

std::string numbers(const at::Tensor& values, int64_t first, int64_t count, const Row& row) {
  std::string text = "[";
  const float* data = values.const_data_ptr<float>() + first;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(data[i])) {
      throw Error(ErrorKind::numeric,
                  str("line ", row.line, ": token ", i + 1, " of the response gives ", data[i],
                      "; the checkpoint holds non-finite or huge weights"),
                  kNumeric);
    }
    if (i > 0) text += ", ";
    append(text, data[i]);
  }
  return text + "]";
}

// One line of JSON per row.
std::string score(std::span<const Row> rows, const Policy& policy, double temperature) {
  const at::NoGradGuard no_grad;
  Packed packed;
  for (const Row& row : rows) packed.append(row.prompt, row.response);
  const at::Tensor hidden = policy.model->hidden(packed);
  std::vector<at::Tensor> parts;  // the position before each response token predicts it
  std::vector<int32_t> target;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto prompt = static_cast<int64_t>(rows[i].prompt.size());
    parts.push_back(hidden.narrow(0, packed.begin[i] + prompt - 1, static_cast<int64_t>(rows[i].response.size())));
    target.insert(target.end(), rows[i].response.begin(), rows[i].response.end());
  }
  HeadStats stats;
  if (!target.empty()) stats = policy.model->head().stats(at::cat(parts), target, temperature);
  std::string text;
  int64_t first = 0;
  for (const Row& row : rows) {
    const auto count = static_cast<int64_t>(row.response.size());
    std::string ids;
    for (int32_t id : row.response) ids += str(ids.empty() ? "" : ", ", id);
    text += str("{\"line\": ", row.line, row.id.empty() ? "" : str(", \"id\": ", row.id), ", \"ids\": [", ids, "]");
    const std::pair<const char*, at::Tensor> columns[] = {{"logprob", stats.logprob},
                                                          {"entropy", stats.entropy},
                                                          {"confidence", stats.confidence},
                                                          {"logit", stats.logit}};
    for (const auto& [name, values] : columns) {
      text += str(", \"", name, "\": ", count == 0 ? "[]" : numbers(values.cpu().contiguous(), first, count, row));
    }
    text += "}\n";
    first += count;
  }
  return text;
}

std::vector<Row> read_rows(const std::string& path, const Policy& policy) {
  std::vector<Row> rows;
  UnencodableRows unencodable(policy.tokenizer);
  read_json_lines(path, BadRows::stop, [&](const JsonRow& row) {
    rows.push_back(read_row(row, policy));
    for (const char* key : {"prompt", "response"}) {
      if (!row.value.contains(str(key, "_ids"))) unencodable.look_at(text_field(row, key), row.where);
    }
  });
  unencodable.say("rows", std::ssize(rows));
  return rows;
}

// Rows in order, as many at a time as have so many tokens together.
std::vector<RankShare> batches_of(const std::vector<Row>& rows, int64_t most_tokens) {
  std::vector<RankShare> batches;
  for (int64_t next = 0; next < std::ssize(rows);) {
    RankShare batch{next, next};
    int64_t tokens = 0;
    while (next < std::ssize(rows) && (batch.last == batch.first || tokens + rows[next].length() <= most_tokens)) {
      tokens += rows[next].length();
      batch.last = ++next;
    }
    batches.push_back(batch);
  }
  return batches;
}

struct ScoreWork {
  ScoreOptions options;
  std::string file;
  std::optional<Policy> policy;
  std::vector<Row> rows;
};

ScoreWork read_score_work(const Words& words, const Ranks& ranks) {
  const PolicyLine line = read_policy_line(words, {});
  ScoreWork work;
  ScoreOptions& options = work.options;
  ucas::apply(options, line.settings);
  options.dtype = decided(options.dtype, options.machine.device);
  if (options.model.empty()) throw Error(ErrorKind::usage, "--model DIR is missing; see `ucas score --help`");
  if (line.positionals.size() != 1)
    throw Error(ErrorKind::usage, "give one FILE.jsonl of rows to score; see `ucas score --help`");
  work.file = line.positionals[0];
  resolve_hub_names(options);
  if (!ranks.alone()) {
    options.machine.device = device_of_rank(options.machine.device, ranks.place().local, visible_cuda_devices());
  }
  use_threads(options.machine.threads);
  work.policy = open_policy(options.model, parse_device(options.machine.device), inference(options.dtype));
  require_sound_gpu(*work.policy->model);
  work.rows = read_rows(work.file, *work.policy);
  return work;
}

// What several ranks must have in common.
std::vector<std::string> lines_of(const ScoreWork& work) {
  std::string ids;
  for (const Row& row : work.rows) {
    for (const std::vector<int32_t>* list : {&row.prompt, &row.response}) {
      ids += str(list->size(), " ");
      ids.append(reinterpret_cast<const char*>(list->data()), list->size() * sizeof(int32_t));
    }
  }
  return {str("weights (hash) = ", hash_of_model(work.options.model)), str("rows (hash) = ", hash_of_text(ids)),
          str("dtype = ", word_of(work.options.dtype)), str("temperature = ", work.options.temperature),
          str("batch_tokens = ", work.options.batch_tokens)};
}

// The batches of a wave, one for each rank, side by side; rank 0 writes them in order.
int score_rows(ScoreWork work, Ranks& ranks) {
  int64_t total = 0, done = 0;
  for (const Row& row : work.rows) total += row.length();
  const std::vector<RankShare> batches = batches_of(work.rows, work.options.batch_tokens);
  std::optional<Progress> progress;
  if (ranks.leads()) progress.emplace("score", total, "tokens");
  std::string text;
  for (size_t wave = 0; wave < batches.size(); wave += static_cast<size_t>(ranks.size())) {
    const size_t own = wave + static_cast<size_t>(ranks.rank()),
                 end = std::min(wave + static_cast<size_t>(ranks.size()), batches.size());
    const std::string mine = ranks.together("scoring rows", [&] {
      if (own >= batches.size()) return std::string();
      return score(std::span(work.rows).subspan(batches[own].first, batches[own].last - batches[own].first),
                   *work.policy, work.options.temperature);
    });
    for (const std::string& part : ranks.all_gather("scores of rows", mine)) text += part;
    for (size_t batch = wave; batch < end; ++batch) {
      for (int64_t row = batches[batch].first; row < batches[batch].last; ++row) done += work.rows[row].length();
    }
    if (!ranks.leads()) text.clear();
    bool read = true;  // standard output still has a reader
    if (ranks.leads() && work.options.out.empty()) {
      read = out(text);
      text.clear();
    }
    if (progress) progress->update(done);
    if (ranks.any("whether standard output is closed", !read)) return kDone;
  }
  if (!ranks.leads()) return kDone;
  progress->finish();
  if (!work.options.out.empty()) write_output(work.options.out, text);
  return kDone;
}

}  // namespace

int run_score(const Words& words) {
  return speaking_once([&](const std::shared_ptr<Ranks>& ranks) {
    std::vector<std::string> lines;
    ScoreWork work = ranks->together("reading the rows", [&] {
      ScoreWork read = read_score_work(words, *ranks);
      if (!ranks->alone()) lines = lines_of(read);
      return read;
    });
    if (!ranks->alone()) require_same(*ranks, "comparing the ranks' rows", lines);
    return score_rows(std::move(work), *ranks);
  });
}

}  // namespace ucas
