// What accompanies the weights of a run that are exported: README.md with the front matter that the Hugging Face Hub
// reads. Names in it come from people, files and models; each is escaped for its place. Fed by a run directory; written
// by `ucas export`. Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace ucas {

// What the card says of the model, besides its run. Identifiers are a hub's, ORG/NAME.
struct ModelCard {
  std::string name, base_model;
  std::vector<std::string> datasets;  // that it was trained on
  int64_t step = 0;
  bool adapter = false;
};

std::string model_card(const ModelCard& card, const RunRecord& run);
std::string yaml_text(const std::string& text);  // any text as one scalar

}  // namespace ucas
