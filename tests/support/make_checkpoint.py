"""A random checkpoint of one of the families with a word-level tokenizer, written with nothing but Python's own library.

    make_checkpoint.py DIR [--words "a,b,..."|JSON] [--vocab 512] [--hidden 128] [--layers 4] [--heads 4] [--kv-heads 2]
                           [--intermediate 512] [--untied] [--seed 0] [--family qwen2] [--config JSON] [--spread 0.02]
                           [--rows 0] [--pool 0]

Without --words the words are " w0" .. " wN", so that "vocab" tokens are in use with <pad> and <eos> as the last two.
--config is an object whose keys config.json gets besides: a window, a rope scaling. --spread is that of the weights.
--rows are those of the LM head where it has more than there are words. --pool N takes the rows of matrices out of N drawn
numbers instead of drawing each: a model of 100 M parameters in seconds.
"""
import argparse
import json
import os
import random
import struct
from array import array


def word_pattern(words):
    escaped = []
    for word in sorted(words, key=lambda w: (-len(w.encode()), w)):
        escaped.append("".join("\\" + c if c in "\\.+*?()|[]{}^$" else c for c in word))
    return "|".join(escaped)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def write_tokenizer(folder, words):
    special = [{"id": len(words) + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for i, text in enumerate(["<pad>", "<eos>"])]
    vocab = {word: i for i, word in enumerate([*words, "<pad>", "<eos>"])}
    write_json(f"{folder}/tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": word_pattern(words)}, "behavior": "Isolated",
                          "invert": False},
        "post_processor": None, "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}})
    write_json(f"{folder}/tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, "eos_token": "<eos>",
        "pad_token": "<pad>"})


ARCHITECTURES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM",
                 "mistral": "MistralForCausalLM", "gemma3_text": "Gemma3ForCausalLM", "smollm3": "SmolLM3ForCausalLM",
                 "granite": "GraniteForCausalLM", "olmo2": "Olmo2ForCausalLM", "olmo3": "Olmo3ForCausalLM"}
OLMO = ("olmo2", "olmo3")


def shapes(a):
    """Tensor names and shapes of a model, as Hugging Face names them."""
    width = a.hidden // a.heads
    yield "model.embed_tokens.weight", (a.vocab, a.hidden)
    for i in range(a.layers):
        layer = f"model.layers.{i}"
        for name, heads in (("q", a.heads), ("k", a.kv_heads), ("v", a.kv_heads)):
            yield f"{layer}.self_attn.{name}_proj.weight", (heads * width, a.hidden)
            if a.family == "qwen2":
                yield f"{layer}.self_attn.{name}_proj.bias", (heads * width,)
            if a.family in ("qwen3", "gemma3_text", *OLMO) and name != "v":
                yield f"{layer}.self_attn.{name}_norm.weight", (heads * width if a.family in OLMO else width,)
        yield f"{layer}.self_attn.o_proj.weight", (a.hidden, a.heads * width)
        yield f"{layer}.mlp.gate_proj.weight", (a.intermediate, a.hidden)
        yield f"{layer}.mlp.up_proj.weight", (a.intermediate, a.hidden)
        yield f"{layer}.mlp.down_proj.weight", (a.hidden, a.intermediate)
        if a.family not in OLMO:
            yield f"{layer}.input_layernorm.weight", (a.hidden,)
        yield f"{layer}.post_attention_layernorm.weight", (a.hidden,)
        if a.family == "gemma3_text":
            yield f"{layer}.pre_feedforward_layernorm.weight", (a.hidden,)
        if a.family in ("gemma3_text", *OLMO):
            yield f"{layer}.post_feedforward_layernorm.weight", (a.hidden,)
    yield "model.norm.weight", (a.hidden,)
    if a.untied:
        yield "lm_head.weight", (a.vocab, a.hidden)


def write_weights(folder, a):
    draw = random.Random(a.seed)
    pool = array("f", (draw.gauss(0, a.spread) for _ in range(a.pool)))
    header, offset, blocks = {"__metadata__": {"format": "pt"}}, 0, []
    for name, shape in shapes(a):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        if "norm" in name:
            values = array("f", [0.0 if a.family == "gemma3_text" else 1.0] * count)
        elif a.pool > 0:
            values, width = array("f"), shape[-1]
            for _ in range(count // width):
                first = draw.randrange(len(pool) - width)
                values.extend(pool[first:first + width])
        else:
            values = array("f", (draw.gauss(0, a.spread) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + 4 * count]}
        offset += 4 * count
        blocks.append(values.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{folder}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--words", default="")
    for name, default in (("vocab", 512), ("hidden", 128), ("layers", 4), ("heads", 4), ("kv-heads", 2),
                          ("intermediate", 512), ("seed", 0), ("rows", 0), ("pool", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--untied", action="store_true")
    parser.add_argument("--family", choices=ARCHITECTURES, default="qwen2")
    parser.add_argument("--config", type=json.loads, default={})
    parser.add_argument("--spread", type=float, default=0.02)
    parser.add_argument("--positions", type=int, default=4096)
    a = parser.parse_args()
    words = json.loads(a.words) if a.words.startswith("[\"") else a.words.split(",") if a.words else [f" w{i}" for i in range(a.vocab - 2)]
    a.vocab = max(a.vocab, len(words) + 2) if not a.words else len(words) + 2
    a.vocab = max(a.vocab, a.rows)
    os.makedirs(a.folder, exist_ok=True)
    eos, pad = len(words) + 1, len(words)
    write_json(f"{a.folder}/config.json", {
        "architectures": [ARCHITECTURES[a.family]], "model_type": a.family, "hidden_size": a.hidden,
        "head_dim": a.hidden // a.heads,
        "num_hidden_layers": a.layers, "num_attention_heads": a.heads, "num_key_value_heads": a.kv_heads,
        "intermediate_size": a.intermediate, "vocab_size": a.vocab, "max_position_embeddings": a.positions,
        "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "attention_dropout": 0.0,
        **({"hidden_activation": "gelu_pytorch_tanh"} if a.family == "gemma3_text" else {"hidden_act": "silu"}),
        "tie_word_embeddings": not a.untied, "use_sliding_window": False, "torch_dtype": "float32",
        "eos_token_id": eos, "pad_token_id": pad, **({"sliding_window": None} if a.family == "mistral" else {}),
        **a.config})
    write_json(f"{a.folder}/generation_config.json", {"eos_token_id": eos, "pad_token_id": pad})
    write_tokenizer(a.folder, words)
    write_weights(a.folder, a)


main()
