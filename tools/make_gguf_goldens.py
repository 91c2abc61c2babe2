#!/usr/bin/env python3
"""Writes tests/goldens/gguf with gguf-py 0.19 and transformers 5.24: what `ucas convert` is held to.

blocks.safetensors: for each type random blocks (TYPE.blocks) and what gguf-py de-quantises them to (TYPE.values).
NAME.gguf: a small random model of each architecture in the types that quantise, written by gguf-py; NAME.json: the SHA-256
of each tensor that transformers loads from it, in f32, what config says, and the ids of texts by the tokenizer that
`tokenizers` makes of the same tables.

    PYTHON -B tools/make_gguf_goldens.py [NAME ...]       needs gguf, numpy, torch, transformers; only to change the goldens
"""
import functools
import hashlib
import json
import os
import sys

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
from tokenizer_kinds import MAKERS  # noqa: E402

FOLDER = os.path.join(HERE, "..", "tests", "goldens", "gguf")
# Where a block keeps the f16 scales that decide its range.
SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2],
          Type.Q6_K: [208]}
PLAIN = {Type.F32: np.float32, Type.F16: np.float16}
EXTREME = [0.0, -0.0, 6e-8, -6.1e-5, 65504.0, -65504.0, 1.0]  # zeros, subnormal, smallest normal, largest
TEXTS = ["The answer is \\boxed{4}.", " 12 + 345 = 357\n\n  def f(x):\r\n\treturn x", "caf\u00e9 cafe\u0301 \u4f60\u597d \U0001f600", "it's WE'LL 's", "<|end|>a<|end|>",
         "<tool>x</tool> <tool>s", "", "   ", "\u0661\u0662 \u2167", "a\x04b\x7f"]


def random_blocks(rng, kind, count, extreme=True):
    """Bytes of `count` blocks; scales finite."""
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in SCALES[kind]:
        scales = rng.normal(0, 0.02, count).astype(np.float16)
        if extreme:
            scales[:len(EXTREME)] = np.array(EXTREME, np.float16)[rng.permutation(len(EXTREME))][:count]
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(count, 2)
    return blocks


def write_blocks():
    rng, tensors = np.random.default_rng(0), {}
    for kind in SCALES:
        blocks = random_blocks(rng, kind, 12)
        tensors[f"{kind.name}.blocks"] = blocks.reshape(-1)
        tensors[f"{kind.name}.values"] = gguf.dequantize(blocks, kind).reshape(-1)
    halves = np.concatenate([np.arange(0, 65536, 97, dtype=np.uint16), np.array([0x7BFF, 0xFBFF, 0x0001, 0x8000], np.uint16)])
    halves = halves[(halves >> 10 & 31) != 31]
    tensors["F16.blocks"] = halves.view(np.uint8)
    tensors["F16.values"] = halves.view(np.float16).astype(np.float32)
    tensors["BF16.blocks"] = halves.view(np.uint8)
    tensors["BF16.values"] = gguf.dequantize(halves.view(np.uint8).reshape(1, -1), Type.BF16).reshape(-1)
    save_file(tensors, os.path.join(FOLDER, "blocks.safetensors"))


def tables_of(kind):
    """Tokens by id with their kinds, and merges, of a tokenizer of tokenizer_kinds.py."""
    data = json.loads(MAKERS[kind]().to_str())
    tokens = {i: (t, gguf.TokenType.NORMAL) for t, i in data["model"]["vocab"].items()}
    for added in data["added_tokens"]:
        tokens[added["id"]] = (added["content"], gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED)
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    names, kinds = zip(*[tokens[i] for i in range(len(tokens))])
    return list(names), list(kinds), merges


@functools.cache   # a training breaks ties as it likes
def pieces_of(kind):
    """Tokens with their kinds and scores, as SentencePiece's files hold them, and the tokenizer that transformers' way to
    make merges of scores comes to."""
    from tokenizers import Tokenizer
    from transformers.tokenization_utils_sentencepiece import generate_merges

    data = json.loads(MAKERS[kind]().to_str())
    vocab = data["model"]["vocab"]
    score = {token: -10_000.0 - i for token, i in vocab.items()}
    for i, (left, right) in enumerate(data["model"]["merges"]):
        score[left + right] = max(score[left + right], -float(i))
    tokens = {i: [t, gguf.TokenType.BYTE if t.startswith("<0x") else gguf.TokenType.NORMAL, score[t]] for t, i in vocab.items()}
    for added in data["added_tokens"]:
        tokens[added["id"]] = [added["content"], gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED, 0.0]
    tokens[vocab["<unk>"]][1] = gguf.TokenType.UNKNOWN
    names, kinds, scores = zip(*[tokens[i] for i in range(len(tokens))])
    skip = {t for t, k in zip(names, kinds) if k not in (gguf.TokenType.NORMAL, gguf.TokenType.USER_DEFINED)}
    merges = generate_merges(vocab, {t: score[t] for t in vocab}, skip)
    data["model"]["merges"] = [list(pair) for pair in merges]
    return list(names), list(kinds), list(scores), Tokenizer.from_str(json.dumps(data))


