// What a training config does, in the words and symbols of the papers: `ucas explain`. Facts come from the config, the
// method's own equations() and needs(), and the fields that every component declares; nothing here knows a method.
#pragma once

#include <string>
#include <vector>

#include "config/config_file.h"
#include "config/train_config.h"

namespace ucas {

// One row of the text. `formula` or `words` may be empty.
struct ExplainedLine {
  std::string where;    // "Eq. 8", or what the row is about: "responses"
  std::string formula;  // with this config's values
  std::string words;
};

struct ExplainedSection {
  std::string title;
  std::vector<ExplainedLine> lines;
};

// How A_it, the loss and the update come about, in the order in which a step works.
std::vector<ExplainedSection> explain_sections(const TrainConfig& config);

// One option that has another value elsewhere. Values as in the TOML file, without quotes.
struct Departure {
  std::string key, here, there;
  bool size = false;  // how much, not what: batch sizes, lengths, number of responses, epochs
};

// Against what: "preset released of ucas", "ucas-paper-7b" ...
struct Departures {
  std::string with;
  std::string note;  // "in use"
  std::vector<Departure> rows;
};

// Options that decide what is learnt and differ. Paths, labels, devices, seeds, what is logged and how work is cut are
// left out.
std::vector<Departure> departures(const TrainConfig& here, const TrainConfig& there);

// From every preset of the method, from the program's defaults, and from the embedded 7b configs of the same method;
// `name` is this config's own, which is left out.
std::vector<Departures> explain_comparisons(const TrainConfig& config, const std::string& name);

// Whether the method leaves the loss of a token to the clipped ratio (objective/loss/clipped_ratio.h). Found by asking
// it.
bool uses_clipped_ratio(const TrainConfig& config);

// A config as `ucas explain` was given it.
struct Explained {
  std::string name;  // a file, a run directory, an embedded name, or ""
  TrainConfig config;
  ConfigFile file;  // its comments
};
Explained read_explained(const std::string& name, const std::vector<Setting>& overrides);

std::string explain_text(const Explained& e);

}  // namespace ucas
