#include "hf/gguf/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/error.h"
#include "base/str.h"
#include "hf/parameters.h"

namespace ucas {

namespace {

constexpr const char *kEmbedding = "token_embd.weight", *kHead = "output.weight";

// Keys of the architecture by their ends: "llama." + "block_count".
class ModelKeys {
 public:
  ModelKeys(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string name(std::string_view end) const { return str(prefix_, end); }
  bool has(std::string_view end) const { return file_.find(name(end)) != nullptr; }
  std::optional<int64_t> integer(std::string_view end, int64_t high) const { return file_.integer(name(end), 1, high); }
  int64_t required(std::string_view end, int64_t high) const {
    const auto value = integer(end, high);
    if (!value) file_.missing(name(end));
    return *value;
  }
  std::optional<double> positive(std::string_view end) const {
    const auto value = file_.number(name(end));
    if (value && *value <= 0) refuse(ErrorKind::gguf, end, "expected a number above 0");
    return value;
  }
  double required_positive(std::string_view end) const {
    const auto value = positive(end);
    if (!value) file_.missing(name(end));
    return *value;
  }
  std::optional<std::string> text(std::string_view end) const { return file_.text(name(end)); }
  [[noreturn]] void refuse(ErrorKind kind, std::string_view end, const std::string& expected) const {
    file_.refuse(kind, name(end), expected);
  }

  // A key that is passed over could be one that changes every value. Those that are off (0, false) change none.
  void refuse_unknown(const BlockSpec& block) const {
    static const std::set<std::string_view> with_windows = {"attention.sliding_window",
                                                            "attention.sliding_window_pattern", "rope.freq_base_swa"};
    static const std::set<std::string_view> known = {"vocab_size",
                                                     "context_length",
                                                     "embedding_length",
                                                     "block_count",
                                                     "feed_forward_length",
                                                     "attention.head_count",
                                                     "attention.head_count_kv",
                                                     "attention.key_length",
                                                     "attention.value_length",
                                                     "attention.layer_norm_rms_epsilon",
                                                     "rope.dimension_count",
                                                     "rope.freq_base",
                                                     "rope.scaling.type",
                                                     "rope.scaling.factor",
                                                     "rope.scaling.finetuned",
                                                     "rope.scaling.original_context_length",
                                                     "rope.scaling.attn_factor",
                                                     "rope.scaling.yarn_beta_fast",
                                                     "rope.scaling.yarn_beta_slow"};
    for (const std::string& key : file_.keys()) {
      if (!key.starts_with(prefix_)) continue;
      const std::string_view end = std::string_view(key).substr(prefix_.size());
      if (known.contains(end) || (block.window == Window::pattern && with_windows.contains(end))) continue;
      const GgufValue& value = *file_.find(key);
      const auto* number = std::get_if<uint64_t>(&value);
      const auto* truth = std::get_if<bool>(&value);
      const bool off = (number != nullptr && *number == 0) || (truth != nullptr && !*truth);
      if (!off || key.ends_with("attention.causal"))
        file_.refuse(ErrorKind::unsupported, key,
                     "a setting that ucas does not know and that may change what the model computes");
    }
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

const Family& gguf_family(const GgufFile& file) {
  const auto type = file.text("general.type");
  if (type && *type != "model")
    file.refuse(ErrorKind::unsupported, "general.type", "ucas converts whole models, of type \"model\"");
  if (file.integer("split.count", 0, 65'535).value_or(0) > 1)
    file.refuse(ErrorKind::unsupported, "split.count",
                "one file of several; join them with `llama-gguf-split --merge`");
  const auto architecture = file.text("general.architecture");
  if (!architecture) file.missing("general.architecture");
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (family.gguf == nullptr) continue;
    if (*architecture == family.gguf) return family;
    names.emplace_back(family.gguf);
  }
  file.refuse(ErrorKind::unsupported, "general.architecture", str("ucas converts ", join(names, ", ")));
}

// A file of Llama 3.1 and later holds what the scaling comes to, not its settings. Those of all published models but
// for the factor; the tensor must then be what they come to.
void read_rope_factors(const GgufFile& file, const ModelConfig& c, RopeConfig& rope) {
  const GgufTensor* tensor = file.tensor(kGgufRopeFactors);
  if (tensor == nullptr) return;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::unsupported, str(file.path(), ": tensor ", kGgufRopeFactors, ": ", what,
                                            "; ucas knows the factors of Llama 3.1 and later (rope_type \"llama3\")"));
  };
  if (tensor->shape != std::vector{c.head_dim / 2}) fail(str("expected ", c.head_dim / 2, " values"));
  if (rope.kind != RopeKind::plain) fail("beside another scaling of the rotary embedding");
  std::vector<float> stored(static_cast<size_t>(tensor->elements()));
  if (tensor->type->block_values != 1) fail(str("of type ", tensor->type->name));
  file.read(*tensor, 0, tensor->elements(), stored.data());
  if (std::ranges::all_of(stored, [](float x) { return x == 1.0f; })) return;
  rope.kind = RopeKind::llama3;
  rope.factor = stored.back();
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_max_position_embeddings = 8192;
  const std::vector<double> expected = llama3_factors(rope, c.head_dim);
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!(std::abs(stored[i] - expected[i]) <= 1e-5 * expected[i])) fail(str("value ", i, " is ", stored[i]));
  }
}

RopeConfig gguf_rope(const GgufFile& file, const ModelKeys& keys, const ModelConfig& c) {
  RopeConfig rope;
  rope.theta = keys.positive("rope.freq_base").value_or(10000);
  const std::string type = keys.text("rope.scaling.type").value_or("none");
  if (type == "linear" || type == "yarn") {
    rope.kind = type == "linear" ? RopeKind::linear : RopeKind::yarn;
    rope.factor = keys.required_positive("rope.scaling.factor");
    if (rope.factor < 1) keys.refuse(ErrorKind::gguf, "rope.scaling.factor", "expected at least 1");
  } else if (type != "none") {
    keys.refuse(ErrorKind::unsupported, "rope.scaling.type", "ucas runs none, linear, yarn");
  }
  if (rope.kind == RopeKind::yarn) {
    rope.original_max_position_embeddings =
        keys.integer("rope.scaling.original_context_length", int64_t{1} << 30).value_or(c.max_position_embeddings);
    rope.beta_fast = keys.positive("rope.scaling.yarn_beta_fast").value_or(32);
    rope.beta_slow = keys.positive("rope.scaling.yarn_beta_slow").value_or(1);
  }
  if (keys.positive("rope.scaling.attn_factor").value_or(1) != 1)
    keys.refuse(ErrorKind::unsupported, "rope.scaling.attn_factor", "expected 1");
  read_rope_factors(file, c, rope);
  return rope;
}

// What readers of such files take of a gemma3: every sixth layer sees all where the file does not say, and one size of
// model, that of 62 layers, divides its scores by another root than that of the head width.
void read_layers(const ModelKeys& keys, ModelConfig& c) {
  const int64_t window = keys.required("attention.sliding_window", int64_t{1} << 40);
  const int64_t pattern = keys.integer("attention.sliding_window_pattern", int64_t{1} << 30).value_or(6);
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer)
    c.windows.push_back((layer + 1) % pattern == 0 ? 0 : window);
  c.local_rope.theta = keys.positive("rope.freq_base_swa").value_or(10000);
  c.query_pre_attn_scalar = c.num_hidden_layers == 62 ? c.hidden_size / c.num_attention_heads : c.head_dim;
}

void read_token_ids(const GgufFile& file, ModelConfig& c) {
  const auto id = [&](const char* key) { return file.integer(str("tokenizer.ggml.", key), 0, c.vocab_size - 1); };
  c.bos_token_id = id("bos_token_id").value_or(-1);
  c.pad_token_id = id("padding_token_id").value_or(-1);
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const auto end = id(key);
    if (end && std::ranges::find(c.eos_token_id, *end) == c.eos_token_id.end())
      c.eos_token_id.push_back(static_cast<int32_t>(*end));
  }
}

