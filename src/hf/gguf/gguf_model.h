// What a GGUF file says of a model, as a checkpoint of Hugging Face's kind: its config.json and the tensors under their
// names there, de-quantised as they are asked for. Of the architectures of hf/families.h (Mistral's models are of
// llama); all else that would change a value is refused by name, never passed over.
#pragma once

#include <string>
#include <vector>

#include "hf/gguf/gguf.h"
#include "hf/model_config.h"
#include "hf/safetensors.h"

namespace ucas {

// `torch_dtype`: "float32" or "bfloat16", what the checkpoint will be stored in.
// Errors: unsupported; gguf, where a key is missing or makes no sense; shape, missing_tensor, unexpected_tensor.
ModelConfig gguf_model_config(const GgufFile& file, const std::string& torch_dtype);
// In the order of parameter_shapes(config), checked against it. They read from `file`, which must outlive them; a value
// that is not finite is Error(ErrorKind::numeric) when it is read.
std::vector<TensorToStore> gguf_weights(const GgufFile& file, const ModelConfig& config);

// What a writer of such files needs, too.
inline constexpr const char* kGgufRopeFactors = "rope_freqs.weight";
// Factors on the wavelengths as GGML's converter computes them of a "llama3" scaling.
std::vector<double> llama3_factors(const RopeConfig& rope, int64_t head_dim);
// Rows of q and k of a llama model, from our order to that of the file.
void interleave_rows(float* values, int64_t rows, int64_t columns, int64_t head_dim);

}  // namespace ucas
