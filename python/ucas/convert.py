"""Makes a Hugging Face checkpoint of a GGUF file: `python -m ucas.convert FILE.gguf DIR [--dtype f32|bf16]`.

Models of the architectures llama (Mistral's are stored as it), qwen2, qwen3 and gemma3, in every type that the package `gguf` de-quantises; a
quantised file holds less than the published weights. Tokenizers of byte-level BPE, cut as tokenizer.ggml.pre says, and Gemma's, whose merges
come of the order of its tokens. What is none of these is refused by name; for other models, and for the way back, there are llama.cpp's
converters. Needs the package `gguf`, nothing of this one: any Python runs this file, and `python -m ucas.convert` is the same.
"""
import argparse
import json
import os
import shutil
import sys

try:
    from ._ucas import Error
except ImportError:  # as a file of its own
    class Error(ValueError):
        """What a user can mend."""

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "gemma3": "Gemma3ForCausalLM"}
MODEL_TYPES = {"gemma3": "gemma3_text"}  # where it is another
# Of a block, in this order; matrices may have a bias.
BLOCK = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA3 = {**BLOCK, "ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
# Keys of the architecture that change no value, or that are read below.
KNOWN = {"vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
         "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon", "rope.dimension_count", "rope.freq_base"}
SLIDING = {"attention.sliding_window", "attention.sliding_window_pattern", "rope.freq_base_swa"}  # of gemma3
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # of tokenizer.ggml.token_type


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def split(expression):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


def digits(count):
    return (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + count +
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SMOLLM = [{"type": "Digits", "individual_digits": True}, byte_level(True)]
QWEN2, LLAMA3 = [split(digits("")), byte_level(False)], [split(digits("{1,3}")), byte_level(False)]
# How a text is cut, by GGML's name: steps, NFC before them, whether a piece that is a token is merged no further (and a text begun with a token).
SPLITTINGS = {"gpt-2": ([byte_level(True)], False, False), "smollm": (SMOLLM, False, False), "starcoder": (SMOLLM, False, False),
              "qwen2": (QWEN2, True, False), "deepseek-r1-qwen": (QWEN2, False, False), "llama-bpe": (LLAMA3, False, True),
              "llama-v3": (LLAMA3, False, True), "llama3": (LLAMA3, False, True), "tekken": ([split(TEKKEN), byte_level(False)], False, True)}


class Model:
    """A GGUF file: keys, tensors, and the config.json that they come to."""

    def __init__(self, path):
        import gguf

        self.gguf, self.path = gguf, path
        try:
            reader = gguf.GGUFReader(path)
            self.keys = {key: field.contents() for key, field in reader.fields.items()}
        except OSError:
            raise
        except Exception as error:  # of a file that is cut or none
            raise Error(f"{path}: no GGUF file that can be read ({error})") from None
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.kind = self.known("general.architecture", ARCHITECTURES)
        known = KNOWN | SLIDING if self.kind == "gemma3" else KNOWN
        for key, value in self.keys.items():
            if key.startswith(self.kind + ".") and key.removeprefix(self.kind + ".") not in known and value not in (0, "none"):
                raise Error(f"{path}: {key} = {value!r} may change what the model computes, and this converter does not know it; "
                            "transformers (from_pretrained with gguf_file, save_pretrained) may")

    def known(self, key, table):
        value = self.keys.get(key)
        if value not in table:
            raise Error(f"{self.path}: {key} = {value!r}; expected {', '.join(table)}")
        return value

    def need(self, key):
        key = f"{self.kind}.{key}" if "tokenizer" not in key else key
        if key not in self.keys:
            raise Error(f"{self.path}: the key {key} is missing")
        return self.keys[key]

    def written(self, key):
        """A number of 32 bits as it was written: 1e-05."""
        return float(f"{self.need(key):.7g}")

    def ids(self):
        named = {name: self.keys.get(f"tokenizer.ggml.{key}_token_id") for name, key in
                 (("bos", "bos"), ("eos", "eos"), ("eot", "eot"), ("eom", "eom"), ("pad", "padding"))}
        ends = list(dict.fromkeys(named[key] for key in ("eos", "eot", "eom") if named[key] is not None))
        ids = {"bos_token_id": named["bos"], "eos_token_id": ends[0] if len(ends) == 1 else ends or None, "pad_token_id": named["pad"]}
        return {key: value for key, value in ids.items() if value is not None}

    def config(self, dtype):
        heads, width, kind = self.need("attention.head_count"), self.need("embedding_length"), self.kind
        head = self.keys.get(f"{kind}.attention.key_length", width // heads)
        for key in ("attention.value_length", "rope.dimension_count"):
            if self.keys.get(f"{kind}.{key}", head) != head:
                raise Error(f"{self.path}: {kind}.{key} = {self.need(key)}; expected that of keys, {head}")
        rope = {"rope_type": "default"}
        if "rope_freqs.weight" in self.tensors:
            rope = self.llama3(head)
        theta = self.written("rope.freq_base") if f"{kind}.rope.freq_base" in self.keys else 10000.0
        scaling = {} if rope["rope_type"] == "default" else {"rope_scaling": rope}
        windows = {"use_sliding_window": False} if kind in ("qwen2", "qwen3") else {}
        own = self.gemma3(head, theta) if kind == "gemma3" else {
            "hidden_act": "silu", "rope_theta": theta, "rope_parameters": {**rope, "rope_theta": theta}, **scaling}
        return {"architectures": [ARCHITECTURES[kind]], "model_type": MODEL_TYPES.get(kind, kind), "hidden_size": width,
                "num_hidden_layers": self.need("block_count"),
                "num_attention_heads": heads, "num_key_value_heads": self.keys.get(f"{kind}.attention.head_count_kv", heads),
                **({"head_dim": head} if head * heads != width or kind in ("qwen3", "gemma3") else {}),
                "intermediate_size": self.need("feed_forward_length"),
                "vocab_size": int(self.tensors["token_embd.weight"].shape[1]), "max_position_embeddings": self.need("context_length"), **own,
                "rms_norm_eps": self.written("attention.layer_norm_rms_epsilon"), "tie_word_embeddings": "output.weight" not in self.tensors,
                **windows, "attention_dropout": 0.0, "torch_dtype": dtype, "dtype": dtype, **self.ids()}

    def gemma3(self, head, theta):
        """What readers of such files take where the file does not say it: every sixth layer sees all, and the model of 62 layers alone divides its
        scores by another root than that of the head width."""
        layers, width, heads = self.need("block_count"), self.need("embedding_length"), self.need("attention.head_count")
        local = self.written("rope.freq_base_swa") if "gemma3.rope.freq_base_swa" in self.keys else 10000.0
        pattern = self.keys.get("gemma3.attention.sliding_window_pattern", 6)
        kinds = ["sliding_attention" if (layer + 1) % pattern else "full_attention" for layer in range(layers)]
        return {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": width // heads if layers == 62 else head,
                "sliding_window": self.need("attention.sliding_window"), "layer_types": kinds, "rope_theta": theta, "rope_local_base_freq": local,
                "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": theta},
                                    "sliding_attention": {"rope_type": "default", "rope_theta": local}}}

    def llama3(self, head):
        """Files of Llama 3.1 and later hold what the scaling comes to: that of all published models but for the factor, or it is refused."""
        import numpy as np

        stored, theta, original = self.values("rope_freqs.weight"), self.written("rope.freq_base"), 8192
        factor = float(stored[-1])
        turns = original / (2 * np.pi * theta ** (np.arange(0, head, 2) / head))
        smooth = np.clip((turns - 1) / (4 - 1), 0, 1)
        if stored.shape != turns.shape or not np.allclose(stored, 1 / ((1 - smooth) / factor + smooth), rtol=1e-5, atol=0):
            raise Error(f"{self.path}: tensor rope_freqs.weight: not the factors of Llama 3.1 and later")
        return {"rope_type": "llama3", "factor": factor, "original_max_position_embeddings": original, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0}

    def values(self, name):
        tensor = self.tensors[name]
        try:
            return self.gguf.dequantize(tensor.data, tensor.tensor_type).astype("float32", copy=False)
        except NotImplementedError:
            raise Error(f"{self.path}: tensor {name} is of type {tensor.tensor_type.name}, which gguf does not de-quantise") from None

    def names(self):
        """Hugging Face's name of each tensor, by the file's, in the order of a checkpoint."""
        names = {"token_embd.weight": "model.embed_tokens.weight"}
        for layer in range(self.need("block_count")):
            for theirs, ours in (GEMMA3 if self.kind == "gemma3" else BLOCK).items():
                for end in ("weight", "bias"):
                    names[f"blk.{layer}.{theirs}.{end}"] = f"model.layers.{layer}.{ours}.{end}"
        names |= {"output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
        strange = set(self.tensors) - set(names) - {"rope_freqs.weight"}
        if strange:
            raise Error(f"{self.path}: tensor {min(strange)} is none of a {self.kind} model")
        return {theirs: ours for theirs, ours in names.items() if theirs in self.tensors}

    def weight(self, name, dtype):
        """Its bytes. GGML rotates neighbours, Hugging Face halves: rows of q and k of llama's files stand in another order. Gemma's norms multiply by
        1 + w, which is what the file has."""
        import numpy as np

        x = self.values(name)
        if not np.isfinite(x).all():
            raise Error(f"{self.path}: tensor {name} holds a value that is not finite")
        if self.kind == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
            heads = self.need("attention.head_count") if "attn_q" in name else self.keys.get("llama.attention.head_count_kv", self.need("attention.head_count"))
            x = x.reshape(heads, x.shape[0] // heads // 2, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)
        if self.kind == "gemma3" and name.endswith("norm.weight"):
            x = x - np.float32(1)
        if dtype == "bfloat16":  # to nearest even
            bits = np.ascontiguousarray(x).view(np.uint32)
            return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
        return np.ascontiguousarray(x).tobytes()


def write_weights(model, directory, dtype):
    """safetensors, a tensor at a time."""
    width, end, header, names = 2 if dtype == "bfloat16" else 4, 0, {"__metadata__": {"format": "pt"}}, model.names()
    for theirs, ours in names.items():
        begin, end = end, end + width * int(model.tensors[theirs].n_elements)
        header[ours] = {"dtype": "BF16" if width == 2 else "F32", "shape": [int(n) for n in reversed(model.tensors[theirs].shape)],
                        "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(directory, "model.safetensors"), "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for theirs in names:
            out.write(model.weight(theirs, dtype))


def merges_of_order(tokens):
    """Each way to put a token together of two, in the order of Gemma's tokens, which is that of its merges (its scores are not), as transformers
    makes them."""
    known = set(tokens)
    return [(token[:at], token[at:]) for token in tokens for at in range(len(token) - 1, 0, -1) if token[:at] in known and token[at:] in known]


SPACE = "\u2581"
SENTENCEPIECE = {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
                 "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
                 "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                                                              {"type": "ByteFallback"}, {"type": "Fuse"}]}}


def write_tokenizer(model, directory, longest):
    keys, key, pieces = model.keys, "tokenizer.ggml.", model.kind == "gemma3"
    model.known(key + "model", {"llama" if pieces else "gpt2": 0})
    pre, nfc, whole = ([], False, True) if pieces else SPLITTINGS[model.known(key + "pre", SPLITTINGS)]
    if pieces and keys.get(key + "add_space_prefix", True):
        raise Error(f"{model.path}: {key}add_space_prefix: expected false, as in files of Gemma")
    tokens, kinds = list(model.need(key + "tokens")), list(model.need(key + "token_type"))
    while tokens and kinds[-1] == UNUSED and tokens[-1] == f"[PAD{len(tokens) - 1}]":  # rows of the embedding beyond the vocabulary
        tokens.pop(), kinds.pop()
    if pieces:  # runs of spaces, which the text has as its normalizer writes them
        respelled = {id: SPACE * len(token) for id, token in enumerate(tokens) if token and not token.strip(" ")}
        tokens = [respelled.get(id, token) for id, token in enumerate(tokens)]
        kinds = [NORMAL if id in respelled else kind for id, kind in enumerate(kinds)]
    if len(set(tokens)) != len(tokens) or len(kinds) != len(tokens):
        raise Error(f"{model.path}: {key}tokens: {len(tokens)} tokens, {len(set(tokens))} of them different, and {len(kinds)} kinds")
    named = {name: tokens[keys[f"{key}{theirs}_token_id"]] for name, theirs in
             (("bos_token", "bos"), ("eos_token", "eos"), ("pad_token", "padding"), ("unk_token", "unknown")) if f"{key}{theirs}_token_id" in keys}
    first = [named["bos_token"]] if keys.get(key + "add_bos_token", whole) and "bos_token" in named else []
    last = [named["eos_token"]] if keys.get(key + "add_eos_token", False) and "eos_token" in named else []

    def around(id, kind):
        special = [{"SpecialToken": {"id": token, "type_id": kind}} for token in [*first, *last]]
        return special[:len(first)] + [{"Sequence": {"id": id, "type_id": kind}}] + special[len(first):]

    after = None if pieces else byte_level(True)
    if first or last:
        special = {token: {"id": token, "ids": [tokens.index(token)], "tokens": [token]} for token in [*first, *last]}
        template = {"type": "TemplateProcessing", "single": around("A", 0), "pair": around("A", 0) + around("B", 1), "special_tokens": special}
        after = template if pieces else {"type": "Sequence", "processors": [after, template]}
    added = [{"id": id, "content": tokens[id], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": kind == CONTROL}
             for id, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)]
    merges = merges_of_order(tokens) if pieces else list(model.need(key + "merges"))
    bpe = {"type": "BPE", "dropout": None, "unk_token": named.get("unk_token") if pieces else None, "continuing_subword_prefix": None,
           "end_of_word_suffix": None, "fuse_unk": pieces, "byte_fallback": pieces, "ignore_merges": whole and not pieces,
           "vocab": {token: id for id, token in enumerate(tokens)}, "merges": merges}
    steps = SENTENCEPIECE if pieces else {"normalizer": {"type": "NFC"} if nfc else None, "decoder": byte_level(True),
                                          "pre_tokenizer": pre[0] if len(pre) == 1 else {"type": "Sequence", "pretokenizers": pre}}
    put(directory, "tokenizer.json", {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": steps["normalizer"],
                                      "pre_tokenizer": steps["pre_tokenizer"], "post_processor": after, "decoder": steps["decoder"], "model": bpe},
        None if pieces else 2)
    put(directory, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **named, "model_max_length": longest,
                                             "clean_up_tokenization_spaces": False})
    if "tokenizer.chat_template" in keys:
        with open(os.path.join(directory, "chat_template.jinja"), "w", encoding="utf-8", newline="") as file:
            file.write(keys["tokenizer.chat_template"])


def put(directory, name, content, indent=2):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def convert(path, directory, dtype="float32"):
    """The checkpoint appears whole or not at all."""
    if os.path.lexists(directory):
        raise Error(f"{directory}: exists already; name another directory, or remove it")
    model = Model(path)
    config, partial = model.config(dtype), f"{directory.rstrip('/')}.partial-{os.getpid()}"
    os.makedirs(partial)
    try:
        put(partial, "config.json", config)
        put(partial, "generation_config.json", model.ids())
        write_tokenizer(model, partial, config["max_position_embeddings"])
        write_weights(model, partial, dtype)
        os.rename(partial, directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m ucas.convert", description=__doc__.split("\n")[0])
    parser.add_argument("file", help="GGUF file")
    parser.add_argument("directory", help="checkpoint to make")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="of the written weights; f32 keeps every value as in the file")
    asked = parser.parse_args(arguments)
    try:
        convert(asked.file, asked.directory, "float32" if asked.dtype == "f32" else "bfloat16")
    except (Error, OSError) as error:
        parser.exit(2, f"ucas.convert: {error}\n")
    except ImportError as error:
        parser.exit(2, f"ucas.convert: a package is missing here ({error}): pip install gguf\n")
    print(f"{asked.directory}: made of {asked.file}; `ucas check {asked.directory}` reads it")


if __name__ == "__main__":
    sys.exit(main())
