"""GGUF files for tests, right and wrong, with nothing but Python's own library: the parts of one, and hostile ones."""
import os
import struct

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 = range(13)
FORMS = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q", I64: "<q", F64: "<d"}
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q6_K": (14, 256, 210)}  # id, values, bytes


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(kind, value):
    if kind == TEXT:
        return text(value)
    if kind == ARRAY:
        inner, values = value
        return struct.pack("<IQ", inner, len(values)) + b"".join(value_of(inner, v) for v in values)
    return struct.pack(FORMS[kind], value)


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + (value if isinstance(value, bytes) and kind != TEXT else value_of(kind, value))


def tensor_info(name, shape, kind, offset):
    """`shape` rows first, as others write it."""
    return text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", kind, offset)


def gguf(entries, infos, data=b"", version=3, magic=b"GGUF", tensors=None, keys=None, alignment=32):
    head = magic + struct.pack("<IQQ", version, len(infos) if tensors is None else tensors, len(entries) if keys is None else keys)
    head += b"".join(entries) + b"".join(infos)
    return head + b"\0" * (-len(head) % alignment) + data


def metadata(**changed):
    """Those of a small llama; a value of None leaves the key out."""
    tokens = ["<end>", "a", "b", "ab"]
    keys = {
        "general.architecture": (TEXT, "llama"), "llama.block_count": (U32, 1), "llama.context_length": (U32, 64),
        "llama.embedding_length": (U32, 32), "llama.feed_forward_length": (U32, 32), "llama.attention.head_count": (U32, 2),
        "llama.attention.head_count_kv": (U32, 1), "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5),
        "tokenizer.ggml.model": (TEXT, "gpt2"), "tokenizer.ggml.pre": (TEXT, "smollm"), "tokenizer.ggml.tokens": (ARRAY, (TEXT, tokens)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [3, 1, 1, 1])), "tokenizer.ggml.merges": (ARRAY, (TEXT, ["a b"])),
        "tokenizer.ggml.eos_token_id": (U32, 0),
    }
    keys.update({key.replace("__", "."): value for key, value in changed.items()})
    return [entry(key, *value) for key, value in keys.items() if value is not None]


def weights(changed=()):
    """[(name, shape, type)] of that llama; `changed` replaces by name, with None leaves out."""
    matrices = {"token_embd.weight": (4, 32), "blk.0.attn_q.weight": (32, 32), "blk.0.attn_k.weight": (16, 32), "blk.0.attn_v.weight": (16, 32),
                "blk.0.attn_output.weight": (32, 32), "blk.0.ffn_gate.weight": (32, 32), "blk.0.ffn_up.weight": (32, 32),
                "blk.0.ffn_down.weight": (32, 32)}
    list_ = {name: (shape, "Q8_0") for name, shape in matrices.items()}
    list_.update({name: ((32,), "F32") for name in ("output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight")})
    list_.update(dict(changed))
    return [(name, *what) for name, what in list_.items() if what is not None]


