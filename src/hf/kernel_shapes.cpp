#include "hf/kernel_shapes.h"

#include "hf/families.h"

namespace ucas {

std::string unsuited_for_kernels(const ModelConfig& config, const ModelOptions& options) {
  const auto eighths = [](int64_t n) { return n % 8 == 0; };
  // Kernels know the block of families without norms after each half (hf/block_spec.h); others take the ATen path.
  const BlockSpec& spec = config.family->block;
  const bool usual = !spec.norms_after && !spec.norm_offset && !spec.local_rope && !spec.query_scalar &&
                     !spec.scaled_embedding && spec.gate == Gate::silu;
  if (!usual) return "its block has steps that they do not know";
  if (options.dtype != Dtype::bf16) return "they are for dtype = \"bf16\"";
  if (!eighths(config.hidden_size) || !eighths(config.intermediate_size) || !eighths(config.head_dim))
    return "a width of it is no multiple of 8";
  if (config.head_dim > 256 || config.num_attention_heads / config.num_key_value_heads > 16)
    return "they know heads of at most 256 numbers, at most 16 to a key";
  return {};
}
bool suits_kernels(const ModelConfig& config, const ModelOptions& options) {
  return unsuited_for_kernels(config, options).empty();
}

}  // namespace ucas
