// The files of a checkpoint's state/ that hold tensors: moments and master weights of the policy and of auxiliary
// models that are trained. One process writes NAME.safetensors, each of several ranks NAME-RANK-of-SIZE.safetensors
// with what it owns; each tensor is in one of them, under its parameter's name. So any number of ranks reads
// what any number has written. Called by train/state/checkpoint; no call here is a collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "train/auxiliary/auxiliary_model.h"
#include "train/optimizer/optimizer.h"

namespace ucas {

using AuxiliaryModels = std::vector<std::unique_ptr<AuxiliaryModel>>;

// What one of these files holds, every tensor in its own type, and where it belongs to an optimizer its step count in
// NAME.json.
struct StatePart {
  std::string name;                  // "optimizer", "critic", "critic-optimizer"
  std::vector<NamedTensor> tensors;  // that this rank owns
  const Optimizer* optimizer = nullptr;
};

// Weights stored in 16 bits cannot restore the f32 masters: those are stored with the moments then.
bool needs_masters(Model& model);

// Of the policy its optimizer, then weights and optimizer of every auxiliary model that is trained.
std::vector<StatePart> parts_to_save(Model& model, const Optimizer& optimizer, const AuxiliaryModels& auxiliary_models);
// "optimizer.safetensors"; of rank 2 of 4 "optimizer-2-of-4.safetensors".
std::string file_of_part(const std::string& name, const Ranks* ranks);
// Whether a file of a checkpoint, by its name below the directory, is a part that one of several ranks has written.
bool is_shard(const std::string& name);
// Rank 0 writes the step count, too.
void write_part(const std::string& state_folder, const StatePart& part, const Ranks* ranks);
int64_t read_counter(const std::string& path);

// From the checkpoint's directory into all that this rank keeps: moments, weights, masters, and the bf16 copies of
// masters that are not here. Errors name file and tensor.
void restore_state(const std::string& checkpoint, Model& model, Optimizer& optimizer,
                   const AuxiliaryModels& auxiliary_models);

}  // namespace ucas
