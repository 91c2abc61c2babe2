#include "train/state/state_files.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"
#include "hf/safetensors.h"
#include "model/stored.h"
#include "records/run/manifest.h"

namespace ucas {

namespace {

constexpr const char* kMaster = "master/";
constexpr const char* kTensors = ".safetensors";

std::string counter_of(const std::string& state, const std::string& part) { return path_join(state, part + ".json"); }

bool is_own(const std::vector<int64_t>& owners, size_t i, const Ranks* ranks) {
  return ranks == nullptr || owners.empty() || owners[i] == ranks->rank();
}

// "optimizer" of "optimizer-0-of-4.safetensors"; "" of a file of another form.
std::string part_of_shard(const std::string& file) {
  static const std::regex form(R"(([a-z-]+)-\d{1,6}-of-\d{1,6}\.safetensors)");
  std::smatch match;
  return std::regex_match(file, match, form) ? match[1].str() : "";
}

// Tensors by name, in any of the files.
struct Stored {
  std::string where;
  std::map<std::string, StoredTensor> tensors;

  void add(std::vector<StoredTensor> list) {
    for (StoredTensor& t : list) {
      const auto [found, fresh] = tensors.emplace(t.name, t);
      if (fresh) continue;
      throw Error(ErrorKind::unexpected_tensor,
                  str(t.file, ": tensor ", printable(t.name), " is in ", found->second.file, ", too"));
    }
  }
  const StoredTensor& at(const std::string& name, at::IntArrayRef shape) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      throw Error(ErrorKind::missing_tensor, str(where, ": tensor ", name, " is missing", hint(name)));
    }
    if (at::IntArrayRef(found->second.shape) != shape) {
      throw Error(ErrorKind::shape, str(found->second.file, ": tensor ", name, " has another shape than the model's"));
    }
    return found->second;
  }
  static const char* hint(const std::string& name) {
    return name.find('/') == std::string::npos
               ? ""
               : "; was optimizer.kind or optimizer.moments changed? They stay as the run began";
  }
};

Stored stored_part(const std::string& state, const std::string& part) {
  const std::string whole = path_join(state, part + kTensors);
  Stored stored{whole, {}};
  for (const std::string& file : list_directory(state)) {
    if (part_of_shard(file) != part) continue;
    stored.where = path_join(state, str(part, "-*-of-*", kTensors));
    stored.add(read_safetensors_header(path_join(state, file)));
  }
  if (stored.where == whole) stored.add(read_safetensors_header(whole));
  return stored;
}

void restore(const Stored& stored, const std::string& name, const at::Tensor& tensor) {
  const StoredTensor& from = stored.at(name, tensor.sizes());
  const StoredType type = stored_type_of(tensor);
  if (from.type != type) {
    throw Error(ErrorKind::dtype, str(from.file, ": tensor ", name, " is ", from.dtype, ", expected ", dtype_of(type),
                                      Stored::hint(name)));
  }
  at::Tensor target = tensor.detach();
  if (target.is_cpu()) {
    UCAS_CHECK(target.is_contiguous(), "parameters and moments are contiguous");
    read_as_stored(from, target.mutable_data_ptr());
    return;
  }
  at::Tensor staging = target.cpu().contiguous();
  read_as_stored(from, staging.mutable_data_ptr());
  target.copy_(staging);
}

// Trained parameters of a model that are restored: from files in f32, into where this rank keeps them or, of those that
// it does not, into their bf16 copies.
struct RestoredWeights {
  std::vector<Bf16Copy> copies;
  MasterValues values;  // undefined: not here

  const Bf16Copy& copy_of(const at::Tensor& master) const {
    const auto found = std::ranges::find_if(copies, [&](const auto& copy) { return copy.master.is_same(master); });
    UCAS_CHECK(found != copies.end(), "a parameter without values must have a bf16 copy");
    return *found;
  }
  static void round(const Bf16Copy& copy, const at::Tensor& whole) {
    copy.compute.copy_(copy.scale == 1 ? whole : whole * copy.scale);
  }
  // `narrow`: files that hold the bf16 copies themselves, by the parameters' names; null: these are rounded from f32.
  void read(const Stored& stored, const std::string& prefix, const NamedTensor& parameter, const Stored* narrow) const {
    const at::Tensor& tensor = parameter.tensor;
    const std::string name = prefix + parameter.name;
    const at::Tensor here = values(tensor);
    if (here.defined()) {
      restore(stored, name, here);
      if (!has_values(tensor)) round(copy_of(tensor), here);
      return;
    }
    const at::Tensor whole = at::empty(tensor.sizes(), at::kFloat);
    const StoredTensor& from =
        narrow != nullptr ? narrow->at(parameter.name, tensor.sizes()) : stored.at(name, tensor.sizes());
    read_as_f32(from, whole.mutable_data_ptr<float>());
    round(copy_of(tensor), whole);
  }
};

