// manifest.json seals a directory: it is written last, with the size and XXH3-128 of every other file and of its own
// text. A directory whose manifest verifies is complete and is what was written. (SHA-256 would cost 0.5 GB/s here;
// this guards against crashes and rot, not against forgers.) If the directory has a folder state/, the manifest is in
// it and covers both: all files outside state/ are then the model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace ucas {

constexpr int64_t kManifestFormat = 2;  // 1: everything in one folder; still read
constexpr const char* kStateFolder = "state";

// The folder of a checkpoint that holds what is not the model: state/, or the checkpoint itself in format 1.
std::string state_folder(const std::string& directory);

// A file as a manifest lists it: its name below the directory ("state/optimizer.safetensors").
struct SealedFile {
  std::string name, hash;
  int64_t size = 0;
};
SealedFile seal_of(const std::string& directory, const std::string& name);  // reads every byte

// Hashes all files of `directory` and of its state/ (plain files only, no other folders) and writes the manifest
// durably. `known`: those that other processes have written, and read: of these only the size is compared.
// Error(ErrorKind::io) where it is another.
void seal_directory(const std::string& directory, int64_t step, std::span<const SealedFile> known = {});

struct SealCheck {
  std::string problem;  // "" = verified; otherwise what is wrong, for a message
  int64_t step = -1;    // as sealed
  bool unread = false;  // by a fault of the machine: the checkpoint may be good
};
// `deep` reads every byte, of files that `reads` accepts (null: all); otherwise only sizes are compared. Files that the
// manifest does not list are ignored.
SealCheck check_seal(const std::string& directory, bool deep,
                     const std::function<bool(const std::string& name)>& reads = nullptr);

}  // namespace ucas