def add(writer, rng, name, shape, kind):
    if kind in PLAIN:
        return writer.add_tensor(name, rng.normal(0, 0.1, shape).astype(PLAIN[kind]))
    if kind == Type.BF16:
        return writer.add_tensor(name, gguf.quantize(rng.normal(0, 0.1, shape).astype(np.float32), kind), raw_dtype=kind)
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random_blocks(rng, kind, int(np.prod(shape)) // block, extreme=False)
    return writer.add_tensor(name, blocks.reshape(*shape[:-1], shape[-1] // block * size), raw_dtype=kind)


def write_model(path, architecture, tokenizer, pre, hidden, heads, kv, width, inner, layers, kinds, tied, padding=0, more=None):
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_type("model")
    writer.add_context_length(256)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(100000.0)
    if width * heads != hidden or architecture == "qwen3":
        writer.add_key_length(width)
        writer.add_value_length(width)
    if architecture == "llama":
        writer.add_rope_dimension_count(width)
    gemma = architecture == "gemma3"
    if gemma:
        writer.add_sliding_window(6)
        writer.add_float32("gemma3.rope.freq_base_swa", 500.0)
        tokens, types, scores, _ = pieces_of(tokenizer)
    else:
        tokens, types, merges = tables_of(tokenizer)
    end = tokens.index("<|end|>")
    begin = next((tokens.index(t) for t in ("<|begin_of_text|>", "<s>") if t in tokens), end)
    for i in range(padding):
        tokens.append(f"[PAD{len(tokens)}]")
        types.append(gguf.TokenType.UNUSED)
    writer.add_tokenizer_model("llama" if gemma else "gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if gemma:
        writer.add_token_scores(scores)
        writer.add_add_space_prefix(False)
        writer.add_unk_token_id(tokens.index("<unk>"))
    else:
        writer.add_token_merges(merges)
    writer.add_bos_token_id(begin)
    writer.add_eos_token_id(end)
    writer.add_pad_token_id(end)
    writer.add_add_bos_token(begin != end)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}")
    kind = iter(kinds * 100)
    add(writer, rng, "token_embd.weight", (len(tokens), hidden), next(kind))
    if not tied:
        add(writer, rng, "output.weight", (len(tokens), hidden), next(kind))
    add(writer, rng, "output_norm.weight", (hidden,), Type.F32)
    for i in range(layers):
        for name, shape in (("attn_q", (heads * width, hidden)), ("attn_k", (kv * width, hidden)), ("attn_v", (kv * width, hidden)),
                            ("attn_output", (hidden, heads * width)), ("ffn_gate", (inner, hidden)), ("ffn_up", (inner, hidden)),
                            ("ffn_down", (hidden, inner))):
            wanted = next(kind)
            while shape[-1] % gguf.GGML_QUANT_SIZES[wanted][0] != 0:
                wanted = Type.Q8_0
            add(writer, rng, f"blk.{i}.{name}.weight", shape, wanted)
        for name in ("attn_norm", "ffn_norm") + (("post_attention_norm", "post_ffw_norm") if gemma else ()):
            add(writer, rng, f"blk.{i}.{name}.weight", (hidden,), Type.F32)
        if architecture == "qwen2":
            for name, rows in (("attn_q", heads * width), ("attn_k", kv * width), ("attn_v", kv * width)):
                add(writer, rng, f"blk.{i}.{name}.bias", (rows,), Type.F32)
        if architecture in ("qwen3", "gemma3"):
            for name in ("attn_q_norm", "attn_k_norm"):
                add(writer, rng, f"blk.{i}.{name}.weight", (width,), Type.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def expectations(path, tokenizer):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(FOLDER, gguf_file=os.path.basename(path), dtype=torch.float32)
    tensors = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        data = np.ascontiguousarray(value.detach().float().numpy())
        tensors[name] = {"shape": list(data.shape), "sha256": hashlib.sha256(data.tobytes()).hexdigest()}
    config = model.config.to_dict()
    keys = ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size",
            "vocab_size", "max_position_embeddings", "tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id")
    ids = pieces_of(tokenizer)[3] if model.config.model_type == "gemma3_text" else MAKERS[tokenizer]()
    return {"config": {k: config[k] for k in keys}, "tensors": tensors,
            "ids": [{"text": t, "ids": ids.encode(t, add_special_tokens=False).ids} for t in TEXTS]}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    if len(sys.argv) < 2:
        write_blocks()
    small = [Type.Q8_0, Type.Q4_1, Type.Q4_0, Type.Q5_0, Type.Q5_1, Type.F16, Type.BF16]
    models = {
        "llama": dict(tokenizer="llama3-like", pre="llama-bpe", hidden=64, heads=4, kv=2, width=16, inner=96, layers=2, kinds=small, tied=True),
        "qwen2": dict(tokenizer="qwen2-like", pre="qwen2", hidden=32, heads=2, kv=1, width=16, inner=64, layers=1, kinds=[Type.F16, Type.Q8_0],
                      tied=False, padding=8),
        "qwen3": dict(tokenizer="qwen2-like", pre="qwen2", hidden=256, heads=1, kv=1, width=128, inner=32, layers=1,
                      kinds=[Type.Q6_K, Type.Q4_K, Type.Q5_K, Type.Q6_K], tied=True),
        "gemma3": dict(tokenizer="gemma-like", pre="default", hidden=32, heads=2, kv=1, width=32, inner=64, layers=7,
                       kinds=[Type.Q8_0, Type.Q5_0, Type.Q4_0], tied=True),
    }
    for name, settings in models.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        path = os.path.join(FOLDER, f"{name}.gguf")
        write_model(path, name, **settings)
        with open(os.path.join(FOLDER, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(expectations(path, settings["tokenizer"]), file, indent=1)
            file.write("\n")
        print(name, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