void restore_policy(const std::string& checkpoint, Model& model, Optimizer& optimizer) {
  const std::string state = state_folder(checkpoint);
  const Stored moments = stored_part(state, "optimizer");
  for (const NamedTensor& t : optimizer.state()) restore(moments, t.name, t.tensor);
  const bool apart = needs_masters(model);
  const bool exact = optimizer.ranks() != nullptr && stored_dtype(model) == "bfloat16";
  Stored files{checkpoint, {}};
  if (!apart || exact) files.add(list_weights(checkpoint));
  const RestoredWeights weights{model.bf16_copies(),
                                [&](const at::Tensor& tensor) { return optimizer.values_of(tensor); }};
  if (apart) {
    for (const NamedTensor& p : model.trainable()) weights.read(moments, kMaster, p, exact ? &files : nullptr);
    return;
  }
  for (const NamedTensor& p : stored_tensors(model))
    if (p.tensor.requires_grad()) weights.read(files, "", p, nullptr);
}

}  // namespace

bool needs_masters(Model& model) { return stored_dtype(model) != "float32"; }

std::vector<StatePart> parts_to_save(Model& model, const Optimizer& optimizer,
                                     const AuxiliaryModels& auxiliary_models) {
  const Ranks* ranks = optimizer.ranks();
  std::vector<StatePart> parts;
  parts.push_back({"optimizer", optimizer.state(), &optimizer});
  if (needs_masters(model)) {
    const std::vector<NamedTensor> trained = model.trainable();
    const std::vector<int64_t> owners = optimizer.owners();
    for (size_t i = 0; i < trained.size(); ++i) {
      if (is_own(owners, i, ranks))
        parts[0].tensors.push_back({kMaster + trained[i].name, optimizer.values_of(trained[i].tensor)});
    }
  }
  for (const auto& auxiliary : auxiliary_models) {
    const std::vector<NamedTensor> weights = auxiliary->weights();
    if (!weights.empty()) {
      StatePart& part = parts.emplace_back(StatePart{auxiliary->name(), {}, nullptr});
      const std::vector<int64_t> owners = auxiliary->owners();
      for (size_t i = 0; i < weights.size(); ++i)
        if (is_own(owners, i, ranks)) part.tensors.push_back(weights[i]);
    }
    const Optimizer* own = auxiliary->optimizer();
    if (own != nullptr) parts.push_back({auxiliary->name() + "-optimizer", own->state(), own});
  }
  return parts;
}

std::string file_of_part(const std::string& name, const Ranks* ranks) {
  if (ranks == nullptr || ranks->alone()) return name + kTensors;
  return str(name, "-", ranks->rank(), "-of-", ranks->size(), kTensors);
}

bool is_shard(const std::string& name) {
  const std::string folder = str(kStateFolder, "/");
  return name.starts_with(folder) && !part_of_shard(name.substr(folder.size())).empty();
}

void write_part(const std::string& state_folder, const StatePart& part, const Ranks* ranks) {
  write_safetensors(path_join(state_folder, file_of_part(part.name, ranks)), tensors_to_store(part.tensors));
  if (part.optimizer == nullptr || (ranks != nullptr && !ranks->leads())) return;
  OrderedJson counter;
  counter["steps"] = part.optimizer->steps();
  write_file(counter_of(state_folder, part.name), json_text(counter) + "\n");
}

int64_t read_counter(const std::string& path) {
  Json json = read_json(path, 4096);
  if (!json.is_object() || !json.contains("steps") || !json["steps"].is_number_integer()) {
    throw Error(ErrorKind::schema, str(path, ": expected {\"steps\": N}"));
  }
  const auto steps = json["steps"].get<int64_t>();
  if (steps < 0) throw Error(ErrorKind::schema, str(path, ": steps = ", steps, ": expected 0 or more"));
  return steps;
}

void restore_state(const std::string& checkpoint, Model& model, Optimizer& optimizer,
                   const AuxiliaryModels& auxiliary_models) {
  const at::NoGradGuard no_grad;
  const std::string state = state_folder(checkpoint);
  restore_policy(checkpoint, model, optimizer);
  for (const auto& auxiliary : auxiliary_models) {
    if (const std::vector<NamedTensor> list = auxiliary->weights(); !list.empty()) {
      const Stored stored = stored_part(state, auxiliary->name());
      const RestoredWeights weights{auxiliary->copies(), [](const at::Tensor& tensor) {
                                      return has_values(tensor) ? tensor.detach() : at::Tensor();
                                    }};
      for (const NamedTensor& t : list) weights.read(stored, "", t, nullptr);
    }
    Optimizer* own = auxiliary->optimizer();
    if (own == nullptr) continue;
    const std::string name = auxiliary->name() + "-optimizer";
    const Stored moments = stored_part(state, name);
    for (const NamedTensor& t : own->state()) restore(moments, t.name, t.tensor);
  }
  optimizer.set_steps(read_counter(counter_of(state, "optimizer")));
  model.refresh();
  for (const auto& auxiliary : auxiliary_models) {
    Optimizer* own = auxiliary->optimizer();
    if (own != nullptr) own->set_steps(read_counter(counter_of(state, auxiliary->name() + "-optimizer")));
  }
}

}  // namespace ucas
