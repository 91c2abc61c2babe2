#include "train/state/checkpoint.h"

#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/process/warning_counters.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "hf/safetensors.h"
#include "model/stored.h"
#include "model/tensor/finite.h"
#include "records/run/manifest.h"
#include "records/run/model_files.h"
#include "train/optimizer/dynamic_map.h"

namespace ucas {

namespace {

constexpr const char* kStateFile = "state.json";
constexpr int64_t kStateLimit = int64_t{64} << 20;
constexpr int64_t kMostFailedSaves = 3;

// Weights stored in 16 bits cannot restore the f32 masters: those go beside the moments then.
bool needs_masters(Model& model) { return stored_dtype(model) != "float32"; }

// NAME.safetensors, every tensor in its own type, and where it belongs to an optimizer its step count in NAME.json.
struct Part {
  std::string name;
  std::vector<NamedTensor> tensors;
  const Optimizer* optimizer = nullptr;
  std::string file(const std::string& directory) const { return path_join(directory, name + ".safetensors"); }
  std::string counter(const std::string& directory) const { return path_join(directory, name + ".json"); }
};

// What stands in state/ of the policy's Hugging Face checkpoint: its optimizer, then weights and optimizer of every
// auxiliary model that is trained.
std::vector<Part> parts_of(Model& model, const Optimizer& optimizer, const AuxiliaryModels& auxiliary_models) {
  std::vector<Part> parts;
  parts.push_back({"optimizer", optimizer.state(), &optimizer});
  if (needs_masters(model)) {
    for (const NamedTensor& p : model.trainable()) parts[0].tensors.push_back({"master/" + p.name, p.tensor});
  }
  for (const auto& auxiliary : auxiliary_models) {
    std::vector<NamedTensor> weights = auxiliary->weights();
    if (!weights.empty()) parts.push_back({auxiliary->name(), std::move(weights), nullptr});
    const Optimizer* own = auxiliary->optimizer();
    if (own != nullptr) parts.push_back({auxiliary->name() + "-optimizer", own->state(), own});
  }
  return parts;
}

void check_free_space(const std::string& directory, Model& model, const std::vector<Part>& parts,
                      const StateFiles& more) {
  double bytes = 1 << 20;
  for (const auto& [name, text] : more) bytes += static_cast<double>(text.size());
  double width = needs_masters(model) ? 2 : 4;
  for (const NamedTensor& p : stored_tensors(model)) bytes += width * static_cast<double>(p.tensor.numel());
  for (const Part& part : parts) {
    for (const NamedTensor& t : part.tensors) bytes += static_cast<double>(t.tensor.nbytes());
  }
  auto free = static_cast<double>(free_space(directory));
  if (free >= 1.1 * bytes) return;
  throw Error(ErrorKind::io,
              str(directory, ": a checkpoint needs about ", human_bytes(1.1 * bytes), ", ", human_bytes(free),
                  " are free; make room, or keep fewer (train.keep)"),
              kIoFailure);
}

void write_part(const std::string& directory, const Part& part) {
  write_safetensors(part.file(directory), tensors_to_store(part.tensors));
  if (part.optimizer == nullptr) return;
  OrderedJson counter;
  counter["steps"] = part.optimizer->steps();
  write_file(part.counter(directory), counter.dump() + "\n");
}

[[noreturn]] void refuse_value(const std::string& what, float value, const std::string& dtype) {
  const bool finite = std::isfinite(value);
  throw Error(
      ErrorKind::numeric,
      str(what, " holds ", value, finite ? str(", too large for ", dtype, ", in which this model is stored") : "",
          ": such a checkpoint is never saved; ",
          finite ? "begin from a copy of the model with torch_dtype float32" : "lower the learning rate",
          "; the last checkpoint stands"),
      kNumeric);
}

// Before anything is written. Codes of 8 bits are finite, whatever they say.
void refuse_not_finite(const std::string& whose, const std::vector<NamedTensor>& tensors, const std::string& dtype) {
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.is_floating_point()) continue;
    const at::Tensor host = t.tensor.detach().cpu().to(at::kFloat).contiguous();
    const std::span<const float> values(host.const_data_ptr<float>(), static_cast<size_t>(host.numel()));
    const int64_t bad = first_not_finite(values, dtype);
    if (bad >= 0) refuse_value(str(whose, ": ", t.name), values[static_cast<size_t>(bad)], dtype);
  }
}

