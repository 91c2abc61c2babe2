// What goes beside the weights of a run when they leave it: README.md with the front matter that the Hugging Face Hub
// reads. Names in it come from people, files and models; each is escaped for where it stands. Fed by a run directory;
// written by `ucas export`. Threads: any; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace ucas {

// What is said of the model beside its run. Identifiers are a hub's, ORG/NAME.
struct ModelCard {
  std::string name, base_model;
  std::vector<std::string> datasets;  // that it was trained on
  int64_t step = 0;
  bool adapter = false;
};

std::string model_card(const ModelCard& card, const RunRecord& run);
std::string yaml_text(const std::string& text);  // any text as one scalar

}  // namespace ucas
