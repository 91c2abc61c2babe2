// One demonstration end to end: task -> base -> RLVR per method and seed -> evaluation -> report. What differs between
// the embedded task and a pretrained model is virtual.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options/demo_config.h"
#include "config/train_config.h"
#include "progress/train_progress.h"

namespace ucas {

// Paths of everything that a demonstration writes.
struct DemoPlaces {
  std::string out;
  std::string task() const;
  std::string base() const;  // the run directory of the untrained model
  std::string run(const std::string& method, int64_t seed) const;
  std::string report() const;
};

class Demo {
 public:
  Demo(const DemoOptions& options, ProgressMode progress);
  virtual ~Demo() = default;
  int run();

 protected:
  virtual std::string title() const = 0;       // of the report
  virtual std::string task_stage() const = 0;  // what is said before make_task()
  virtual std::string base_stage() const = 0;
  virtual void make_task() = 0;
  // Makes and evaluates the base; returns the run directories that speak for it in the report.
  virtual std::vector<std::string> make_base() = 0;
  virtual TrainConfig train_config(const std::string& method, int64_t seed) const = 0;
  virtual void evaluate(const std::string& run, const std::string& model, const std::string& label, int64_t step) = 0;
  // What is said below the table; `trained`: the run directories of the trainings, `models`: their checkpoints.
  virtual void say_more(const std::vector<std::string>& trained, const std::vector<std::string>& models) const {}
  // The options as a text: results of others must not be mixed in; more seeds or methods may be added.
  virtual std::string options_text() const = 0;

  // What all options_text() leave out.
  static void leave_out_common(DemoOptions& options);

  DemoPlaces places_;
  ProgressMode progress_;

 private:
  void stage(const std::string& what);
  void claim_directory() const;

  DemoOptions options_;
  int64_t stage_ = 0;
};

std::unique_ptr<Demo> make_pretrained_demo(const PretrainedDemoConfig& config, ProgressMode progress);

}  // namespace ucas
