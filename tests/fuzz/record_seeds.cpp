// Seeds that only ucas itself can write: the files of a run and an evaluation. Run by seeds.py: ucas-fuzz-seeds FOLDER
#include <cstdio>

#include "base/files/file.h"
#include "base/str.h"
#include "records/evaluation.h"
#include "records/outputs.h"
#include "records/run/manifest.h"
#include "support/synthetic_run.h"
#include "support/temporary_directory.h"
#include "train/state/train_state.h"

namespace ucas::fuzz {

namespace {

void copy_as_seed(const std::string& folder, const std::string& target, const std::string& from) {
  const std::string name = path_join(folder, target);
  make_directories(name);
  write_file(path_join(name, str("written-", list_directory(name).size())), read_file(from));
}

void write_output_seed(const std::string& folder) {
  OutputSettings settings;
  settings.model = "0123", settings.keys = "problem";
  settings.sources = {{.name = "sums", .prompt_template = "plain", .prompts = "45", .stop_ids = {3}, .max_tokens = 8}};
  Output output;
  output.source = "sums", output.id = "1", output.text = "\\boxed{2}", output.ids = {1, 2, 3};
  output.finished = true, output.logprob = -0.5;
  std::string text = to_json_line(settings) + to_json_line(output);
  output.sample = kGreedySample;
  make_directories(path_join(folder, "outputs"));
  write_file(path_join(folder, "outputs/written"), text + to_json_line(output));
}

}  // namespace

void write_seeds(const std::string& folder) {
  const testing::TemporaryDirectory place;
  const std::string run = path_join(place.path(), "run");
  SyntheticRun synthetic{.label = "", .method = "ucas"};
  synthetic.steps = 3, synthetic.problems = 3, synthetic.sources = {"a", "b"};
  write_synthetic_run(run, synthetic);
  copy_as_seed(folder, "steps", path_join(run, "steps.jsonl"));
  copy_as_seed(folder, "environment", path_join(run, "env.json"));
  copy_as_seed(folder, "run", path_join(run, "config.toml"));
  copy_as_seed(folder, "figures", path_join(run, "eval/final.json"));
  copy_as_seed(folder, "figure_rows", path_join(run, "eval/final.jsonl"));
  write_file(path_join(folder, "support/eval.json"), read_file(path_join(run, "eval/final.json")));
  write_file(path_join(folder, "support/eval.jsonl"), read_file(path_join(run, "eval/final.jsonl")));
  copy_as_seed(folder, "rollouts", path_join(run, "rollouts/step-0000001.jsonl"));
  copy_as_seed(folder, "step_data", path_join(run, "signals/step-0000001.jsonl"));
  const std::string sealed = path_join(place.path(), "sealed");
  make_directories(path_join(sealed, "state"));
  write_file(path_join(sealed, "model.safetensors"), "weights");
  seal_directory(sealed, 3);
  copy_as_seed(folder, "manifest", path_join(sealed, "state/manifest.json"));
  TrainState state;
  state.step = 3, state.entropy_coeff = 0.1, state.auxiliary_models = {{"critic", {{"steps", 3}}}},
  state.fingerprint = "0123";
  make_directories(path_join(folder, "state"));
  write_file(path_join(folder, "state/written"), state.json());
  write_output_seed(folder);
}

}  // namespace ucas::fuzz

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ucas::fuzz::write_seeds(argv[1]);
  return 0;
}
