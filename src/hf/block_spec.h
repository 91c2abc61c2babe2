// What a family's block does, as data. The diagram of model/backend/block.h shows where each column acts; every back
// end reads this spec and never a family's name. Filled by a row of hf/families.h.
#pragma once

namespace ucas {

// Which layers have a sliding window: none, all where sliding_window is not null, those that the file names where
// use_sliding_window is true, or those that the file names, which by default are all but every sixth.
enum class Window { none, all_layers, by_layer, pattern };

// The MLP is gate(h W_gate) * (h W_up): SwiGLU, or GeGLU with the tanh approximation of GELU.
enum class Gate { silu, gelu_tanh };

struct BlockSpec {
  bool qkv_bias = false;          // of the q, k and v projections
  bool qk_norm = false;           // an RMS norm of every query and key head before rotation
  bool qk_norm_whole = false;     // that norm is one of all query heads together, and one of all key heads
  Window window = Window::none;   // and with it which layers slide
  bool local_rope = false;        // layers that slide rotate by angles of their own
  bool unrotated_layers = false;  // layers that no_rope_layers names do not rotate
  bool query_scalar = false;      // scores are divided by sqrt(query_pre_attn_scalar), not by sqrt(head_dim)
  Gate gate = Gate::silu;
  bool norms_before = true;       // RMS norms of what attention and MLP read
  bool norms_after = false;       // RMS norms of what attention and MLP give, before the residual
  bool norm_offset = false;       // RMS norms multiply by 1 + w, not by w
  bool scaled_embedding = false;  // embeddings times sqrt(hidden_size)
  bool multipliers = false;       // of embeddings, scores, what each half adds, and logits, by the file
};

// What a block has, in the order of its parameters; a norm or bias that a family lacks is passed over.
enum class BlockPart {
  attention_in,  // norms are called by the half they belong to
  query,
  key,
  value,
  out,
  q_norm,
  k_norm,
  attention_out,
  mlp_in,
  gate,
  up,
  down,
  mlp_out
};
inline constexpr int kBlockParts = 13;

// Names of a block's modules in Hugging Face's checkpoints, below "model.layers.N.".
struct BlockNames {
  const char* of[kBlockParts];
  constexpr const char* operator[](BlockPart part) const { return of[static_cast<int>(part)]; }
};

inline constexpr BlockNames kNormsBefore = {{"input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
                                             "self_attn.v_proj", "self_attn.o_proj", "self_attn.q_norm",
                                             "self_attn.k_norm", nullptr, "post_attention_layernorm", "mlp.gate_proj",
                                             "mlp.up_proj", "mlp.down_proj", nullptr}};

constexpr BlockNames norms_before_and_after() {
  BlockNames names = kNormsBefore;
  names.of[static_cast<int>(BlockPart::attention_out)] = "post_attention_layernorm";
  names.of[static_cast<int>(BlockPart::mlp_in)] = "pre_feedforward_layernorm";
  names.of[static_cast<int>(BlockPart::mlp_out)] = "post_feedforward_layernorm";
  return names;
}
inline constexpr BlockNames kNormsBeforeAndAfter = norms_before_and_after();

}  // namespace ucas
