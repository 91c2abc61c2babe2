#include "train/state/train_state.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr int64_t kMostCounted = int64_t{1} << 50;  // of anything that is counted: exact as a double, too

struct Reader {
  const Json& json;
  const std::string& file;
  const char* within = "";  // "best."

  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
    const std::string got = json.is_object() && json.contains(key) ? json[key].dump() : "nothing";
    throw Error(ErrorKind::schema,
                str(file, ": ", within, printable(key), " is ", printable(got, 40), ", expected ", expected));
  }
  int64_t count(const std::string& key) const {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer() || json[key] < Json(0) ||
        json[key] > Json(kMostCounted)) {
      refuse(key, "a whole number from 0");
    }
    return json[key].get<int64_t>();
  }
  double number(const std::string& key) const {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number()) refuse(key, "a number");
    return json[key].get<double>();
  }
  std::string text(const std::string& key) const {
    if (!json.is_object() || !json.contains(key) || !json[key].is_string()) refuse(key, "text");
    return json[key].get<std::string>();
  }
};

// Counters and coefficients: none is negative.
double value_from_zero(const Json& value, const std::string& name, const std::string& file) {
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number >= 0 && number <= static_cast<double>(kMostCounted)) return number;
  throw Error(ErrorKind::schema,
              str(file, ": ", printable(name), " is ", printable(value.dump(), 40), ", expected a number from 0"));
}

// [[a, b, ..], ..]: rows of `width` counts.
std::vector<std::vector<int64_t>> rows_of(const Reader& reader, const char* key, size_t width, const std::string& of) {
  std::vector<std::vector<int64_t>> rows;
  const Json& list = reader.json[key];
  const auto counted = [](const Json& value) {
    return value.is_number_integer() && value >= Json(0) && value <= Json(kMostCounted);
  };
  if (!list.is_array()) reader.refuse(key, str("a list of ", of));
  for (const Json& row : list) {
    const bool good = row.is_array() && row.size() == width && std::ranges::all_of(row, counted);
    if (!good) reader.refuse(key, of);
    rows.push_back(row.get<std::vector<int64_t>>());
  }
  return rows;
}

// Where the problems stand that rest, were asked before, or are of sources with weights.
void read_history(const Reader& reader, int64_t step, DataCursor& cursor) {
  if (reader.json.contains("solved")) {
    const std::string pairs = str("pairs of a problem and a step up to ", step);
    for (const auto& row : rows_of(reader, "solved", 2, pairs)) {
      if (row[1] > step) reader.refuse("solved", pairs);
      cursor.solved[row[0]] = row[1];
    }
  }
  if (reader.json.contains("seen")) {
    const std::string counts = "a problem, its right responses and all of them";
    for (const auto& row : rows_of(reader, "seen", 3, counts)) {
      if (row[1] > row[2]) reader.refuse("seen", counts);
      cursor.seen[row[0]] = {row[1], row[2]};
    }
  }
  if (!reader.json.contains("sources")) return;
  for (const auto& row : rows_of(reader, "sources", 2, "pairs of a place and prompts drawn")) {
    cursor.of_source.push_back({row[0], row[1]});
  }
}

}  // namespace

std::string TrainState::json() const {
  OrderedJson state = {{"format", 1},
                       {"step", step},
                       {"epoch", cursor.epoch},
                       {"index", cursor.index},
                       {"fruitless", cursor.fruitless},
                       {"skipped_steps", skipped.total},
                       {"empty_steps", empty_steps},
                       {"nonfinite_streak", skipped.in_a_row},
                       {"auxiliary_models", auxiliary_models},
                       {"fingerprint", fingerprint}};
  if (entropy_coeff) state["entropy_coeff"] = *entropy_coeff;
  if (!cursor.solved.empty()) {
    state["solved"] = OrderedJson::array();
    for (const auto& [problem, at] : cursor.solved) state["solved"].push_back({problem, at});
  }
  for (const auto& [problem, last] : cursor.seen) state["seen"].push_back({problem, last.right, last.responses});
  for (const SourceProgress& turn : cursor.of_source) state["sources"].push_back({turn.position, turn.selected});
  if (!cursor.carry_over.groups.empty()) state["carry_over"] = cursor.carry_over.groups.size();
  if (!ended.empty()) state["ended"] = ended;
  if (best.step > 0) state["best"] = {{"step", best.step}, {"value", best.value}, {"since", best.since}};
  return state.dump(1) + "\n";
}

TrainState TrainState::parse(const std::string& text, const std::string& file, int64_t step) {
  Json json = parse_json(text, file);
  // Their names before 0.2.0.
  for (const auto& [before, now] : {std::pair{"companions", "auxiliary_models"}, std::pair{"surplus", "carry_over"}}) {
    if (json.contains(before)) json[now] = json[before];
  }
  const Reader reader{json, file};
  TrainState s;
  s.step = reader.count("step");
  if (s.step != step) reader.refuse("step", str(step, ", the checkpoint's"));
  s.cursor = {reader.count("epoch"), reader.count("index"), reader.count("fruitless")};
  read_history(reader, s.step, s.cursor);
  if (json.contains("ended")) s.ended = reader.text("ended");
  if (json.contains("carry_over")) s.carried_over = reader.count("carry_over");
  s.skipped.total = reader.count("skipped_steps");
  s.empty_steps = reader.count("empty_steps");
  s.skipped.in_a_row = reader.count("nonfinite_streak");
  s.fingerprint = reader.text("fingerprint");
  if (json.contains("entropy_coeff")) s.entropy_coeff = value_from_zero(json["entropy_coeff"], "entropy_coeff", file);
  if (json.contains("best")) {
    const Reader of_best{json["best"], file, "best."};
    s.best = {of_best.count("step"), of_best.number("value"), of_best.count("since")};
    if (s.best.step > s.step) of_best.refuse("step", str("at most ", s.step, ", the checkpoint's"));
  }
  if (!json.contains("auxiliary_models")) return s;  // of earlier versions
  if (!json["auxiliary_models"].is_object()) reader.refuse("auxiliary_models", "an object");
  for (const auto& [name, values] : json["auxiliary_models"].items()) {
    if (!values.is_object()) reader.refuse("auxiliary_models", "an object of objects");
    for (const auto& [key, value] : values.items()) {
      s.auxiliary_models[name][key] = value_from_zero(value, str("auxiliary_models: ", name, ".", key), file);
    }
  }
  return s;
}

}  // namespace ucas
