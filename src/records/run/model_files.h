// RUN/model_files: the run's own copy of all that makes weights a Hugging Face directory (the tokenizer's files,
// config.json with the keys that ucas does not know, generation_config.json, a chat template), sealed. Every checkpoint
// is written from it, so that neither the base nor an older checkpoint has to stay. Owned by the holder of the run
// directory's lock.
#pragma once

#include <string>

#include "records/run/run_directory.h"

namespace ucas {

// The directory that the run's tokenizer is read from: the copy if it is whole, else `from` if it has one, else
// `otherwise`. (Runs of earlier versions have no copy, and may have lost the tokenizer from their checkpoints.)
std::string tokenizer_directory(const RunDirectory& run, const std::string& from, const std::string& otherwise);

// Makes the copy from a checkpoint directory: `from`, its tokenizer as above. A copy that is there and whole is kept;
// one that is damaged is made again, with a warning.
void keep_model_files(const RunDirectory& run, const std::string& from, const std::string& otherwise);

// Error(ErrorKind::io, exit 74) naming the file if the copy is not whole.
void check_model_files(const std::string& directory);

}  // namespace ucas
