// A checkpoint as a GGUF file, with the keys and names that GGML's converter gives it: what cli/gguf_checkpoint.h
// reads, the other way round. Of families that GGML computes in the same way (llama, mistral without windows,
// qwen2, qwen3), with a byte-level BPE tokenizer whose splitting has a name there; all else is refused by name.
#pragma once

#include <string>

#include "hf/gguf/gguf_writer.h"

namespace ucas {

// `directory`: a whole checkpoint, no adapter. `name` is general.name.
// Errors: unsupported; numeric, where a value does not fit; those of the checkpoint's readers.
void export_gguf(const std::string& directory, const std::string& path, const std::string& name, GgufStorage storage);

}  // namespace ucas
