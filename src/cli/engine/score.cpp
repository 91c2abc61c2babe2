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
#include "config/policy_options.h"
#include "data/rows/jsonl.h"
#include "hf/hub.h"
#include "rollout/policy.h"
#include "sharding/ranks.h"
#include "text/stop_texts.h"
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
  if (row.value.contains("id")) out.id = json_text(row.value.at("id"));
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

// How many of these rows have so many tokens together, but one at least.
size_t rows_at_once(std::span<const Row> rows, int64_t most_tokens) {
  size_t count = 0;
  for (int64_t tokens = 0; count < rows.size(); ++count) {
    tokens += rows[count].length();
    if (count > 0 && tokens > most_tokens) break;
  }
  return count;
}

struct ScoreWork {
  ScoreOptions options;
  std::string file;
  std::optional<Policy> policy;
  std::vector<Row> rows;
};

ScoreWork read_score_work(const Words& words) {
  const PolicyLine line = read_policy_line(words, {});
  ScoreWork work;
  ScoreOptions& options = work.options;
  ucas::apply(options, line.settings);
  options.dtype = decided(options.dtype, options.machine.device);
  if (line.positionals.size() != (options.model.empty() ? 2 : 1)) {
    throw Error(ErrorKind::usage, "expected MODEL and one FILE.jsonl of rows to score; see `ucas score --help`");
  }
  if (options.model.empty()) options.model = line.positionals[0];
  work.file = line.positionals.back();
  resolve_hub_names(options);
  use_threads(options.machine.threads);
  work.policy = open_policy(options.model, parse_device(options.machine.device), inference(options.dtype));
  require_sound_gpu(*work.policy->model);
  work.rows = read_rows(work.file, *work.policy);
  return work;
}

}  // namespace

int run_score(const Words& words) {
  if (rank_of_environment() > 0) return kDone;  // of several ranks the first does it all
  const ScoreWork work = read_score_work(words);
  int64_t total = 0, done = 0;
  for (const Row& row : work.rows) total += row.length();
  Progress progress("score", total, "tokens");
  std::string text;
  for (std::span<const Row> left = work.rows; !left.empty();) {
    const std::span<const Row> batch = left.first(rows_at_once(left, work.options.batch_tokens));
    text += score(batch, *work.policy, work.options.temperature);
    for (const Row& row : batch) done += row.length();
    left = left.subspan(batch.size());
    if (work.options.out.empty()) {
      if (!out(text)) return kDone;  // standard output has no reader
      text.clear();
    }
    progress.update(done);
  }
  progress.finish();
  if (!work.options.out.empty()) write_output(work.options.out, text);
  return kDone;
}

}  // namespace ucas
