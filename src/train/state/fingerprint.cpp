#include "train/state/fingerprint.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <set>

#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "data/prompts/templates.h"
#include "hf/peft.h"
#include "hf/safetensors.h"
#include "kernels/lm_head.h"
#include "records/asked.h"
#include "rollout/policy.h"

namespace ucas {

namespace {

constexpr const char* kVersion = "ucas";

// The checkpoints that auxiliary models load whenever the run starts or goes on: what lies there must not change
// meanwhile.
std::set<std::string> auxiliary_models_of(const TrainConfig& config) {
  const Needs needs = config.needs();
  std::set<std::string> models;
  auto add = [&](const std::string& own) { models.insert(own.empty() ? config.model : own); };
  if (needs.reference) add("");
  if (needs.critic) add(needs.critic->model);
  if (needs.prm) add(needs.prm->model);
  if (needs.teacher) add(*needs.teacher);
  return models;
}

struct Line {
  std::string name, whole;
};
std::vector<Line> lines_of(const std::string& fingerprint) {
  std::vector<Line> lines;
  for (const std::string& line : split(fingerprint, '\n')) {
    if (line.empty()) continue;
    const std::string name = line.substr(0, line.find(" = "));
    const bool numbered = name == "device" && line.find(':') != std::string::npos;  // earlier versions kept "cuda:1"
    lines.push_back({name, numbered ? kind_of_device(line) + '"' : line});
  }
  return lines;
}
const Line* find_line(const std::vector<Line>& lines, const std::string& name) {
  auto found = std::ranges::find(lines, name, &Line::name);
  return found == lines.end() ? nullptr : &*found;
}

}  // namespace

bool is_free_option(const std::string& key) {
  if (key == "train.steps" || key == "train.epochs") return true;
  return !is_fixed(effect_of(key));
}

std::string kind_of_device(const std::string& device) { return device.substr(0, device.find(':')); }

std::string hash_of_model(const std::string& directory) {
  std::vector<std::string> files = {path_join(directory_with(directory, "config.json"), "config.json")};
  auto add_weights = [&](const std::string& part) {
    std::set<std::string> own;
    for (const StoredTensor& tensor : list_weights(part)) own.insert(tensor.file);
    files.insert(files.end(), own.begin(), own.end());
  };
  add_weights(directory);
  if (is_adapter(directory)) {
    files.push_back(path_join(directory, kAdapterConfig));
    add_weights(base_directory(directory));
  }
  std::string hashes;
  for (const std::string& file : files) hashes += hash_of_file(file) + "\n";
  return hash_of_text(hashes);
}

std::string make_fingerprint(const FingerprintInput& input) {
  std::string text;
  for (const FieldValue& field : fields_of(input.config)) {
    if (is_free_option(field.key) || field.key == "threads") continue;
    text += str(field.key, " = ",
                field.key == "device" ? str('"', kind_of_device(input.config.device), '"') : field.value, "\n");
  }
  auto add = [&](const std::string& name, const auto& value) { text += str(name, " = ", value, "\n"); };
  add("data", input.data);
  add("validation", input.validation);
  // A template is named by a word or a file; what it says decides.
  const std::string& form = input.config.data.prompt_template;
  add(str("text of the template ", form),
      template_sha256(load_template(form, input.tokenizer, input.config.data.examples)));
  add("tokenizer", hash_of_file(path_join(input.tokenizer, "tokenizer.json")));
  // The checkpoints of a run that trains an adapter lack its base.
  const std::string& began_with = input.config.model;
  if (input.config.lora.on() || is_adapter(began_with)) {
    add(str("weights of the base ", began_with), hash_of_model(base_directory(began_with)));
  }
  for (const std::string& model : auxiliary_models_of(input.config))
    add(str("weights of ", model), hash_of_model(model));
  add(kVersion, version());
  add("isa", kernels::isa());
  add("torch", torch_version());
  // By micro-batches no bit depends on their number.
  if (input.ranks > 1 && input.config.update.reduce == Reduce::sum) add("ranks of a sum", input.ranks);
  // Of ranks that divide the cores of a host: those of the host, whatever their number.
  const bool divided = cores_are_divided(input.config.threads);
  // Own GEMMs have one order of sums whatever the threads (docs/numerics.md); those off the CPU may not.
  if (input.config.device != "cpu") add("threads", divided ? all_cores() : at::get_num_threads());
  return text;
}

FingerprintDifferences compare_fingerprints(const std::string& saved, const std::string& now) {
  FingerprintDifferences differences;
  const std::vector<Line> before = lines_of(saved), after = lines_of(now);
  for (const Line& line : before) {
    const Line* other = find_line(after, line.name);
    if (other != nullptr && other->whole == line.whole) continue;
    differences.changed.push_back(
        str(printable(line.whole, 400), ", now ",
            other == nullptr ? str("there is no ", printable(line.name)) : printable(other->whole, 400)));
  }
  // A line that only we write. The version is among the lines since the templates are: a run that has it was begun by a
  // program that wrote all the same ones, and a new name is then a change.
  const bool has_version = find_line(before, kVersion) != nullptr;
  for (const Line& line : after) {
    if (find_line(before, line.name) != nullptr) continue;
    if (has_version) {
      differences.changed.push_back(str("no ", printable(line.name), ", now ", printable(line.whole, 400)));
    } else {
      differences.unrecorded.push_back(line.name);
    }
  }
  return differences;
}

}  // namespace ucas
