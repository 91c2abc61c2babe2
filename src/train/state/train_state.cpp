#include "train/state/train_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "base/text/json.h"

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
  if (best.step > 0) state["best"] = {{"step", best.step}, {"value", best.value}};
  return json_text(state, 1) + "\n";
}

TrainState TrainState::parse(const std::string& text, const std::string& file, int64_t step) {
  const Json json = parse_json(text, file);
  const JsonObject state(json, file, ErrorKind::schema);
  TrainState s;
  s.step = count_of(state, "step");
  if (s.step != step) state.refuse("step", str(step, ", the checkpoint's"));
  s.cursor = {count_of(state, "epoch"), count_of(state, "index"), count_of(state, "fruitless")};
  s.skipped.total = count_of(state, "skipped_steps");
  s.empty_steps = count_of(state, "empty_steps");
  s.skipped.in_a_row = count_of(state, "nonfinite_streak");
  s.fingerprint = state.text("fingerprint");
  if (json.contains("entropy_coeff")) s.entropy_coeff = value_from_zero(state, "entropy_coeff");
  if (json.contains("best")) {
    const JsonObject best = state.child("best");
    s.best = {count_of(best, "step"), best.number("value")};
    if (!best.has("value")) best.refuse("value", "a number");
    if (s.best.step > s.step) best.refuse("step", str("at most ", s.step, ", the checkpoint's"));
  }
  const JsonObject models = state.child("auxiliary_models");
  for (const std::string& name : models.keys()) {
    const JsonObject values = models.child(name);
    for (const std::string& key : values.keys()) s.auxiliary_models[name][key] = value_from_zero(values, key);
  }
  return s;
}

}  // namespace ucas