// What a moment's name says of its values (Optimizer::state()).
bool is_square(const std::string& name) { return name.starts_with("exp_avg_sq/"); }
bool is_scale(const std::string& name) { return name.substr(0, name.find('/')).ends_with("_scale"); }

// What is wrong with some values of a tensor, "" if nothing.
std::string problem_of_values(const std::string& name, std::span<const float> values) {
  if (first_not_finite(values) >= 0) return "holds values that are not finite";
  if (!is_square(name) && !is_scale(name)) return "";
  if (std::ranges::none_of(values, [](float x) { return x < 0; })) return "";
  return is_square(name) ? "holds negative values, a mean of squares cannot" : "holds negative values, a scale cannot";
}
std::string problem_of_codes(const std::string& name, std::span<const uint8_t> codes) {
  const DynamicMap& map = is_square(name) ? DynamicMap::of_squares() : DynamicMap::of_means();
  return std::ranges::find(codes, map.unused()) == codes.end() ? "" : "holds a byte that is no code of an 8-bit moment";
}

// "" if all numbers of a sealed file are finite, and second moments not negative; otherwise what is wrong.
std::string problem_of_numbers(const std::string& file, const std::vector<StoredTensor>& tensors) {
  constexpr int64_t kBlock = int64_t{1} << 20;  // elements
  std::vector<float> values;
  std::vector<uint8_t> codes;
  for (const StoredTensor& t : tensors) {
    const int64_t count = t.elements(), width = count == 0 ? 0 : t.bytes / count;
    for (int64_t at = 0; at < count; at += kBlock) {
      StoredTensor part = t;
      part.shape = {std::min(kBlock, count - at)};
      part.offset += at * width;
      part.bytes = part.shape[0] * width;
      std::string problem;
      if (t.type == StoredType::i8 || t.type == StoredType::u8) {
        codes.resize(static_cast<size_t>(part.bytes));
        read_as_stored(part, codes.data());
        problem = problem_of_codes(t.name, codes);
      } else {
        values.resize(static_cast<size_t>(part.shape[0]));
        read_as_f32(part, values.data());
        problem = problem_of_values(t.name, values);
      }
      if (!problem.empty()) return str(file, ": tensor ", printable(t.name), " ", problem);
    }
  }
  return "";
}

std::string temporary_name(const char* kind, int64_t step) {
  return str(".", kind, "-", step_name(step), "-", ::getpid());
}

// By rename first, so that a crash never leaves half a checkpoint under its real name.
void discard(const RunDirectory& run, int64_t step) {
  std::string trash = path_join(run.checkpoints(), temporary_name("trash", step));
  if (exists(trash)) remove_all(trash);
  rename_path(run.checkpoint(step), trash);
  remove_all(trash);
}

