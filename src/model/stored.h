// Tensors of a model or of its optimizer as the writer of weight files takes them (hf/safetensors.h): where they lie
// and what type they have is of no concern to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hf/safetensors.h"
#include "model/masters.h"
#include "model/model.h"

namespace ucas {

// f32, f16, bf16, int8 or uint8.
StoredType stored_type_of(const at::Tensor& tensor);

// Shares the tensors; a copy is made, one at a time, of those that lie on another device or are not contiguous, and
// `values` is asked for those that have none.
std::vector<TensorToStore> tensors_to_store(const std::vector<NamedTensor>& tensors,
                                            const MasterValues& values = nullptr);

// Which values a weight file can hold as finite numbers.
// Index of the first value that is NaN or infinite, or becomes infinite when it is rounded to `torch_dtype` ("float32",
// "float16", "bfloat16"); -1 if there is none.
int64_t first_not_finite(std::span<const float> values, const std::string& torch_dtype = "float32");

}  // namespace ucas