// GGML rotates neighbours, (0, 1) (2, 3) .., where others rotate halves, (0, d/2) (1, d/2 + 1) ..: the rows of
// each head of q and k of a llama model are stored in the order 0, d/2, 1, d/2 + 1, ... Row `row` of ours is theirs at:
int64_t interleaved_row(int64_t row, int64_t head_dim) {
  const int64_t within = row % head_dim, half = head_dim / 2;
  return row - within + within % half * 2 + within / half;
}

void check_finite(const GgufFile& file, const GgufTensor& tensor, const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i]))
      throw Error(ErrorKind::numeric,
                  str(file.path(), ": tensor ", printable(tensor.name), " holds a value of ", values[i]), kNumeric);
  }
}

// `head_dim` above 0: of heads whose rows are interleaved.
// `offset`: what the file has added to every value.
TensorToStore tensor_of(const GgufFile& file, const GgufTensor& tensor, const ParameterShape& shape, int64_t head_dim,
                        float offset) {
  TensorToStore out;
  out.name = shape.module + shape.kind;
  out.shape = shape.shape();
  out.pieces = [&file, &tensor, head_dim, offset](int64_t first, int64_t count, float* to) {
    const int64_t columns = tensor.shape.back();
    for (int64_t at = first; at < first + count && head_dim > 0;) {
      const int64_t row = at / columns, n = std::min(columns - at % columns, first + count - at);
      file.read(tensor, interleaved_row(row, head_dim) * columns + at % columns, n, to + (at - first));
      at += n;
    }
    if (head_dim == 0) file.read(tensor, first, count, to);
    for (int64_t i = 0; offset != 0 && i < count; ++i) to[i] -= offset;
    check_finite(file, tensor, to, count);
  };
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (int64_t size : shape) sizes.push_back(str(size));
  return str("[", join(sizes, ", "), "]");
}

}  // namespace

