"""Files that no reader may accept, and good ones beside them: one folder of them from a script.

    hostile_files.py DIR --good CHECKPOINT --bpe TOKENIZER_DIR

write(folder, checkpoint, bpe, bombs) returns {path: class of the error}, "ok" for what must be accepted; bombs:
those of hostile_bombs.py, too. CHECKPOINT is a small good one
(support/make_checkpoint.py), TOKENIZER_DIR holds a byte-level BPE tokenizer.json.
"""
import argparse
import gzip
import json
import os
import shutil
import struct

import hostile_bombs

DEEP = 100_000
GIB = 1 << 30


def save(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


class Corpus:
    def __init__(self, folder):
        self.folder, self.expected = folder, {}

    def add(self, name, data, kind):
        """A file by its bytes or text."""
        self.expected[save(os.path.join(self.folder, name), data)] = kind

    def expect(self, name, kind):
        self.expected[os.path.join(self.folder, name)] = kind

    def path(self, *parts):
        path = os.path.join(self.folder, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path


def tensor_file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def safetensors(c):
    eight = b"\0" * 8
    good = tensor_file({"a": tensor()}, eight)

    def one(name, kind, entry, data=eight):
        c.add(f"safetensors/{name}.safetensors", tensor_file({"a": entry}, data), kind)

    def text(name, kind, header, data=eight):
        c.add(f"safetensors/{name}.safetensors", tensor_file(header, data), kind)

    c.add("safetensors/good.safetensors", good, "ok")
    c.add("safetensors/no-ending", good, "ok")
    c.add("safetensors/empty.safetensors", b"", "truncated")
    c.add("safetensors/seven-bytes.safetensors", b"\1" * 7, "truncated")
    for name, length in (("beyond", 1000), ("cap", 100_000_001), ("2-63", 1 << 63), ("wraps", (1 << 64) - 8), ("most", (1 << 64) - 1)):
        c.add(f"safetensors/length-{name}.safetensors", tensor_file({"a": tensor()}, eight, length), "header_size")
    c.add("safetensors/cut-data.safetensors", good[:-1], "truncated")
    c.add("safetensors/cut-header.safetensors", good[:20], "header_size")
    c.add("safetensors/more-bytes.safetensors", good + b"x", "size")
    for name, pair in (("reversed", (8, 0)), ("negative", (-8, 0)), ("float", (0, 8.0)), ("over-64-bits", (0, 1 << 65)), ("three", (0, 4, 8)),
                       ("text", ("0", "8")), ("hole-first", (4, 8))):
        one(f"offset-{name}", "offset", tensor(shape=(1,) if name == "hole-first" else (2,), offsets=pair))
    text("offset-overlap", "offset", {"a": tensor(), "b": tensor(offsets=(4, 12))}, b"\0" * 12)
    text("offset-hole", "offset", {"a": tensor(shape=(1,), offsets=(0, 4)), "b": tensor(shape=(1,), offsets=(8, 12))}, b"\0" * 12)
    one("offset-beyond", "truncated", tensor(shape=(4,), offsets=(0, 16)))
    big = 1 << 32
    for name, shape in (("product-wraps", (big, big, 2)), ("times-width-wraps", (1 << 62, 1)), ("wraps-to-size", (1 << 63, 2, 2)),
                        ("negative", (-2,)), ("float", (2.0,)), ("text", ("2",)), ("over-64-bits", (1 << 70,)), ("other-size", (3,))):
        one(f"shape-{name}", "shape", tensor(shape=shape))
    one("shape-no-list", "shape", {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]})
    one("shape-zero-times-huge", "ok", tensor(shape=(0, 1 << 56), offsets=(0, 0)), b"")
    one("shape-zero-times-too-huge", "shape", tensor(shape=(0, 1 << 62), offsets=(0, 0)), b"")
    one("rank-9", "limit", tensor(shape=[1] * 8 + [2]))
    one("rank-100000", "limit", tensor(shape=[1] * DEEP + [2]))
    text("name-5000", "limit", {"n" * 5000: tensor()})
    for name, dtype in (("unknown", "F33"), ("lower", "f32"), ("number", 32), ("sub-byte", "F4"), ("empty", "")):
        one(f"dtype-{name}", "dtype", tensor(dtype=dtype))
    one("dtype-other-width", "shape", tensor(dtype="F64"))
    twice = json.dumps(tensor()).encode()
    text("twice", "dup_key", b'{"a":' + twice + b',"a":' + twice + b"}")
    text("twice-escaped", "dup_key", b'{"a":' + twice + b',"\\u0061":' + twice + b"}")
    text("twice-inside", "dup_key", b'{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}')
    text("metadata-number", "header_json", {"__metadata__": {"a": 1}, "a": tensor()})
    one("more-keys", "header_json", tensor(more=1))
    text("list", "header_json", b"[]", b"")
    text("no-json", "header_json", b"{", b"")
    text("after", "header_json", json.dumps({"a": tensor()}).encode() + b"{}")
    broken_json(lambda name, data, kind: text(f"json-{name}", kind, data), "header_json")
    path = c.path("safetensors", "sparse.safetensors")
    save(path, good)
    os.truncate(path, 1 << 40)
    c.expect("safetensors/sparse.safetensors", "size")
    path, elements = c.path("safetensors", "more-than-memory.safetensors"), 1 << 42
    head = tensor_file({"a": tensor("U8", (elements,), (0, elements))})
    save(path, head)
    os.truncate(path, len(head) + elements)
    c.expect("safetensors/more-than-memory.safetensors", "limit")


def broken_json(add, kind):
    """What no JSON reader may take, wherever the text stands."""
    add("deep-lists", b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", kind)
    add("deep-objects", b'{"a":' * DEEP + b"1" + b"}" * DEEP, kind)
    add("never-closed", b'{"a":' + b"[" * DEEP, kind)
    add("nan", b'{"a":NaN}', kind)
    add("infinity", b'{"a":-Infinity}', kind)
    add("nul", b'{"a":1}\0{"b":2}', kind)
    add("bom", b'\xef\xbb\xbf{"a":1}', kind)
    add("comment", b'{"a":1 /* one */}', kind)
    add("trailing-comma", b'{"a":1,}', kind)
    add("utf-16", '{"a":1}'.encode("utf-16"), kind)
    add("lone-surrogate", b'{"a":"\\ud800"}', kind)
    add("bad-utf8", b'{"a":"\xff\xfe"}', "utf8")
    add("overlong-utf8", b'{"a":"\xc0\xaf"}', "utf8")


def index(c, checkpoint):
    def shards(name, kind, weight_map, index_text=None):
        folder = c.path("index", name, "x")[:-2]
        os.makedirs(folder, exist_ok=True)
        save(os.path.join(folder, "one.safetensors"), tensor_file({"a": tensor()}, b"\0" * 8))
        save(os.path.join(folder, "two.safetensors"), tensor_file({"b": tensor()}, b"\0" * 8))
        text = json.dumps({"metadata": {}, "weight_map": weight_map}) if index_text is None else index_text
        c.add(f"index/{name}/model.safetensors.index.json", text, kind)

    shards("good", "ok", {"a": "one.safetensors", "b": "two.safetensors"})
    shards("missing-shard", "path", {"a": "one.safetensors", "c": "three.safetensors"})
    shards("missing-tensor", "missing_tensor", {"a": "one.safetensors", "c": "one.safetensors"})
    shards("other-shard", "unexpected_tensor", {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})
    for name, file in (("parent", "../one.safetensors"), ("absolute", "/etc/passwd"), ("hidden", ".one"), ("nul", "one\0.safetensors"), ("empty", "")):
        shards(f"traversal-{name}", "path", {"a": file})
    shards("number", "header_json", {"a": 7})
    shards("no-map", "header_json", None, '{"metadata": {}}')
    shards("twice", "dup_key", None, '{"weight_map": {"a": "one.safetensors", "\\u0061": "two.safetensors"}}')
    broken_json(lambda name, data, kind: shards(f"json-{name}", kind, None, data), "header_json")


def config(c, checkpoint):
    with open(os.path.join(checkpoint, "config.json")) as file:
        good = json.load(file)

    def changed(name, kind, **keys):
        value = {**good, **{k: v for k, v in keys.items() if v != "absent"}}
        for key in [k for k, v in keys.items() if v == "absent"]:
            del value[key]
        c.add(f"config/{name}/config.json", json.dumps(value), kind)

    changed("good", "ok")
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size",
             "max_position_embeddings")
    for key in sizes:
        for name, value in (("zero", 0), ("negative", -1), ("huge", 1 << 62), ("float", 4.5), ("text", "4"), ("list", [4]), ("over-64-bits", 1 << 70)):
            changed(f"{key}-{name}", "config", **{key: value})
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "model_type"):
        changed(f"{key}-absent", "config", **{key: "absent"})
    changed("heads-divide-not", "config", head_dim="absent", hidden_size=62)
    changed("kv-heads-divide-not", "config", num_key_value_heads=3)
    changed("odd-heads", "config", head_dim=7)
    for key in ("rms_norm_eps", "rope_theta"):
        for name, value in (("zero", 0), ("negative", -1), ("null", None), ("text", "1e-6"), ("list", [])):
            changed(f"{key}-{name}", "config", **{key: value})
    changed("sliding_window-negative", "config", sliding_window=-3)
    changed("tie-number", "config", tie_word_embeddings=1)
    changed("eos-beyond", "config", eos_token_id=1 << 20)
    changed("rope-factor", "config", rope_scaling={"rope_type": "linear", "factor": -1})
    changed("rope-list", "config", rope_scaling=[1])
    changed("type-number", "config", model_type=2)
    for name, keys in (("family", {"model_type": "mixtral"}), ("architecture", {"architectures": ["LlamaForCausalLM"]}),
                       ("quantised", {"quantization_config": {"quant_method": "gptq"}}), ("own-code", {"auto_map": {"AutoModel": "code.Model"}}),
                       ("activation", {"hidden_act": "gelu"}), ("dtype", {"torch_dtype": "int8", "dtype": "int8"}),
                       ("rope", {"rope_scaling": {"rope_type": "longrope", "factor": 4.0}})):
        changed(f"unsupported-{name}", "unsupported", **keys)
    c.add("config/list/config.json", "[]", "config")
    c.add("config/empty/config.json", "", "config")
    c.add("config/twice/config.json", json.dumps(good)[:-1] + ', "hidden_size": 64}', "dup_key")
    broken_json(lambda name, data, kind: c.add(f"config/json-{name}/config.json", data, kind), "config")
    checkpoints(c, checkpoint, good)


