#include "train/state/train_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json.h"

namespace ucas {
namespace {

TrainState some_state() {
  TrainState s;
  s.step = 7;
  s.cursor = {1, 12, 3};
  s.best = {3, -0.5};
  s.skipped.total = 2;
  s.skipped.in_a_row = 1;
  s.empty_steps = 1;
  s.entropy_coeff = 0.1;
  s.auxiliary_models["reference"]["kl_coeff"] = 0.125;
  s.fingerprint = "a = 1\nb = 2\n";
  return s;
}

TEST(train_state, reads_back_as_it_was_written) {
  const std::string text = some_state().json();
  const TrainState s = TrainState::parse(text, "state.json", 7);
  EXPECT_EQ(s.json(), text);
  EXPECT_EQ(s.cursor.index, 12);
  EXPECT_EQ(s.entropy_coeff, 0.1);
  EXPECT_EQ(s.auxiliary_models.at("reference").at("kl_coeff"), 0.125);
}

TEST(train_state, a_value_that_no_run_can_have_is_refused_by_its_key) {
  struct Row {
    const char *key, *value;
  };
  const Row rows[] = {{"step", "6"},
                      {"step", "-1"},
                      {"step", "1e300"},
                      {"step", "1.5"},
                      {"step", "\"7\""},
                      {"step", "null"},
                      {"step", "18446744073709551615"},
                      {"index", "-1"},
                      {"epoch", "-1"},
                      {"epoch", "4611686018427387904"},
                      {"fruitless", "true"},
                      {"empty_steps", "[]"},
                      {"skipped_steps", "-3"},
                      {"fingerprint", "7"},
                      {"fingerprint", "null"},
                      {"entropy_coeff", "-0.1"},
                      {"entropy_coeff", "null"},
                      {"best", "7"},
                      {"best", "{\"step\": 8, \"value\": 1}"},
                      {"best", "{\"step\": 3, \"value\": null}"},
                      {"auxiliary_models", "[]"},
                      {"auxiliary_models", "{\"reference\": 1}"},
                      {"auxiliary_models", "{\"reference\": {\"kl_coeff\": -1}}"},
                      {"auxiliary_models", "{\"critic\": {\"skipped_updates\": 1e300}}"}};
  for (const Row& row : rows) {
    Json json = Json::parse(some_state().json());
    json[row.key] = Json::parse(row.value);
    try {
      TrainState::parse(json.dump(), "DIR/state.json", 7);
      ADD_FAILURE() << row.key << " = " << row.value << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.word(), "schema");
      EXPECT_NE(std::string(error.what()).find("DIR/state.json: "), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.key), std::string::npos) << error.what();
    }
  }
}

TEST(train_state, a_key_that_is_missing_is_named) {
  const Json whole = Json::parse(some_state().json());
  for (const char* key :
       {"step", "epoch", "index", "fruitless", "skipped_steps", "empty_steps", "auxiliary_models", "fingerprint"}) {
    Json json = whole;
    json.erase(key);
    EXPECT_THROW(TrainState::parse(json.dump(), "state.json", 7), Error) << key;
  }
  for (const char* text : {"[]", "7", "null"}) EXPECT_THROW(TrainState::parse(text, "state.json", 7), Error) << text;
}

}  // namespace
}  // namespace ucas
