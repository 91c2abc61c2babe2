// Shapes of published models, so that a training can be planned before anything of the model is on this machine: a row
// each of what decides memory and time. Of a name of the hub the cache of huggingface_hub is looked into first.
// Nothing is fetched.
#pragma once

#include <optional>
#include <string>

#include "hf/model_config.h"

namespace ucas {

// By a name of the table, in any case, with or without ORG/ before it and -Instruct or -Base behind it; else nothing.
std::optional<ModelConfig> known_model(const std::string& name);

struct FoundModel {
  ModelConfig config;
  std::string from;  // for people: "the cache of huggingface_hub: PATH", "the table of known shapes"
};
// What --model says where no such directory is there: config.json of the newest snapshot in the hub's cache, or a known
// shape. Error(ErrorKind::path) with the nearest name where it is neither.
FoundModel model_of_hub_name(const std::string& name);

}  // namespace ucas