def placed(tensors):
    """Their descriptions, and zeros as their data."""
    infos, data = [], b""
    for name, shape, kind in tensors:
        number, values, size = TYPES[kind]
        infos.append(tensor_info(name, shape, number, len(data)))
        count = 1
        for n in shape:
            count *= n
        data += b"\0" * (count // values * size)
        data += b"\0" * (-len(data) % 32)
    return infos, data


def model(tensors=(), **changed):
    return gguf(metadata(**changed), *placed(weights(tensors)))


def write(c):
    """Into a corpus of hostile_files.py."""
    def add(name, data, kind):
        c.add(f"gguf/{name}.gguf", data, kind)

    good = model()
    infos, data = placed(weights())
    add("good", good, "ok")
    c.add("gguf/no-ending", good, "ok")
    add("version-2", gguf(metadata(), infos, data, version=2), "ok")
    add("empty", b"", "truncated")
    add("three-bytes", b"GGU", "truncated")
    add("magic", gguf(metadata(), infos, data, magic=b"GGML"), "gguf")
    for name, version in (("0", 0), ("1", 1), ("4", 4), ("big-endian", 3 << 24), ("most", (1 << 32) - 1)):
        add(f"version-{name}", gguf(metadata(), infos, data, version=version), "unsupported")
    for name, count in (("2-40", 1 << 40), ("2-63", 1 << 63), ("most", (1 << 64) - 1)):
        add(f"keys-{name}", gguf(metadata(), infos, data, keys=count), "truncated")
        add(f"tensors-{name}", gguf(metadata(), infos, data, tensors=count), "truncated")
    add("keys-one-more", gguf(metadata(), [], b"", keys=len(metadata()) + 1), "truncated")
    add("tensors-one-more", gguf(metadata(), infos, tensors=len(infos) + 1), "shape")  # of what follows, zeros
    for size in range(4, len(good) - len(data), 97):
        add(f"cut-{size}", good[:size], "truncated")
    add("cut-data", good[:-33], "truncated")
    add("cut-last-byte", model([("output_norm.weight", None)])[:-1], "truncated")

    def more(name, kind, *entries):
        add(name, gguf(metadata() + list(entries), infos, data), kind)

    for name, length in (("beyond", 1 << 20), ("2-63", 1 << 63), ("most", (1 << 64) - 1), ("minus-8", (1 << 64) - 8)):
        more(f"text-{name}", "truncated", text("x") + struct.pack("<IQ", TEXT, length))
        more(f"key-{name}", "truncated", struct.pack("<Q", length))
        more(f"array-{name}", "truncated", text("x") + struct.pack("<IIQ", ARRAY, U32, length))
        more(f"array-of-texts-{name}", "truncated", text("x") + struct.pack("<IIQ", ARRAY, TEXT, length))
    more("key-long", "limit", entry("k" * 2000, U8, 1))
    more("key-twice", "dup_key", entry("llama.block_count", U32, 1))
    more("key-utf8", "utf8", entry(b"\xff\xfe", U8, 1))
    more("text-utf8", "utf8", entry("x", TEXT, b"\xed\xa0\x80"))
    more("boolean", "gguf", entry("x", BOOL, b"\2"))
    for kind in (13, 14, 255, (1 << 32) - 1):
        more(f"kind-{kind}", "gguf", text("x") + struct.pack("<IQ", kind, 0))
    nested = struct.pack("<IQ", ARRAY, 1)
    more("nested-array", "gguf", text("x") + struct.pack("<I", ARRAY) + nested + struct.pack("<IQ", U8, 1) + b"\1")
    more("deep-arrays", "gguf", text("x") + struct.pack("<I", ARRAY) + nested * 5000 + struct.pack("<IQ", U8, 1) + b"\1")
    more("nested-2-40", "gguf", text("x") + struct.pack("<IIQ", ARRAY, ARRAY, 1 << 40))
    more("alignment-0", "gguf", entry("general.alignment", U32, 0))
    more("alignment-12", "gguf", entry("general.alignment", U32, 12))
    more("alignment-2-31", "gguf", entry("general.alignment", U32, 1 << 31))
    more("alignment-text", "gguf", entry("general.alignment", TEXT, "32"))
    more("split", "unsupported", entry("split.count", U16, 3))
    more("name-of-control-bytes", "unsupported", entry("llama.\x1b[2J\u202e", U32, 1))
    huge = [(f"k{i}", TEXT, "x" * (9 << 20)) for i in range(9)]
    more("texts-of-80-mb", "limit", *(entry(*h) for h in huge))
    more("text-of-20-mb", "limit", entry("x", TEXT, "x" * (20 << 20)))

    def tensor(name, kind, shape=(32,), number=0, offset=0, title="output_norm.weight", raw=None):
        described = raw if raw is not None else tensor_info(title, shape, number, offset)
        add(f"tensor-{name}", gguf(metadata(), [described], b"\0" * 4096), kind)

    for name, shape in (("zero", (0,)), ("0-in-the-middle", (4, 0, 4)), ("2-63", (1 << 63,)), ("wraps", (1 << 32, 1 << 32)),
                        ("wraps-to-size", (1 << 63, 2, 16)), ("product", (1 << 30, 1 << 30))):
        tensor(f"shape-{name}", "shape", shape=shape)
    tensor("dimensions-0", "shape", shape=())
    tensor("dimensions-5", "shape", shape=(1, 1, 1, 1, 32))
    tensor("dimensions-2-31", "shape", raw=text("a") + struct.pack("<I", 1 << 31))
    tensor("of-1-tb", "truncated", shape=(1 << 20, 1 << 18))
    tensor("row-not-of-blocks", "shape", shape=(4, 33), number=8)
    tensor("row-half-a-block", "shape", shape=(2, 128), number=14)
    for name, number in (("iq2_xs", 17), ("i32", 26), ("q2_k", 10)):
        tensor(f"type-{name}", "unsupported", number=number)
    for number in (4, 5, 99, (1 << 32) - 1):
        tensor(f"type-{number}", "dtype", number=number)
    for name, offset in (("hole", 32), ("unaligned", 4), ("2-62", 1 << 62), ("2-63", 1 << 63), ("most", (1 << 64) - 1)):
        tensor(f"offset-{name}", "offset", offset=offset)
    tensor("name-long", "limit", title="n" * 300)
    tensor("name-utf8", "utf8", title=b"\xc0\xaf")
    tensor("name-beyond", "truncated", raw=struct.pack("<Q", 1 << 40))
    add("tensor-overlap", gguf(metadata(), [tensor_info("a", (32,), 0, 0), tensor_info("b", (32,), 0, 64)], b"\0" * 4096), "offset")
    add("tensor-twice", gguf(metadata(), [tensor_info("a", (32,), 0, 0), tensor_info("a", (32,), 0, 128)], b"\0" * 4096), "dup_key")

    def changed(name, kind, **keys):
        add(f"model-{name}", model(**keys), kind)

    for family in ("gemma2", "phi3", "qwen2moe", "qwen3moe", "mistral", "bert", "", "LLAMA", "\x1b[2J"):
        changed(f"architecture-{family.encode().hex() or 'empty'}", "unsupported", general__architecture=(TEXT, family))
    changed("architecture-number", "gguf", general__architecture=(U32, 1))
    changed("adapter", "unsupported", general__type=(TEXT, "adapter"))
    sizes = ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv")
    for key in sizes:
        name = f"llama.{key}"
        for what, value in (("zero", (U32, 0)), ("negative", (I32, -1)), ("huge", (U64, (1 << 64) - 1)), ("text", (TEXT, "4")),
                            ("float", (F32, 4.0)), ("list", (ARRAY, (U32, [4])))):
            changed(f"{key}-{what}", "gguf", **{name: value})
        if key != "attention.head_count_kv":
            changed(f"{key}-absent", "gguf", **{name: None})
    changed("general.architecture-absent", "gguf", general__architecture=None)
    changed("more-layers", "missing_tensor", llama__block_count=(U32, 2))
    changed("other-width", "shape", llama__feed_forward_length=(U32, 64))
    changed("heads-divide-not", "gguf", llama__attention__head_count=(U32, 3), llama__attention__head_count_kv=(U32, 3))
    changed("kv-divides-not", "gguf", llama__attention__head_count_kv=(U32, 3))
    for what, value in (("zero", (F32, 0.0)), ("nan", (F32, float("nan"))), ("infinite", (F64, float("inf"))), ("text", (TEXT, "1e-5"))):
        name = "llama.attention.layer_norm_rms_epsilon"
        changed(f"eps-{what}", "gguf", **{name: value})
    for key, value in (("llama.expert_count", (U32, 8)), ("llama.attention.sliding_window", (U32, 4096)), ("llama.logit_scale", (F32, 2.0)),
                       ("llama.rope.scaling.type", (TEXT, "longrope")), ("llama.rope.dimension_count", (U32, 8)),
                       ("llama.attention.value_length", (U32, 8)), ("llama.attention.causal", (BOOL, False)),
                       ("llama.rope.scaling.attn_factor", (F32, 1.2))):
        changed(f"setting-{key}", "unsupported", **{key: value})
    changed("experts-none", "ok", llama__expert_count=(U32, 0))
    changed("rope-linear", "ok", **{"llama.rope.scaling.type": (TEXT, "linear"), "llama.rope.scaling.factor": (F32, 2.0)})
    changed("rope-factor-absent", "gguf", **{"llama.rope.scaling.type": (TEXT, "linear")})
    add("model-tensor-missing", model([("blk.0.ffn_up.weight", None)]), "missing_tensor")
    add("model-embedding-missing", model([("token_embd.weight", None)]), "missing_tensor")
    add("model-tensor-of-others", model([("blk.0.attn_q.bias", ((32,), "F32"))]), "unexpected_tensor")
    add("model-tensor-shape", model([("blk.0.ffn_up.weight", ((64, 32), "Q8_0"))]), "shape")
    add("model-embedding-rows", model([("token_embd.weight", ((3, 32), "Q8_0"))]), "shape")
    add("model-rope-factors", model([("rope_freqs.weight", ((8,), "F32"))]), "unsupported")
    tokens = "tokenizer.ggml.tokens"
    for key in ("model", "tokens", "token_type", "merges"):
        changed(f"tokenizer-{key}-absent", "gguf", **{f"tokenizer.ggml.{key}": None})
    for pre in ("", "default", "falcon", "\x1b[2J"):
        changed(f"pre-{pre.encode().hex() or 'empty'}", "unsupported", tokenizer__ggml__pre=(TEXT, pre))
    changed("pre-absent", "unsupported", tokenizer__ggml__pre=None)
    changed("sentencepiece", "unsupported", tokenizer__ggml__model=(TEXT, "llama"))
    changed("tokens-of-numbers", "gguf", **{tokens: (ARRAY, (U32, [1, 2, 3, 4]))})
    changed("token-kinds-of-texts", "gguf", tokenizer__ggml__token_type=(ARRAY, (TEXT, ["1"])))
    changed("token-kind-9", "gguf", tokenizer__ggml__token_type=(ARRAY, (I32, [3, 1, 1, 9])))
    changed("token-kinds-too-few", "tokenizer", tokenizer__ggml__token_type=(ARRAY, (I32, [3, 1, 1])))
    changed("tokens-none", "tokenizer", **{tokens: (ARRAY, (TEXT, []))}, tokenizer__ggml__token_type=(ARRAY, (I32, [])))
    changed("token-twice", "dup_key", **{tokens: (ARRAY, (TEXT, ["<end>", "a", "a", "ab"]))})
    changed("token-empty", "tokenizer", **{tokens: (ARRAY, (TEXT, ["<end>", "a", "", "ab"]))})
    changed("token-long", "tokenizer", **{tokens: (ARRAY, (TEXT, ["<end>", "a", "b" * 5000, "ab"]))})
    changed("token-alphabet", "tokenizer", **{tokens: (ARRAY, (TEXT, ["<end>", "a", "b c", "ab"]))})
    changed("token-utf8", "utf8", **{tokens: (ARRAY, (TEXT, ["<end>", "a", b"\xff", "ab"]))})
    for name, merge in (("one", "a"), ("three", "a b ab"), ("unknown", "a z"), ("no-result", "b a"), ("blank", " ")):
        changed(f"merge-{name}", "tokenizer", tokenizer__ggml__merges=(ARRAY, (TEXT, [merge])))
    changed("eos-beyond", "gguf", tokenizer__ggml__eos_token_id=(U32, 4))
    changed("chat-template-number", "gguf", tokenizer__chat_template=(U32, 4))
    for name, size in (("data", 1 << 40), ("head", 1 << 40)):
        path = c.path("gguf", f"sparse-{name}.gguf")
        whole = model() if name == "data" else gguf(metadata() + [text("x") + struct.pack("<IIQ", ARRAY, TEXT, 1 << 36)], infos)
        with open(path, "wb") as file:
            file.write(whole)
        os.truncate(path, size)
        c.expect(f"gguf/sparse-{name}.gguf", "ok" if name == "data" else "limit")
    path = c.path("gguf", "tensor-of-1-tb-there.gguf")
    with open(path, "wb") as file:
        file.write(gguf(metadata(), [tensor_info("token_embd.weight", (1 << 20, 1 << 18), 0, 0)]))
    os.truncate(path, (1 << 40) + (1 << 20))
    c.expect("gguf/tensor-of-1-tb-there.gguf", "shape")
    million = struct.pack("<Q", 0) * (4 << 20)
    add("4-million-empty-texts", gguf(metadata() + [text("x") + struct.pack("<IIQ", ARRAY, TEXT, 4 << 20) + million], infos, data), "ok")
    add("4-million-empty-tokens", gguf(metadata(**{tokens: None}) + [text(tokens) + struct.pack("<IIQ", ARRAY, TEXT, 4 << 20) + million], infos, data), "shape")
