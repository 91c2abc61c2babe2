#include <algorithm>
#include <map>

#include "base/embedded.h"
#include "base/str.h"
#include "explain/explain.h"

namespace ucas {

namespace {

// Options that cannot change what is learnt: where things are, what is written down, how work is cut into pieces.
bool is_neutral(const std::string& key) {
  static const std::vector<std::string> kKeys = {"label",
                                                 "model",
                                                 "device",
                                                 "threads",
                                                 "seed",
                                                 "data.files",
                                                 "data.val_files",
                                                 "data.val_limit",
                                                 "data.skip_bad_rows",
                                                 "rollout.max_slots",
                                                 "update.micro_batch_tokens",
                                                 "method.name",
                                                 "method.preset",
                                                 "train.save_freq",
                                                 "train.keep",
                                                 "train.test_freq",
                                                 "train.val_before_train",
                                                 "train.stored_prompts",
                                                 "train.stored_responses",
                                                 "train.max_hours"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

bool is_size(const std::string& key) {
  static const std::vector<std::string> kKeys = {"data.max_prompt_length",
                                                 "data.train_batch_size",
                                                 "data.gen_batch_size",
                                                 "data.max_num_gen_batches",
                                                 "rollout.n",
                                                 "rollout.response_length",
                                                 "update.mini_batch_size",
                                                 "train.steps",
                                                 "train.epochs",
                                                 "reward.overlong_buffer"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

std::string plain(const std::string& value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') return value.substr(1, value.size() - 2);
  return value.ends_with(".0") ? value.substr(0, value.size() - 2) : value;
}

TrainConfig bare(const std::string& method, const std::string& preset) {
  return make_train_config({{"method.name", method, "explain", false}, {"method.preset", preset, "explain", false}});
}

template <class Keep>
std::vector<Departure> only(std::vector<Departure> rows, Keep keep) {
  std::erase_if(rows, [&](const Departure& row) { return !keep(row); });
  return rows;
}

// The embedded configs with a paper's or a release's values of this method: the 7b ones, or whatever size there is.
std::vector<std::string> published(const std::string& method) {
  std::vector<std::string> all, of_7b;
  for (const std::string& file : embedded_names("configs/")) {
    std::string name = file.substr(8, file.size() - 13);
    if (name.find("-paper-") == std::string::npos && name.find("-released-") == std::string::npos) continue;
    if (make_train_config(read_config_file(name)).method_name != method) continue;
    if (name.ends_with("-7b")) of_7b.push_back(name);
    all.push_back(std::move(name));
  }
  return of_7b.empty() ? all : of_7b;
}

bool is_method_part(const Departure& row) {
  return row.key.starts_with("method.") || row.key.starts_with("objective.");
}

}  // namespace

std::vector<Departure> departures(const TrainConfig& here, const TrainConfig& there) {
  std::map<std::string, FieldValue> other;
  for (FieldValue& f : fields_of(there)) other[f.key] = std::move(f);
  std::vector<Departure> rows;
  for (const FieldValue& f : fields_of(here)) {
    auto at = other.find(f.key);
    std::string value = at == other.end() ? "-" : at->second.value;
    if (at != other.end()) other.erase(at);
    if (value == f.value || is_neutral(f.key)) continue;
    rows.push_back({f.key, plain(f.value), plain(value), f.help, is_size(f.key)});
  }
  for (const auto& [key, f] : other) {  // options of the other method
    if (!is_neutral(key)) rows.push_back({key, "-", plain(f.value), f.help, is_size(key)});
  }
  return rows;
}

std::vector<Departures> explain_comparisons(const TrainConfig& config, const std::string& name) {
  std::vector<Departures> comparisons;
  for (const std::string& preset : config.method->row().presets) {
    comparisons.push_back({str("preset ", preset, " of ", config.method_name),
                           preset == config.method_preset ? "in use" : "",
                           only(departures(config, bare(config.method_name, preset)), is_method_part)});
  }
  comparisons.push_back({"the program's defaults", "reward, data, rollout, update, optimizer",
                         only(departures(config, bare(config.method_name, config.method_preset)),
                              [](const Departure& row) { return !is_method_part(row); })});
  for (const std::string& other : published(config.method_name)) {
    if (other == name) continue;
    comparisons.push_back({other, "", departures(config, make_train_config(read_config_file(other)))});
  }
  return comparisons;
}

}  // namespace ucas
