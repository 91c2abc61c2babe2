#include "train/sft/sft_run.h"

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/activity.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "kernels/lm_head.h"
#include "records/run/manifest.h"
#include "train/state/fingerprint.h"

namespace ucas {

namespace {

constexpr int64_t kKept = 2;

std::string hash_of_phase(const SftPhase& phase) {
  std::string bytes;
  const auto add = [&](const std::vector<int32_t>& ids) {
    const auto count = static_cast<uint64_t>(ids.size());
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t));
  };
  for (const SftExample& e : phase.examples) {
    add(e.prompt);
    add(e.response);
  }
  return hash_of_text(bytes);
}

std::string hash_of_parameters(Model& model) {
  std::string hashes;
  for (const auto& list : {model.parameters(), model.adapter()}) {
    for (const NamedTensor& p : list) {
      const at::Tensor host = p.tensor.detach().cpu().contiguous();
      hashes += str(p.name, hash_of_text({static_cast<const char*>(host.const_data_ptr()), host.nbytes()}), "\n");
    }
  }
  return hash_of_text(hashes);
}

std::string state_json(const SftProgress& progress, const std::string& fingerprint) {
  OrderedJson json = {{"format", 1},
                      {"phase", progress.phase},
                      {"update", progress.update},
                      {"step", progress.result.steps},
                      {"tokens", progress.result.tokens},
                      {"first_loss", progress.result.first_loss},
                      {"recent", std::vector<double>(progress.recent.begin(), progress.recent.end())},
                      {"skipped", progress.skipped.state()},
                      {"fingerprint", fingerprint}};
  return json_text(json, 1) + "\n";
}

SftProgress parse_state(const std::string& text, const FoundCheckpoint& found) {
  const JsonObject json = JsonObject::parse(text, path_join(state_folder(found.path), "state.json"), ErrorKind::schema);
  SftProgress progress;
  progress.phase = json.whole("phase", 0);
  progress.update = json.whole("update", 0);
  progress.result.steps = json.whole("step", found.step, found.step);
  progress.result.tokens = json.whole("tokens", 0);
  progress.result.first_loss = json.number("first_loss");
  for (double loss : json.numbers("recent")) progress.recent.push_back(loss);
  const JsonObject skipped = json.child("skipped");
  std::map<std::string, double> counts;
  for (const std::string& key : skipped.keys()) counts[key] = static_cast<double>(skipped.whole(key, 0));
  progress.skipped.restore(counts);
  progress.result.skipped = progress.skipped.total;
  return progress;
}

RunDirectory open_or_create(const std::string& directory, const SftConfig& config) {
  if (exists(path_join(directory, "config.toml"))) return RunDirectory::open(directory);
  RunEnvironment environment;
  environment.version = version_and_commit();
  environment.torch = torch_version();
  environment.isa = kernels::isa();
  environment.started = utc_now();
  return RunDirectory::create(directory, to_toml(config), environment);
}

}  // namespace

std::string sft_fingerprint(Model& model, const SftConfig& config, const std::vector<SftPhase>& phases) {
  std::string text;
  const auto add = [&](const std::string& name, const auto& value) { text += str(name, " = ", value, "\n"); };
  for (const FieldValue& field : fields_of(config)) {
    if (is_fixed(field.effect) && field.key != "data") add(field.key, field.value);
  }
  for (size_t p = 0; p < phases.size(); ++p) add(str("data of phase ", p), hash_of_phase(phases[p]));
  for (const FieldValue& field : fields_of(model.options().lora)) add("lora." + field.key, field.value);
  add("dtype", word_of(model.options().dtype));
  add("initial weights", hash_of_parameters(model));
  add("ucas", version());
  add("isa", kernels::isa());
  add("torch", torch_version());
  return text;
}

std::string sft_run_path(const std::string& out) { return out.substr(0, out.find_last_not_of('/') + 1) + ".run"; }

bool ended_already(const SftConfig& config, const std::string& out) {
  const std::string result = path_join(out, "sft.jsonl"), made_by = path_join(out, "sft.toml"),
                    path = sft_run_path(out);
  if (!exists(result) || !is_directory(path)) return false;
  if (!exists(path_join(path, "config.toml"))) {  // killed between the last file and the folder
    const std::vector<std::string> left = list_directory(path);
    if (!left.empty() && left != std::vector<std::string>{".lock"}) return false;
    if (!exists(made_by) || read_file(made_by) != to_toml(config)) return false;
  } else {
    const RunDirectory run = RunDirectory::open(path);
    if (read_file(run.config_file()) != to_toml(config)) return false;
    if (exists(run.steps_file()) && read_file(run.steps_file()) != read_file(result)) return false;
  }
  remove_sft_run(path);
  return true;
}

void remove_sft_run(const std::string& path) {
  for (const std::string& name : list_directory(path)) {
    if (name != "config.toml") remove_all(path_join(path, name));
  }
  remove_all(path);
}

SftRun::SftRun(std::string directory, Model& model, const SftConfig& config, std::string fingerprint)
    : model_(model),
      config_(config),
      fingerprint_(std::move(fingerprint)),
      path_(std::move(directory)),
      run_(open_or_create(path_, config)) {}

void SftRun::begin(Optimizer& optimizer, SftProgress& progress) {
  const std::optional<FoundCheckpoint> found =
      newest_checkpoint(run_, [](const std::string& text, const FoundCheckpoint& at) { parse_state(text, at); });
  run_.cut_after(found ? found->step : 0);
  if (!found) return;
  // First the run's identity: the state is in the same sealed directory.
  const std::string text = read_file(path_join(state_folder(found->path), "state.json"));
  const std::string saved = JsonObject::parse(text, found->path, ErrorKind::schema).text("fingerprint");
  if (const auto changed = compare_fingerprints(saved, fingerprint_); !changed.empty()) {
    throw Error(ErrorKind::config,
                str(printable(path_, 400), ": a fine-tuning that was interrupted began with ", join(changed, "; "),
                    "; give the same command again, or remove ", printable(path_, 400), " to start over"));
  }
  progress = parse_state(load_checkpoint(*found, model_, optimizer, {}), *found);
  ucas::log(str("sft: going on after update ", found->step, " (", printable(found->path, 400), ")"));
}

void SftRun::after_update(Optimizer& optimizer, const SftProgress& progress) {
  const bool stop = stop_requested();
  if (!stop && progress.result.steps % config_.save_freq != 0) return;
  failed_saves_.attempt(stop, *alone(), [&] {
    save_checkpoint(run_, progress.result.steps, model_, optimizer, {}, state_json(progress, fingerprint_), "", kKept);
  });
  if (!stop) return;
  throw Error(ErrorKind::interrupted,
              str("stopped after update ", progress.result.steps, ", saved in ", printable(path_, 400),
                  "; the same command resumes it"),
              kInterrupted);
}

std::string SftRun::log() const { return exists(run_.steps_file()) ? read_file(run_.steps_file()) : ""; }

}  // namespace ucas
