#include "train/state/train_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"
#include "base/text/json_object.h"

namespace ucas {

namespace {

constexpr int64_t kMostCounted = int64_t{1} << 50;  // of anything that is counted: exact as a double, too

int64_t count_of(const JsonObject& state, const char* key) { return state.whole(key, 0, kMostCounted); }

// Counters and coefficients: none is negative.
double value_from_zero(const JsonObject& state, const std::string& key) {
  const double number = state.number(key);
  if (!(number >= 0 && number <= static_cast<double>(kMostCounted))) state.refuse(key, "a number from 0");
  return number;
}

// [[a, b, ..], ..]: rows of `width` counts.
std::vector<std::vector<int64_t>> rows_of(const JsonObject& state, const char* key, size_t width,
                                          const std::string& of) {
  std::vector<std::vector<int64_t>> rows;
  if (!state.has(key)) state.refuse(key, str("a list of ", of));
  const Json& list = *state.find(key);
  const auto counted = [](const Json& value) {
    return value.is_number_integer() && value >= Json(0) && value <= Json(kMostCounted);
  };
  if (!list.is_array()) state.refuse(key, str("a list of ", of));
  for (const Json& row : list) {
    const bool good = row.is_array() && row.size() == width && std::ranges::all_of(row, counted);
    if (!good) state.refuse(key, of);
    rows.push_back(row.get<std::vector<int64_t>>());
  }
  return rows;
}

// Where the problems stand that rest, were asked before, or are of sources with weights.
void read_history(const JsonObject& state, int64_t step, DataCursor& cursor) {
  if (state.json().contains("solved")) {
    const std::string pairs = str("pairs of a problem and a step up to ", step);
    for (const auto& row : rows_of(state, "solved", 2, pairs)) {
      if (row[1] > step) state.refuse("solved", pairs);
      cursor.solved[row[0]] = row[1];
    }
  }
  if (state.json().contains("seen")) {
    const std::string counts = "a problem, its right responses and all of them";
    for (const auto& row : rows_of(state, "seen", 3, counts)) {
      if (row[1] > row[2]) state.refuse("seen", counts);
      cursor.seen[row[0]] = {row[1], row[2]};
    }
  }
  if (!state.json().contains("sources")) return;
  for (const auto& row : rows_of(state, "sources", 2, "pairs of a place and prompts drawn")) {
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
    if (json.is_object() && json.contains(before)) json[now] = json[before];
  }
  const JsonObject state(json, file, ErrorKind::schema);
  TrainState s;
  s.step = count_of(state, "step");
  if (s.step != step) state.refuse("step", str(step, ", the checkpoint's"));
  s.cursor = {count_of(state, "epoch"), count_of(state, "index"), count_of(state, "fruitless")};
  read_history(state, s.step, s.cursor);
  if (json.contains("ended")) s.ended = state.text("ended");
  if (json.contains("carry_over")) s.carried_over = count_of(state, "carry_over");
  s.skipped.total = count_of(state, "skipped_steps");
  s.empty_steps = count_of(state, "empty_steps");
  s.skipped.in_a_row = count_of(state, "nonfinite_streak");
  s.fingerprint = state.text("fingerprint");
  if (json.contains("entropy_coeff")) s.entropy_coeff = value_from_zero(state, "entropy_coeff");
  if (json.contains("best")) {
    const JsonObject best = state.child("best");
    s.best = {count_of(best, "step"), best.number("value"), count_of(best, "since")};
    if (!best.has("value")) best.refuse("value", "a number");
    if (s.best.step > s.step) best.refuse("step", str("at most ", s.step, ", the checkpoint's"));
  }
  if (!json.contains("auxiliary_models")) return s;  // of earlier versions
  const JsonObject models = state.child("auxiliary_models");
  for (const std::string& name : models.keys()) {
    const JsonObject values = models.child(name);
    for (const std::string& key : values.keys()) s.auxiliary_models[name][key] = value_from_zero(values, key);
  }
  return s;
}

}  // namespace ucas
