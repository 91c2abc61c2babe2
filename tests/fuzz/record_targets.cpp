// What a run leaves on disk: logs, responses, figures, cards, the state of a checkpoint.
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "fuzz/target.h"
#include "records/evaluation.h"
#include "records/outputs.h"
#include "records/run/manifest.h"
#include "records/run/rollouts.h"
#include "records/run/run_directory.h"
#include "records/run/step_data.h"
#include "records/run/steps.h"
#include "records/run_record.h"
#include "train/state/train_state.h"

namespace ucas::fuzz {

namespace {

void steps(std::string_view input) {
  std::vector<std::string> remarks;
  read_steps(put("steps.jsonl", input), remarks);
}

void sft_steps(std::string_view input) {
  std::vector<std::string> remarks;
  read_sft_steps(put("sft.jsonl", input), remarks);
}

void rollouts(std::string_view input) {
  std::vector<std::string> remarks;
  for (const StoredResponse& response : read_rollouts(put("rollouts.jsonl", input), remarks)) rollout_line(response);
}

void step_data(std::string_view input) {
  const StepData data = read_step_data(put("step.jsonl", input));
  require(!step_data_lines(data).empty(), "a step that cannot be written");
  leading_groups(data.batch, 10);
}

void outputs(std::string_view input) {
  const StoredOutputs stored = read_outputs(put("x.outputs.jsonl", input));
  for (const Output& output : stored.outputs) to_json_line(output);
  to_json_line(stored.settings);
}

void environment(std::string_view input) {
  const std::string path = put("env.json", input);
  read_environment(path);
  read_remarks(path);
  add_remark(path, "a remark");
}

void read_figures() {
  std::vector<std::string> missing, remarks;
  const EvalRecord record = read_evaluation(scratch() + "/eval", "x", missing, remarks);
  to_json(record);
  to_jsonl(record);
}

// An evaluation is two files; the other one is as it should be.
void figures(std::string_view input) {
  std::filesystem::create_directories(scratch() + "/eval");
  put("eval/x.jsonl", read_file(support("eval.jsonl")));
  put("eval/x.json", input);
  read_figures();
}

void figure_rows(std::string_view input) {
  std::filesystem::create_directories(scratch() + "/eval");
  put("eval/x.json", read_file(support("eval.json")));
  put("eval/x.jsonl", input);
  read_figures();
}

void run(std::string_view input) {
  std::filesystem::create_directories(scratch() + "/run");
  put("run/steps.jsonl", "{\"training/global_step\": 1}\n");
  const size_t split = input.find('\x1f');
  put("run/config.toml", input.substr(0, split));
  put("run/study.json", split == std::string_view::npos ? "{\"row\": \"x\"}" : input.substr(split + 1));
  read_run(scratch() + "/run");
}

void manifest(std::string_view input) {
  std::filesystem::create_directories(scratch() + "/sealed/state");
  put("sealed/model.safetensors", "weights");
  put("sealed/state/manifest.json", input);
  for (const bool deep : {false, true}) check_seal(scratch() + "/sealed", deep);
}

void state(std::string_view input) {
  const TrainState found = TrainState::parse(std::string(input), "state.json", 3);
  require(TrainState::parse(found.json(), "state.json", 3).json() == found.json(),
          "a state that changes when it is saved");
}

}  // namespace

std::vector<Target> record_targets() {
  return {{"steps", steps},     {"sft_steps", sft_steps},     {"rollouts", rollouts}, {"step_data", step_data},
          {"outputs", outputs}, {"environment", environment}, {"figures", figures},   {"figure_rows", figure_rows},
          {"run", run},         {"manifest", manifest},       {"state", state}};
}

}  // namespace ucas::fuzz