def checkpoints(c, checkpoint, good):
    """Whole directories: the config against the tensors, and what else stands in them."""
    def copy(name, kind, **keys):
        folder = c.path("checkpoint", name)
        shutil.copytree(checkpoint, folder)
        save(os.path.join(folder, "config.json"), json.dumps({**good, **keys}))
        c.expect(f"checkpoint/{name}", kind)
        return folder

    copy("good", "ok")
    copy("more-layers", "config", num_hidden_layers=good["num_hidden_layers"] + 1)
    copy("fewer-layers", "config", num_hidden_layers=good["num_hidden_layers"] - 1)
    copy("other-width", "config", intermediate_size=good["intermediate_size"] + 2)
    copy("other-vocabulary", "config", vocab_size=good["vocab_size"] + 1)
    copy("untied", "missing_tensor", tie_word_embeddings=False)
    folder = copy("pickle", "unsupported")
    os.rename(os.path.join(folder, "model.safetensors"), os.path.join(folder, "pytorch_model.bin"))
    os.remove(os.path.join(copy("no-weights", "path"), "model.safetensors"))
    os.remove(os.path.join(copy("no-tokenizer", "path"), "tokenizer.json"))
    os.truncate(os.path.join(copy("cut", "truncated"), "model.safetensors"), 20_000)
    folder = copy("fifo", "not_regular_file")
    os.remove(os.path.join(folder, "model.safetensors"))
    os.mkfifo(os.path.join(folder, "model.safetensors"))
    folder = copy("generation", "config")
    save(os.path.join(folder, "generation_config.json"), '{"eos_token_id": "two"}')
    for name, keys, kind in (("adapter-kind", {"peft_type": "IA3"}, "unsupported"), ("adapter-rank", {"r": 0}, "config"),
                             ("adapter-no-base", {"base_model_name_or_path": "absent"}, "path"),
                             ("adapter-base-number", {"base_model_name_or_path": 7}, "config"), ("adapter-alpha", {"lora_alpha": 1e300}, "config"),
                             ("adapter-alpha-text", {"lora_alpha": "4"}, "config"), ("adapter-pattern", {"target_modules": "(a+)+$"}, "unsupported"),
                             ("adapter-rank-half", {"r": 2.5}, "config"), ("adapter-base-device", {"base_model_name_or_path": "/dev/zero"}, "path"),
                             ("adapter-start", {"init_lora_weights": "pissa"}, "unsupported"), ("adapter-dora", {"use_dora": True}, "unsupported")):
        adapter = {"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"], "base_model_name_or_path": checkpoint, **keys}
        c.add(f"checkpoint/{name}/adapter_config.json", json.dumps(adapter), kind)
    folder = c.path("checkpoint", "adapter-no-tensors")
    save(os.path.join(folder, "adapter_config.json"),
         json.dumps({"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"], "base_model_name_or_path": checkpoint}))
    save(os.path.join(folder, "adapter_model.safetensors"), tensor_file({"a": tensor()}, b"\0" * 8))
    c.expect("checkpoint/adapter-no-tensors", "missing_tensor")


