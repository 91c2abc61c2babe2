#include "train/state/fingerprint.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "data/prompts/templates.h"
#include "hf/peft.h"
#include "hf/safetensors.h"
#include "kernels/dispatch.h"
#include "kernels/lm_head.h"
#include "model/stored.h"
#include "records/evaluation.h"
#include "rollout/policy.h"

namespace ucas {

namespace {

// The checkpoints that auxiliary models load whenever the run starts or resumes: their content must not change
// meanwhile.
std::set<std::string> auxiliary_models_of(const TrainConfig& config) {
  std::set<std::string> models;
  for (const NeededModel& model : config.needs().models())
    models.insert(model.directory.empty() ? config.model : model.directory);
  return models;
}

// Of the numbers that are there on every rank, wherever they were read from: of a master its bf16 copy.
std::string hash_of_weights(Model& model) {
  std::map<const at::TensorImpl*, at::Tensor> copies;
  for (const Bf16Copy& copy : model.bf16_copies()) copies.emplace(copy.master.unsafeGetTensorImpl(), copy.compute);
  std::string hashes;
  for (const NamedTensor& t : stored_tensors(model)) {
    const auto found = copies.find(t.tensor.unsafeGetTensorImpl());
    const at::Tensor host = (found == copies.end() ? t.tensor : found->second).detach().cpu().contiguous();
    hashes += hash_of_text({static_cast<const char*>(host.const_data_ptr()), host.nbytes()}) + "\n";
  }
  return hash_of_text(hashes);
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
  add("ucas", version());
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

std::vector<std::string> compare_fingerprints(const std::string& saved, const std::string& now) {
  const std::vector<std::string> before = split(saved, '\n'), after = split(now, '\n');
  const auto name_of = [](const std::string& line) { return line.substr(0, line.find(" = ")); };
  const auto find = [&](const std::vector<std::string>& lines, const std::string& name) {
    return std::ranges::find_if(lines, [&](const std::string& line) { return name_of(line) == name; });
  };
  std::vector<std::string> changed;
  for (const std::string& line : before) {
    const auto other = find(after, name_of(line));
    if (other != after.end() && *other == line) continue;
    changed.push_back(
        str(printable(line, 400), ", now ",
            other == after.end() ? str("there is no ", printable(name_of(line))) : printable(*other, 400)));
  }
  for (const std::string& line : after) {
    if (find(before, name_of(line)) != before.end()) continue;
    changed.push_back(str("no ", printable(name_of(line)), ", now ", printable(line, 400)));
  }
  return changed;
}

std::vector<std::string> lines_of_run(const TrainConfig& config, const std::string& fingerprint, const std::string& out,
                                      Model& model, bool fresh) {
  std::vector<std::string> lines = {str("out = ", out),
                                    str("the weights to begin with (hash) = ", hash_of_weights(model))};
  if (fresh && config.dtype == Dtype::bf16)
    lines.push_back(str("files of the model (hash) = ", hash_of_model(config.model)));
  for (const FieldValue& field : fields_of(config)) {
    if (field.key != "threads" && field.key != "device") lines.push_back(str(field.key, " = ", field.value));
  }
  if (config.device == "cpu" && config.dtype == Dtype::bf16) {
    lines.push_back(str("bf16 GEMM = ", kernels::bf16_gemm().reason));
  }
  for (std::string line : split(fingerprint, '\n')) {
    if (line.empty() || line.starts_with("threads = ")) continue;
    if (line.starts_with("data = ")) line.replace(0, 4, "training problems in their order (hash)");
    if (line.starts_with("validation = ")) line.replace(0, 10, "validation problems in their order (hash)");
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ucas
