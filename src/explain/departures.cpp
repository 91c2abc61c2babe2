#include <algorithm>
#include <map>

#include "base/str.h"
#include "explain/explain.h"

namespace ucas {

namespace {

// The page says what the method and its preset are, and departures are of the rest.
bool is_left_out(const FieldValue& f) {
  return !is_departure(f.effect) || f.key == "method.name" || f.key == "method.preset";
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
  for (const std::string& name : config_names()) {
    if (name.find("-paper-") == std::string::npos && name.find("-released-") == std::string::npos) continue;
    if (make_train_config(read_config_file(name)).method_name != method) continue;
    if (name.ends_with("-7b")) of_7b.push_back(name);
    all.push_back(name);
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
    if (value == f.value || is_left_out(f)) continue;
    rows.push_back({f.key, plain(f.value), plain(value), f.help, f.effect == Effect::size});
  }
  for (const auto& [key, f] : other) {  // options of the other method
    if (!is_left_out(f)) rows.push_back({key, "-", plain(f.value), f.help, f.effect == Effect::size});
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