def tokenizer(c, bpe):
    with open(os.path.join(bpe, "tokenizer.json")) as file:
        text = file.read()

    def changed(name, change, kind="tokenizer"):
        value = json.loads(text)
        change(value)
        c.add(f"tokenizer/{name}/tokenizer.json", json.dumps(value), kind)

    def vocab(key, value):
        return lambda j: j["model"]["vocab"].__setitem__(key, value)

    def model(**keys):
        return lambda j: j["model"].update(keys)

    changed("good", lambda j: None, "ok")
    c.add("tokenizer/good/of-another-name.json", text, "ok")
    for name, value in (("clash", 3), ("negative", -1), ("huge", 1 << 40), ("over-64-bits", 1 << 70), ("float", 0.5), ("text", "0"), ("gap", 100_000)):
        changed(f"id-{name}", vocab("!", value))
    changed("empty-vocabulary", model(vocab={}))
    changed("long-token", vocab("a" * 5000, 424))
    changed("missing-byte", lambda j: j["model"]["vocab"].__setitem__("!!!!!!", j["model"]["vocab"].pop("!")), "ok")
    for name, merge in (("unknown-parts", "q zzz"), ("three", "a b c"), ("number", 5), ("one", "a"), ("object", {})):
        changed(f"merge-{name}", lambda j, merge=merge: j["model"]["merges"].__setitem__(0, merge))
    changed("dropout", model(dropout=0.1))
    changed("unigram", model(type="Unigram"))
    changed("wordpiece", model(type="WordPiece"))
    changed("suffix", model(end_of_word_suffix="</w>"))
    changed("unknown-setting", model(beam=3))
    changed("unknown-section", lambda j: j.update(surprise=1))
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        changed(f"{part}-unknown", lambda j, part=part: j.update({part: {"type": "Surprise"}}))
        changed(f"{part}-number", lambda j, part=part: j.update({part: 7}))
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    for name, pattern in (("empty", ""), ("open", "(a+"), ("no-property", "\\p{Letterlike}"), ("long", "a" * DEEP)):
        changed(f"regex-{name}", lambda j, p=pattern: j.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {**split, "pattern": {"Regex": p}}, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}))
    changed("normalizer-empty-pattern", lambda j: j.update(normalizer={"type": "Replace", "pattern": {"String": ""}, "content": "a"}))
    changed("added-empty", lambda j: j["added_tokens"][0].update(content=""))
    changed("added-long", lambda j: j["added_tokens"][0].update(content="a" * 600))
    changed("added-id", lambda j: j["added_tokens"][0].update(id=-1))
    changed("added-object", lambda j: j.update(added_tokens={"a": 1}))
    changed("template-of-nothing", lambda j: j.update(post_processor={
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {}}))
    nested = {"type": "Sequence", "normalizers": []}
    for _ in range(60):
        nested = {"type": "Sequence", "normalizers": [nested]}
    changed("deep-parts", lambda j: j.update(normalizer=nested))
    c.add("tokenizer/list/tokenizer.json", "[]", "tokenizer")
    c.add("tokenizer/cut/tokenizer.json", text[:len(text) // 2], "tokenizer")
    c.add("tokenizer/twice/tokenizer.json", '{"model": {}, "model": {}}', "dup_key")
    broken_json(lambda name, data, kind: c.add(f"tokenizer/json-{name}/tokenizer.json", data, kind), "tokenizer")
    folder = c.path("tokenizer", "directory", "tokenizer.json")
    os.makedirs(folder)
    c.expect("tokenizer/directory", "not_regular_file")
    save(c.path("tokenizer", "bad-eos", "tokenizer.json"), text)
    save(c.path("tokenizer", "bad-eos", "tokenizer_config.json"), '{"eos_token": "<nowhere>"}')
    c.expect("tokenizer/bad-eos", "tokenizer")


def rows(c):
    def add(name, data, kind="data_line"):
        c.add(f"rows/{name}", data, kind)

    good = b'{"id": "1", "problem": "1+1?", "answer": "2"}\n'
    add("good.jsonl", good, "ok")
    add("good.csv", b"problem,answer\n1+1?,2\n", "ok")
    add("good.tsv", b"problem\tanswer\n1+1?\t2\n", "ok")
    add("good.json", b"[" + good + b"]", "ok")
    add("no-ending", good, "ok")
    add("demonstrations.jsonl", b'{"prompt": "a", "response": "b"}\n', "ok")
    add("answers.jsonl", b'{"prediction": "2", "gold": "2"}\n', "ok")
    add("empty.jsonl", b"", "empty")
    add("blank.jsonl", b"\n \n\n", "empty")
    add("no-rows.csv", b"problem,answer\n", "empty")
    add("no-items.json", b"[]", "empty")
    add("cut.jsonl", good + good[:20])
    add("two-objects.jsonl", good.strip() + good)
    add("list.jsonl", good + b"[1]\n")
    add("number.jsonl", good + b"7\n")
    add("no-question.jsonl", b'{"answer": "2"}\n')
    add("no-answer.jsonl", b'{"problem": "1+1?"}\n')
    add("empty-question.jsonl", b'{"problem": " ", "answer": "2"}\n')
    add("number-question.jsonl", b'{"problem": 7, "answer": "2"}\n')
    add("object-answer.jsonl", b'{"problem": "1+1?", "answer": {"a": 1}}\n')
    add("null-answer.jsonl", b'{"problem": "1+1?", "answer": null}\n')
    add("empty-answers.jsonl", b'{"problem": "1+1?", "answer": []}\n')
    add("nul-in-text.jsonl", b'{"problem": "1\\u0000", "answer": "2"}\n')
    add("twice.jsonl", b'{"problem": "a", "problem": "b", "answer": "2"}\n')
    add("line-of-20-mb.jsonl", b'{"problem": "' + b"a" * (20 << 20) + b'", "answer": "2"}\n')
    add("bad-message.jsonl", b'{"prompt": [{"role": "assistant", "content": "a"}], "reward_model": {"ground_truth": "2"}}\n')
    add("open-quote.csv", b'problem,answer\n"1+1?,2\n')
    add("fields.csv", b"problem,answer\n1+1?,2,3\n")
    add("response-number.jsonl", b'{"prompt": "a", "response": 7}\n')
    add("ids.jsonl", b'{"prompt_ids": [-1], "response_ids": [2]}\n')
    add("answers-number.jsonl", b'{"prediction": "2", "gold": "2"}\n{"prediction": 2, "gold": "2"}\n')
    add("x.parquet", b"PAR1" + b"\0" * 8 + struct.pack("<I", 1 << 31) + b"PAR1", "parquet")
    packed = gzip.compress(good)
    add("good.jsonl.gz", packed, "ok")
    add("cut.jsonl.gz", packed[:-9], "truncated")
    add("more.jsonl.gz", packed + b"x", "truncated")
    add("flipped.jsonl.gz", packed[:20] + bytes([packed[20] ^ 255]) + packed[21:], "truncated")
    add("bomb.jsonl.gz", gzip.compress(b"\0" * (128 << 20)), "limit")
    add("no-footer.parquet", b"PAR1" + b"\0" * 100, "parquet")
    add("footer-beyond.parquet", b"PAR1" + b"\0" * 8 + struct.pack("<I", 1 << 20) + b"PAR1", "parquet")
    add("noise.parquet", b"PAR1" + bytes(range(256)) + struct.pack("<I", 256) + b"PAR1", "parquet")
    add("empty.parquet", b"", "parquet")
    broken_json(lambda name, data, kind: None if name == "bom" else add(f"json-{name}.jsonl", data + b"\n"), "data_line")
    sparse = c.path("rows", "sparse.jsonl")
    save(sparse, good)
    os.truncate(sparse, 100 * GIB)
    c.expect("rows/sparse.jsonl", "limit")


def settings(c):
    def add(name, text, kind="config"):
        c.add(f"settings/{name}.toml", text, kind)

    add("template", 'name = "x"\ntext = "Q: {problem} A:"\n', "ok")
    add("template-without-place", 'text = "Q:"\n')
    add("template-twice", 'text = "{problem} {problem}"\n')
    add("template-number", "text = 7\n")
    add("benchmark", 'name = "x"\npath = "x.jsonl"\n', "ok")
    add("benchmark-grader", 'name = "x"\npath = "x.jsonl"\ngrader = "guess"\n')
    add("benchmark-name", 'name = "../x"\npath = "x.jsonl"\n')
    add("suite", 'name = "x"\nbenchmarks = ["aime24"]\n', "ok")
    add("suite-unknown", 'name = "x"\nbenchmarks = ["nowhere"]\n')
    add("suite-twice", 'name = "x"\nbenchmarks = ["aime24", "aime24"]\n')
    add("config", '[method]\nname = "grpo"\n', "ok")
    add("config-unknown-key", "[method]\nnaem = 1\n")
    add("config-range", '[method]\nname = "grpo"\n[rollout]\nn = 0\n')
    add("config-type", '[optimizer]\nlr = "fast"\n')
    add("config-together", "[reward]\ncorrect = 0.0\nwrong = 1.0\n")
    add("config-nan", "[optimizer]\nlr = nan\n")
    add("fine-tuning", 'data = ["x.jsonl"]\nsteps = [3]\n', "ok")
    add("fine-tuning-steps", 'data = ["x.jsonl"]\nsteps = [3, 4]\n')
    add("study", 'title = "x"\nruns = ["grpo-tiny"]\n[base]\ntask = "register_chains"\n', "ok")
    add("study-unknown-run", 'runs = ["nowhere"]\n[base]\ntask = "register_chains"\n', "path")
    add("no-toml", "a = = 1\n")
    add("twice", "[a]\nb = 1\nb = 2\n")
    add("deep", "x = " + "[" * DEEP + "]" * DEEP + "\n")
    add("deep-key", "[" + ".".join(["a"] * 20_000) + "]\nx = 1\n")
    add("bad-utf8", b'text = "\xff"\n')


def special(c):
    os.mkfifo(c.path("special", "fifo.jsonl"))
    os.mkfifo(c.path("special", "fifo.safetensors"))
    os.symlink("loop.json", c.path("special", "loop.json"))
    os.symlink("nowhere", c.path("special", "dangling.toml"))
    os.makedirs(c.path("special", "nothing"))
    for name, kind in (("fifo.jsonl", "not_regular_file"), ("fifo.safetensors", "not_regular_file"), ("loop.json", "io"), ("dangling.toml", "path"),
                       ("nothing", "path"), ("absent.jsonl", "path")):
        c.expect(f"special/{name}", kind)
    c.expected["/dev/zero"] = "not_regular_file"
    c.expected["/dev/null"] = "not_regular_file"
    c.add("special/noise", bytes(range(256)) * 64, "unsupported")
    c.add("special/name-\x1b[2J-\n.jsonl", b"7\n", "data_line")
    save(c.path("special", "run", "config.toml"), "[method]\nnaem = 1\n")
    c.expect("special/run", "config")
    save(c.path("special", "log", "steps.jsonl"), '{"training/global_step": 1}\n{"training/global_step": "two"}\n')
    c.expect("special/log", "data_line")
    save(c.path("special", "short", "steps.jsonl"), '{"training/global_step": 1, "actor/loss": 0.5}\n')
    c.expect("special/short", "ok")
    save(c.path("special", "env", "steps.jsonl"), '{"training/global_step": 1}\n')
    save(c.path("special", "env", "env.json"), "[" * DEEP)
    c.expect("special/env", "header_json")


def write(folder, checkpoint, bpe, bombs=True):
    corpus = Corpus(folder)
    safetensors(corpus)
    index(corpus, checkpoint)
    config(corpus, checkpoint)
    tokenizer(corpus, bpe)
    rows(corpus)
    settings(corpus)
    special(corpus)
    if bombs:
        with open(os.path.join(checkpoint, "config.json")) as good, open(os.path.join(bpe, "tokenizer.json")) as text:
            hostile_bombs.write(corpus, json.load(good), text.read(), b'{"id": "1", "problem": "1+1?", "answer": "2"}\n', tensor_file, tensor)
    return corpus.expected


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--good", required=True)
    parser.add_argument("--bpe", required=True)
    a = parser.parse_args()
    for path, kind in write(a.folder, a.good, a.bpe).items():
        print(f"{kind:18}{path!r}")
