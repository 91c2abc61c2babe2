// env.json of a run directory: version, machine, start, and what befell the run. Written by trainings, evaluations of
// other models and studies; any other keys of it are kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ucas {

std::string utc_now();  // "2026-01-31T12:00:00Z"

// A text that is empty is not written.
struct RunEnvironment {
  std::string label;    // of a model that was not trained here
  std::string version;  // of ucas
  std::string torch;    // of LibTorch
  std::string isa, isa_reason;
  std::string device;
  int64_t threads = 0;                         // 0: not written
  std::string started;                         // UTC, ISO 8601; see utc_now()
  std::string model, data;                     // as given by the user
  std::string method;                          // its title: "PPO (Open-Reasoner-Zero)"
  std::string command;                         // as it was typed
  std::string initial_weights, training_data;  // their hashes: runs that agree in both are seeds of one experiment
  std::string about;                           // what the model is, for people
  int64_t parameters = 0;                      // of the model; 0: not written
  int64_t planned_memory = 0;                  // bytes at the peak of a training (plan/plan.h); 0: not written
  int64_t rollout_slots = 0;                   // of a GPU: responses decoded at once; 0: not written
  int64_t rollout_cache_tokens = 0;            // that its key-value cache holds
  std::string checkpoint_saved;                // "no" at the start of a training, "yes" from its first checkpoint on
};

void write_environment(const std::string& file, const RunEnvironment& environment);

// Every key of the file as text (a list of texts joined by "; ").
std::map<std::string, std::string> read_environment(const std::string& file);

// What befell the run and must not be forgotten: the list `remarks`, each once, for every report to show.
std::vector<std::string> read_remarks(const std::string& file);
void add_remark(const std::string& file, const std::string& text);
void set_in_environment(const std::string& file, const std::string& key, const std::string& text);

}  // namespace ucas