std::vector<int64_t> steps_on_disk(const RunDirectory& run) {
  std::vector<int64_t> steps;
  if (!is_directory(run.checkpoints())) return steps;
  for (const std::string& name : list_directory(run.checkpoints())) {
    int64_t step = parse_step_name(name);
    if (step >= 0 && !name.ends_with(".jsonl")) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// Leftovers of a save or a prune that was killed; only the holder of the run's lock gets here.
void remove_leftovers(const RunDirectory& run) {
  for (const std::string& name : list_directory(run.checkpoints())) {
    if (!name.starts_with(".tmp-") && !name.starts_with(".trash-")) continue;
    try {
      remove_all(path_join(run.checkpoints(), name));
    } catch (const Error& error) {
      warn(error.what());
    }
  }
}

// Keeps the newest `keep` up to `step`, and `best` (0: there is none, though a run that was stopped early has a step
// 0). Later ones can only be what a resume has rejected; they do not count and stay until this run reaches their step.
// Broken ones do not count either. A failure is no reason to stop.
void prune(const RunDirectory& run, int64_t step, int64_t keep, int64_t best) {
  std::vector<int64_t> steps = steps_on_disk(run);
  int64_t kept = 0;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    if (*it > step) continue;
    bool good = *it == step || check_seal(run.checkpoint(*it), false).problem.empty();
    if (kept < std::max<int64_t>(1, keep)) {
      kept += good ? 1 : 0;
      continue;
    }
    if (best > 0 && *it == best) continue;
    try {
      discard(run, *it);
    } catch (const Error& error) {
      warn(str("an old checkpoint stays: ", error.what()));
    }
  }
}

void write_checkpoint(const std::string& directory, const RunDirectory& run, int64_t step, Model& model,
                      const std::vector<Part>& parts, const std::string& state_json, const std::string& model_files,
                      const StateFiles& more) {
  check_free_space(run.checkpoints(), model, parts, more);
  if (!model_files.empty()) check_model_files(model_files);
  const std::string state = path_join(directory, kStateFolder);
  make_directories(state);
  save_model(model, directory, model_files);
  for (const Part& part : parts) write_part(state, part);
  write_file(path_join(state, kStateFile), state_json);
  for (const auto& [name, text] : more) write_file(path_join(state, name), text);
  run.sync();
  seal_directory(directory, step);
  sync_directory(state);
  sync_directory(directory);
}

void restore(const std::map<std::string, StoredTensor>& stored, const std::string& name, const at::Tensor& tensor,
             const std::string& where) {
  const char* hint = name.find('/') == std::string::npos
                         ? ""
                         : "; was optimizer.kind or optimizer.moments changed? They stay as the run began";
  auto found = stored.find(name);
  if (found == stored.end()) throw Error(ErrorKind::missing_tensor, str(where, ": tensor ", name, " is missing", hint));
  const StoredTensor& from = found->second;
  if (at::IntArrayRef(from.shape) != tensor.sizes()) {
    throw Error(ErrorKind::shape, str(where, ": tensor ", name, " has another shape than the model's"));
  }
  const StoredType type = stored_type_of(tensor);
  if (from.type != type) {
    throw Error(ErrorKind::dtype,
                str(where, ": tensor ", name, " is ", from.dtype, ", expected ", dtype_of(type), hint));
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

std::map<std::string, StoredTensor> by_name(std::vector<StoredTensor> tensors) {
  std::map<std::string, StoredTensor> map;
  for (StoredTensor& t : tensors) map.emplace(t.name, t);
  return map;
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

std::string state_text(const FoundCheckpoint& found) {
  return read_file(path_join(state_folder(found.path), kStateFile), kStateLimit);
}

// No problem if the run can go on from there. Reads every byte.
SealCheck check_whole(const FoundCheckpoint& found, const StateCheck& check_state) {
  const SealCheck check = check_seal(found.path, true);
  if (!check.problem.empty()) return check;
  if (check.step != found.step) return {str("it was saved at step ", check.step)};
  try {
    if (std::string problem = problem_of_numbers(found.path, list_weights(found.path)); !problem.empty()) {
      return {problem};
    }
    const std::string state = state_folder(found.path);
    for (const std::string& name : list_directory(state)) {
      const std::string file = path_join(state, name);
      if (name.ends_with("optimizer.json")) read_counter(file);
      if (!name.ends_with(".safetensors")) continue;
      std::string problem = problem_of_numbers(file, read_safetensors_header(file));
      if (!problem.empty()) return {problem};
    }
    if (check_state) check_state(state_text(found), found);
  } catch (const Error& error) {
    return {error.what(), -1, error.exit_code() == kIoFailure};
  }
  return check;
}

}  // namespace

std::string save_checkpoint(const RunDirectory& run, int64_t step, Model& model, const Optimizer& optimizer,
                            const AuxiliaryModels& auxiliary_models, const std::string& state_json,
                            const std::string& model_files, int64_t keep, int64_t best, const StateFiles& more) {
  std::string target = run.checkpoint(step);
  std::string temporary = path_join(run.checkpoints(), temporary_name("tmp", step));
  if (exists(target) && check_whole({target, step}, {}).problem.empty()) {
    prune(run, step, keep, best);  // a kill came between that save and this
    return target;
  }
  const std::vector<Part> parts = parts_of(model, optimizer, auxiliary_models);
  const std::string title = str("checkpoint of step ", step, " not saved: ");
  refuse_not_finite(str(title, "the policy"), stored_tensors(model), stored_dtype(model));
  for (const Part& part : parts) refuse_not_finite(str(title, part.name), part.tensors, "float32");
  try {
    if (exists(temporary)) remove_all(temporary);
    write_checkpoint(temporary, run, step, model, parts, state_json, model_files, more);
    // What stands there is broken: a resume passed over it.
    if (exists(target)) discard(run, step);
    rename_path(temporary, target);
  } catch (const Error& failure) {
    try {
      if (exists(temporary)) remove_all(temporary);
    } catch (const Error& error) {
      warn(error.what());  // ignored by every reader, and removed by the next start
    }
    throw Error(ErrorKind::io, str(title, failure.what()), kIoFailure);
  }
  SealCheck check = check_seal(target, true);
  if (!check.problem.empty()) {
    throw Error(ErrorKind::io, str(target, ": read back after saving: ", check.problem), kIoFailure);
  }
  prune(run, step, keep, best);
  return target;
}

void FailedSaves::attempt(bool needed, const std::function<void()>& save) try {
  save();
  in_a_row_ = 0;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::io || needed || ++in_a_row_ == kMostFailedSaves) throw;
  count_warning(Warning::unsaved);
  warn(str(error.what(), "; going on without it (", in_a_row_, " of at most ", kMostFailedSaves - 1, " in a row)"));
}

void FailedSaves::check_last() const {
  if (in_a_row_ == 0) return;
  throw Error(ErrorKind::io,
              "the last checkpoint could not be saved (see the warning); make room, then go on from the one before",
              kIoFailure);
}

std::string prefetched_of(const FoundCheckpoint& found) {
  const std::string file = path_join(state_folder(found.path), kPrefetchedFile);
  return exists(file) ? read_file(file, int64_t{1} << 36) : "";
}

std::optional<FoundCheckpoint> newest_checkpoint(const RunDirectory& run, const StateCheck& check_state) {
  if (!is_directory(run.checkpoints())) return std::nullopt;
  remove_leftovers(run);
  std::vector<int64_t> steps = steps_on_disk(run);
  bool unread = false;
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    const FoundCheckpoint found{run.checkpoint(*it), *it};
    const SealCheck check = check_whole(found, check_state);
    if (check.problem.empty()) return found;
    unread = unread || check.unread;
    count_warning(Warning::passed_over);
    warn(str("checkpoint ", found.path, " is passed over: ", check.problem));
  }
  if (steps.empty()) return std::nullopt;
  const std::string none = str(run.checkpoints(), ": none of the ", steps.size(), " checkpoints ");
  if (unread)
    throw Error(ErrorKind::io, str(none, "could be read (see the warnings); mend the disk, then go on"), kIoFailure);
  throw Error(ErrorKind::io, str(none, "is good (see the warnings); put one back, or start anew with another --out"));
}

std::string manifest_of(const FoundCheckpoint& found) {
  return hash_of_file(path_join(state_folder(found.path), "manifest.json"));
}

void check_found_elsewhere(const FoundCheckpoint& found, const std::string& manifest) {
  const SealCheck check = check_seal(found.path, false);
  std::string problem = check.problem;
  if (problem.empty() && manifest_of(found) != manifest) problem = "another manifest than rank 0 reads there";
  if (problem.empty()) return;
  throw Error(ErrorKind::io, str(found.path, ": ", problem, "; is it the same file system, and up to date here?"),
              kIoFailure);
}

std::string load_checkpoint(const FoundCheckpoint& found, Model& model, Optimizer& optimizer,
                            const AuxiliaryModels& auxiliary_models) {
  const std::string state = state_folder(found.path);
  for (const Part& part : parts_of(model, optimizer, auxiliary_models)) {
    std::string file = part.file(state);
    auto stored = by_name(read_safetensors_header(file));
    for (const NamedTensor& t : part.tensors) restore(stored, t.name, t.tensor, file);
  }
  if (!needs_masters(model)) {
    auto weights = by_name(list_weights(found.path));
    for (const NamedTensor& p : stored_tensors(model)) {
      if (p.tensor.requires_grad()) restore(weights, p.name, p.tensor, found.path);
    }
  }
  optimizer.set_steps(read_counter(path_join(state, "optimizer.json")));
  model.refresh();
  for (const auto& auxiliary : auxiliary_models) {
    Optimizer* own = auxiliary->optimizer();
    if (own != nullptr) own->set_steps(read_counter(path_join(state, auxiliary->name() + "-optimizer.json")));
  }
  return state_text(found);
}

}  // namespace ucas
