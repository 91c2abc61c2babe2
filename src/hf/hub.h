// Names of the Hugging Face hub, looked up in the local cache that huggingface_hub fills
// (https://huggingface.co/docs/hub/local-cache). Nothing is ever fetched: what is not there is refused with the command
// that fetches it.
//
//   ORG/NAME[@REVISION]                     a model; without a revision what refs/main says, as transformers
//   hf://[datasets/]ORG/SET[@REVISION]/PATH a file of a data set, or those that fit a * in its name
//
//   rg:TASK,size=N,seed=S                   problems of reasoning-gym
//
// A file or directory of that name wins over a model of the hub. The cache's folder: HF_HUB_CACHE, HF_HOME,
// XDG_CACHE_HOME, each with ~.
// Errors: path (not in the cache, no such revision or file, a link out of the cache), truncated (a download
// that did not end), lfs_pointer, usage.
#pragma once

#include <string>
#include <vector>

#include "base/text/fields.h"

namespace ucas {

std::string hub_cache();  // its directory, there or not

// "ORG/NAME", or "ORG/NAME@REVISION"; no path, no address.
bool is_hub_name(const std::string& name);

// The directory of a checkpoint: `name` itself where there is such a file or directory or it is no name of the hub,
// else the snapshot of its revision, which holds all files of a checkpoint or of an adapter. `revision`: of a name that
// says none.
std::string checkpoint_directory(const std::string& name, const std::string& revision = "");

// The same of a directory with a tokenizer; the snapshot needs to hold nothing else.
std::string tokenizer_directory_of(const std::string& name);

// The file of a model's snapshot; "" where the model, its refs/main or the file is not in the cache.
std::string cached_file(const std::string& name, const std::string& file);

// Files for `hf://..` and `rg:..`, each other name as it is. Problems of reasoning-gym are made, not read: written
// once, to a file in the user's cache, they are then data like any other (python/ucas/reasoning.py).
std::vector<std::string> data_files(const std::vector<std::string>& names);
// Whether a file is one of those that were made, whose rows the scorers of their tasks can score.
bool is_generated_file(const std::string& path);

void resolve_hub_names(Fielder list, void* config);
// Replaces names of the hub in every option that names a checkpoint or data files (OptionNames) by paths.
template <class Config>
void resolve_hub_names(Config& config) {
  resolve_hub_names([](Fields& f, void* c) { static_cast<Config*>(c)->fields(f); }, &config);
}

}  // namespace ucas
