#include "train/state/checkpoint.h"

#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/safetensors.h"
#include "model/stored.h"
#include "records/run/manifest.h"
#include "records/run/run_directory.h"
#include "train/optimizer/dynamic_map.h"

namespace ucas {

namespace {

constexpr const char* kStateFile = "state.json";
constexpr int64_t kStateLimit = int64_t{64} << 20;
constexpr int64_t kMostFailedSaves = 3;

// A checkpoint in the making, as one of the ranks that write it sees it.
struct Save {
  const RunDirectory& run;
  int64_t step;
  Model& model;
  const Optimizer& optimizer;
  Ranks& ranks;
  std::vector<StatePart> parts;  // of this rank
  std::string target, temporary;

  std::string state() const { return path_join(temporary, kStateFolder); }
  // Below the directory.
  std::string name_of(const StatePart& part) const { return str(kStateFolder, "/", file_of_part(part.name, &ranks)); }
};

// Of the parts of all ranks.
double bytes_of_state(const Save& save) {
  int64_t mine = 0;
  for (const StatePart& part : save.parts) {
    for (const NamedTensor& t : part.tensors) mine += static_cast<int64_t>(t.tensor.nbytes());
  }
  double all = 0;
  for (const std::string& bytes : save.ranks.all_gather("the size of a checkpoint", str(mine)))
    all += static_cast<double>(std::atoll(bytes.c_str()));
  return all;
}

void check_free_space(const Save& save, double bytes_of_state) {
  const std::string directory = save.run.checkpoints();
  double bytes = (1 << 20) + bytes_of_state;
  double width = needs_masters(save.model) ? 2 : 4;
  for (const NamedTensor& p : stored_tensors(save.model)) bytes += width * static_cast<double>(p.tensor.numel());
  auto free = static_cast<double>(free_space(directory));
  if (free >= 1.1 * bytes) return;
  throw Error(ErrorKind::io,
              str(directory, ": a checkpoint needs about ", human_bytes(1.1 * bytes), ", ", human_bytes(free),
                  " are free; make room, or keep fewer (train.keep)"),
              kIoFailure);
}

[[noreturn]] void refuse_value(const std::string& what, float value, const std::string& dtype) {
  const bool finite = std::isfinite(value);
  throw Error(
      ErrorKind::numeric,
      str(what, " holds ", value, finite ? str(", too large for ", dtype, ", in which this model is stored") : "",
          ": such a checkpoint is never saved; ",
          finite ? "begin from a copy of the model with torch_dtype float32" : "lower the learning rate",
          "; the last checkpoint remains"),
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

// Before anything is written: what is here of the weights, and this rank's part of the state.
void refuse_not_finite(const Save& save, const std::string& title) {
  std::vector<NamedTensor> here;
  for (const NamedTensor& t : stored_tensors(save.model)) {
    if (const at::Tensor values = save.optimizer.values_of(t.tensor); values.defined())
      here.push_back({t.name, values});
  }
  refuse_not_finite(str(title, "the policy"), here, stored_dtype(save.model));
  for (const StatePart& part : save.parts) refuse_not_finite(str(title, part.name), part.tensors, "float32");
}

// By rank 0, which asks the others for what they keep. A failure ends it on all.
void write_model(const Save& save, const std::string& model_files) {
  std::optional<Error> failure;
  save.optimizer.with_masters([&](const MasterValues& values) {
    try {
      save_model(save.model, save.temporary, model_files, values);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::ranks) throw;
      failure = error;
    }
  });
  save.ranks.together("writing the weights of a checkpoint", [&] {
    if (failure) throw Error(*failure);
  });
}

// By every rank, its own; gives those that rank 0 has not written itself, for its seal.
std::vector<SealedFile> write_state(const Save& save) {
  std::string mine;  // name, hash and size of each, a line each
  save.ranks.together("writing the state of a checkpoint", [&] {
    for (const StatePart& part : save.parts) {
      write_part(save.state(), part, &save.ranks);
      if (save.ranks.leads()) continue;
      const SealedFile file = seal_of(save.temporary, save.name_of(part));
      mine += str(file.name, " ", file.hash, " ", file.size, "\n");
    }
  });
  std::vector<SealedFile> others;
  for (const std::string& lines : save.ranks.all_gather("the files of a checkpoint", mine)) {
    for (const std::string& line : split(lines, '\n')) {
      const std::vector<std::string> word = split(line, ' ');
      if (word.size() == 3) others.push_back({word[0], word[1], std::atoll(word[2].c_str())});
    }
  }
  return others;
}

// All ranks; under a temporary name, then renamed.
void write_checkpoint(const Save& save, const std::string& state_json, const std::string& model_files) {
  const double bytes = bytes_of_state(save);
  const bool leads = save.ranks.leads();
  save.ranks.together("making room for a checkpoint", [&] {
    if (!leads) return;
    if (exists(save.temporary)) remove_all(save.temporary);
    check_free_space(save, bytes);
    if (!model_files.empty()) check_model_files(model_files);
    make_directories(save.state());
  });
  write_model(save, model_files);
  const std::vector<SealedFile> others = write_state(save);
  save.ranks.together("sealing a checkpoint", [&] {
    if (!leads) return;
    write_file(path_join(save.state(), kStateFile), state_json);
    save.run.sync();
    seal_directory(save.temporary, save.step, others);
    sync_directory(save.state());
    sync_directory(save.temporary);
    // The checkpoint there is broken: a resume passed over it.
    if (exists(save.target)) discard(save.run, save.step);
    rename_path(save.temporary, save.target);
  });
}

// Every byte, each file by the rank that wrote it.
void read_back(const Save& save) {
  save.ranks.together("reading a checkpoint back", [&] {
    const bool leads = save.ranks.leads();
    const auto mine = [&](const std::string& name) {
      const bool own = std::ranges::any_of(save.parts, [&](const auto& part) { return name == save.name_of(part); });
      return own || (leads && !is_shard(name));
    };
    const SealCheck check = check_seal(save.target, true, mine);
    if (check.problem.empty()) return;
    throw Error(ErrorKind::io, str(save.target, ": read back after saving: ", check.problem), kIoFailure);
  });
}

std::string state_text(const FoundCheckpoint& found) {
  return read_file(path_join(state_folder(found.path), kStateFile), kStateLimit);
}

// Whether every rank ends or continues alike: an error of one rank in a call is its own, and the others do not have it.
bool is_of_all(const Ranks& ranks, const Error& error) {
  return ranks.alone() || dynamic_cast<const AgreedError*>(&error) != nullptr;
}

// No problem if the run can resume from there. Reads every byte.
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
                            const std::string& model_files, int64_t keep, int64_t best) {
  const std::unique_ptr<Ranks> lone = optimizer.ranks() == nullptr ? alone() : nullptr;
  Ranks& ranks = lone ? *lone : *optimizer.ranks();
  const std::string temporary = path_join(run.checkpoints(), temporary_name("tmp", step));
  const Save save{run,
                  step,
                  model,
                  optimizer,
                  ranks,
                  parts_to_save(model, optimizer, auxiliary_models),
                  run.checkpoint(step),
                  ranks.from_leader("where a checkpoint is made", temporary)};
  const bool there = ranks.leads() && exists(save.target) && check_whole({save.target, step}, {}).problem.empty();
  if (ranks.any("whether the checkpoint is there", there)) {
    if (ranks.leads()) prune(run, step, keep, best);  // killed between that save and this
    return save.target;
  }
  const std::string title = str("checkpoint of step ", step, " not saved: ");
  ranks.together("checking what is to be saved", [&] { refuse_not_finite(save, title); });
  try {
    write_checkpoint(save, state_json, model_files);
  } catch (const Error& failure) {
    if (failure.kind() == ErrorKind::ranks || !is_of_all(ranks, failure)) throw;
    try {
      if (ranks.leads() && exists(save.temporary)) remove_all(save.temporary);
    } catch (const Error& error) {
      warn(error.what());  // ignored by every reader, and removed by the next start
    }
    const std::string text = str(title, failure.what());
    if (!ranks.alone()) throw AgreedError(ErrorKind::io, text, kIoFailure);
    throw Error(ErrorKind::io, text, kIoFailure);
  }
  read_back(save);
  if (ranks.leads()) prune(run, step, keep, best);
  return save.target;
}

void FailedSaves::attempt(bool needed, const Ranks& ranks, const std::function<void()>& save) try {
  save();
  in_a_row_ = 0;
} catch (const Error& error) {
  const bool passes = error.kind() == ErrorKind::io && is_of_all(ranks, error) && !needed;
  if (!passes || ++in_a_row_ == kMostFailedSaves) throw;
  count_warning(Warning::unsaved);
  warn(str(error.what(), "; going on without it (", in_a_row_, " of at most ", kMostFailedSaves - 1, " in a row)"));
}

void FailedSaves::check_last() const {
  if (in_a_row_ == 0) return;
  throw Error(ErrorKind::io,
              "the last checkpoint could not be saved (see the warning); make room, then resume from the one before",
              kIoFailure);
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
    throw Error(ErrorKind::io, str(none, "could be read (see the warnings); mend the disk, then resume"), kIoFailure);
  throw Error(ErrorKind::path, str(none, "is good (see the warnings); put one back, or start anew with another --out"));
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
  restore_state(found.path, model, optimizer, auxiliary_models);
  return state_text(found);
}

}  // namespace ucas