std::vector<double> llama3_factors(const RopeConfig& rope, int64_t head_dim) {
  std::vector<double> factors;
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double turns =
        original /
        (2 * std::numbers::pi * std::pow(rope.theta, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
    const double smooth =
        std::clamp((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0);
    factors.push_back(1 / ((1 - smooth) / rope.factor + smooth));
  }
  return factors;
}

void interleave_rows(float* values, int64_t rows, int64_t columns, int64_t head_dim) {
  const std::vector<float> ours(values, values + rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(ours.data() + row * columns, columns, values + interleaved_row(row, head_dim) * columns);
  }
}

ModelConfig gguf_model_config(const GgufFile& file, const std::string& torch_dtype) {
  ModelConfig c;
  c.family = &gguf_family(file);
  const ModelKeys keys(file, c.family->gguf);
  keys.refuse_unknown(c.family->block);
  c.torch_dtype = torch_dtype;
  c.hidden_size = keys.required("embedding_length", 65536);
  c.num_hidden_layers = keys.required("block_count", 1024);
  c.intermediate_size = keys.required("feed_forward_length", int64_t{1} << 20);
  c.num_attention_heads = keys.required("attention.head_count", 1024);
  c.num_key_value_heads = keys.integer("attention.head_count_kv", 1024).value_or(c.num_attention_heads);
  c.max_position_embeddings = keys.required("context_length", int64_t{1} << 30);
  c.rms_norm_eps = keys.required_positive("attention.layer_norm_rms_epsilon");
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    keys.refuse(ErrorKind::gguf, "attention.head_count_kv", str("must divide head_count = ", c.num_attention_heads));
  const auto width = keys.integer("attention.key_length", 4096);
  if (!width && c.hidden_size % c.num_attention_heads != 0)
    keys.refuse(ErrorKind::gguf, "attention.head_count", str("must divide embedding_length = ", c.hidden_size));
  c.head_dim = width.value_or(c.hidden_size / c.num_attention_heads);
  if (c.head_dim % 2 != 0)
    throw Error(ErrorKind::gguf,
                str(file.path(), ": head width ", c.head_dim, " is odd; rotary embedding needs pairs"));
  if (keys.integer("attention.value_length", 4096).value_or(c.head_dim) != c.head_dim)
    keys.refuse(ErrorKind::unsupported, "attention.value_length", str("expected that of keys, ", c.head_dim));
  if (keys.integer("rope.dimension_count", 4096).value_or(c.head_dim) != c.head_dim)
    keys.refuse(ErrorKind::unsupported, "rope.dimension_count", str("ucas rotates whole heads only, ", c.head_dim));
  const GgufTensor* embedding = file.tensor(kEmbedding);
  if (embedding == nullptr)
    throw Error(ErrorKind::missing_tensor, str(file.path(), ": tensor ", kEmbedding, " is missing"));
  if (embedding->shape.size() != 2 || embedding->shape[0] < 2 || embedding->shape[0] > int64_t{1} << 24)
    throw Error(ErrorKind::shape, str(file.path(), ": tensor ", kEmbedding, ": shape ", shape_text(embedding->shape),
                                      "; expected 2 .. 2^24 rows of ", c.hidden_size));
  c.vocab_size = embedding->shape[0];
  c.tie_word_embeddings = file.tensor(kHead) == nullptr;
  c.rope = gguf_rope(file, keys, c);
  if (c.family->block.window == Window::pattern) read_layers(keys, c);
  read_token_ids(file, c);
  return c;
}

std::vector<TensorToStore> gguf_weights(const GgufFile& file, const ModelConfig& config) {
  const bool interleaved = std::string_view(config.family->model_type) == "llama";
  std::vector<TensorToStore> weights;
  std::set<std::string, std::less<>> known = {kGgufRopeFactors};
  for (const ParameterShape& p : parameter_shapes(config)) {
    const std::string name = p.gguf + p.kind;
    const GgufTensor* tensor = file.tensor(name);
    if (tensor == nullptr)
      throw Error(ErrorKind::missing_tensor, str(file.path(), ": tensor ", name, " ", shape_text(p.shape()),
                                                 " is missing; its metadata asks for it"));
    if (tensor->shape != p.shape())
      throw Error(ErrorKind::shape, str(file.path(), ": tensor ", name, ": shape ", shape_text(tensor->shape),
                                        ", its metadata asks for ", shape_text(p.shape())));
    const bool turned = interleaved && (p.module.ends_with(".q_proj") || p.module.ends_with(".k_proj"));
    const bool raised = config.family->block.norm_offset && p.is_norm();  // 1 + w is stored
    weights.push_back(tensor_of(file, *tensor, p, turned ? config.head_dim : 0, raised ? 1.0f : 0.0f));
    known.insert(name);
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (!known.contains(tensor.name))
      throw Error(ErrorKind::unexpected_tensor, str(file.path(), ": tensor ", printable(tensor.name), " is none of a ",
                                                    config.family->title, " model that ucas runs"));
  }
  return weights;
}

}  // namespace ucas
