"""Hostile files that are long, slow or large when read, beside the faults of hostile_files.py: called by its write()."""
import base64
import gzip
import json
import os
import pickle
import struct
import zlib

MILLION = 1_000_000


def tiny_values(n, one=b"[]"):
    """A list of n small values: fifty times their file when each is an object of its own."""
    return b"[" + (one + b",") * (n - 1) + one + b"]"


def weights(c, tensor_file, tensor):
    def text(name, kind, header, data=b"\0" * 8):
        c.add(f"bombs/{name}.safetensors", tensor_file(header, data), kind)

    text("lists", "limit", b'{"a":' + tiny_values(12 * MILLION) + b"}")
    text("numbers", "limit", b'{"a":' + tiny_values(12 * MILLION, b"0") + b"}")
    text("keys", "limit", b"{" + b",".join(b'"%d":0' % i for i in range(6 * MILLION)) + b"}")
    text("number-of-a-million-digits", "header_json", b'{"a":' + b"9" * MILLION + b"}")
    text("offset-of-400-digits", "header_json", b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,1e400]}}')
    text("name-of-control-bytes", "dtype", {"\x1b[2J\u202e\x07": tensor(dtype="F33")})
    many, at = {}, 0
    for i in range(100_000):
        many[f"t{i}"] = tensor(shape=(1,), offsets=(at, at + 4))
        at += 4
    text("100000-tensors", "ok", many, b"\0" * at)
    text("100000-of-no-size", "ok", {f"t{i}": tensor(shape=(0,), offsets=(0, 0)) for i in range(100_000)}, b"")
    text("zero-sizes-and-a-hole", "offset", {"a": tensor(shape=(0,), offsets=(4, 4)), "b": tensor()})
    text("metadata-large", "ok", {"__metadata__": {"a": "x" * (8 << 20)}, "a": tensor()})
    text("metadata-list", "header_json", {"__metadata__": [], "a": tensor()})
    c.add("bombs/index-many/model.safetensors.index.json",
          b'{"weight_map":{' + b",".join(b'"%d":"s%d.safetensors"' % (i, i) for i in range(200_000)) + b"}}", "path")
    c.add("bombs/index-lists/model.safetensors.index.json", b'{"weight_map":{"a":' + tiny_values(12 * MILLION) + b"}}", "limit")
    c.add("bombs/index-self/model.safetensors.index.json", '{"weight_map":{"a":"model.safetensors.index.json"}}', "header_size")
    loop = c.path("bombs", "index-loop", "one.safetensors")
    os.symlink("one.safetensors", loop)
    c.add("bombs/index-loop/model.safetensors.index.json", '{"weight_map":{"a":"one.safetensors"}}', "io")
    for name, what in (("device", "/dev/zero"), ("directory", "/")):
        os.symlink(what, c.path("bombs", f"index-{name}", "one.safetensors"))
        c.add(f"bombs/index-{name}/model.safetensors.index.json", '{"weight_map":{"a":"one.safetensors"}}', "not_regular_file")


def configs(c, good):
    def add(name, value, kind="config"):
        c.add(f"bombs/config-{name}/config.json", value if isinstance(value, (str, bytes)) else json.dumps({**good, **value}), kind)

    add("lists", b'{"a":' + tiny_values(1_300_000) + b"}")
    add("too-large", b" " * (5 << 20) + b"{}", "limit")
    add("layers-in-range", {"num_hidden_layers": 1 << 20})
    add("everything-large", {k: 1 << 30 for k in ("hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings")})
    add("eos-list", {"eos_token_id": list(range(100_000))})
    add("eos-nested", {"eos_token_id": [[[2]]]})
    add("layer-types", {"layer_types": ["full_attention"] * 100_000})
    add("name-of-control-bytes", {"model_type": "\x1b[2J\u202e\n" * 1000}, "unsupported")
    add("eps-huge", json.dumps(good)[:-1].replace('"rms_norm_eps"', '"x"') + ', "rms_norm_eps": 1e999}')
    add("window-overflow", {"sliding_window": 1 << 80, "use_sliding_window": True})


def tokenizers(c, text):
    def changed(name, change, kind="tokenizer"):
        value = json.loads(text)
        change(value)
        c.add(f"bombs/tokenizer-{name}/tokenizer.json", json.dumps(value), kind)

    c.add("bombs/tokenizer-lists/tokenizer.json", b'{"added_tokens":' + tiny_values(12 * MILLION) + b"}", "limit")
    c.add("bombs/tokenizer-vocabulary/tokenizer.json",
          b'{"model":{"type":"BPE","vocab":{' + b",".join(b'"%x":%d' % (i, i) for i in range(5 * MILLION)) + b"}}}", "limit")
    c.add("bombs/tokenizer-merges/tokenizer.json", b'{"model":{"type":"BPE","merges":' + tiny_values(6 * MILLION, b'"a b"') + b"}}", "limit")
    changed("merge-of-itself", lambda j: j["model"]["merges"].extend(["a a"] * 3))
    changed("added-many", lambda j: j["added_tokens"].extend(
        {"id": 5000 + i, "content": f"<{i}>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for i in range(0, 60_000, 2)))
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    for name, pattern in (("groups", "(" * 5000 + ")" * 5000), ("recursion", "(?<x>a|\\g<x>b)"), ("class", "[" + "a-z" * 30_000 + "]")):
        changed(f"regex-{name}", lambda j, p=pattern: j.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {**split, "pattern": {"Regex": p}}, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}))
    changed("steps-of-a-sequence", lambda j: j.update(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 100_000}))


def rows(c, good):
    def add(name, data, kind="data_line"):
        c.add(f"bombs/{name}", data, kind)

    add("columns.csv", b",".join(b"c%d" % i for i in range(200_000)) + b"\n")
    add("fields.csv", b"problem,answer\n" + b"," * (32 << 20) + b"\n")
    add("open.csv", b'problem,answer\n"' + b"a" * (32 << 20))
    add("nul.csv", b"problem,answer\n\0\0,2\n")
    add("latin.csv", b"problem,answer\n\xe9,2\n")
    add("utf-16.csv", "problem,answer\n1+1?,2\n".encode("utf-16"))
    add("bom.csv", b"\xef\xbb\xbfproblem,answer\n1+1?,2\n", "ok")
    add("bom.jsonl", b"\xef\xbb\xbf" + good, "ok")
    add("crlf.jsonl", good.replace(b"\n", b"\r\n") * 3, "ok")
    add("cr.csv", b"problem,answer\r1+1?,2\r", "ok")
    add("lists.json", tiny_values(12 * MILLION), "limit")
    add("lists.jsonl", b'{"problem": ' + tiny_values(4 * MILLION) + b', "answer": "2"}\n')
    add("numbers.jsonl", b'{"problem": "a", "answer": ' + tiny_values(7 * MILLION, b"0") + b"}\n")
    add("digits.jsonl", b'{"problem": "a", "answer": ' + b"9" * MILLION + b"}\n")
    add("answers.jsonl", b'{"problem": "a", "answer": ["' + b'","'.join([b"2"] * MILLION) + b'"]}\n', "ok")
    add("blank-lines.jsonl", b"\n" * (30 << 20), "empty")
    add("no-newline.jsonl", b"a" * (40 << 20))
    add("twice-escaped.jsonl", b'{"problem": "a", "\\u0070roblem": "b", "answer": "2"}\n')
    add("gzip-of-gzip.jsonl.gz", gzip.compress(gzip.compress(good)))
    add("many-members.jsonl.gz", gzip.compress(good) * 2000, "ok")
    add("empty-members.jsonl.gz", gzip.compress(b"") * 100_000, "empty")
    add("half-a-header.jsonl.gz", gzip.compress(good)[:5], "truncated")
    add("zeros-after.jsonl.gz", gzip.compress(good) + b"\0" * 100, "truncated")
    add("no-gzip.jsonl.gz", good, "ok")
    add("small-rows.jsonl.gz", gzip.compress(b'{"problem":"a","answer":"1"}\n' * 2_000_000), "limit")
    programs(add)
    add("demonstrations.jsonl.gz", gzip.compress(b'{"prompt": "a", "response": "b"}\n'), "ok")
    add("demonstrations.csv", b"prompt,response\na,b\n", "ok")
    add("demonstrations.json", b'[{"prompt": "a", "response": "b"}]', "ok")
    add("name.parquet", b"PAR1" + b"\x15" * 4000 + struct.pack("<I", 4000) + b"PAR1", "parquet")
    add("lists.parquet", b"PAR1" + b"\x1c" * 100_000 + struct.pack("<I", 100_000) + b"PAR1", "parquet")
    add("encrypted.parquet", b"PARE" + b"\0" * 100 + struct.pack("<I", 20) + b"PARE", "parquet")
    add("one-byte-short.parquet", b"PAR1\0\0\0\0PAR", "parquet")


class Command:
    """What a pickle may call when it is loaded, which nobody may do."""
    def __reduce__(self):
        return os.system, ("touch pickle-was-run",)


def programs(add):
    """Rows as LiveCodeBench publishes them, whose private tests are a packed pickle of one text."""
    def row(name, private, kind, test=None):
        packed = base64.b64encode(zlib.compress(private)).decode()
        tests = [{"input": "1", "output": "1", "testtype": "stdin"} if test is None else test]
        add(f"programs-{name}.jsonl", json.dumps({"question_id": "s", "question_content": "x", "starter_code": "", "metadata": "{}",
                                                  "public_test_cases": json.dumps(tests), "private_test_cases": packed}) + "\n", kind)

    row("good", pickle.dumps("[]"), "ok")
    row("command", pickle.dumps(Command()), "data_line")
    row("list", pickle.dumps([1]), "data_line")
    row("bomb", pickle.dumps("[" + " " * (300 << 20) + "]"), "data_line")
    row("deep", pickle.dumps("[" * 100_000), "data_line")
    row("other-type", pickle.dumps("[]"), "data_line", {"input": "1", "output": "1", "testtype": "evil"})
    row("no-test", pickle.dumps("[]"), "data_line", 7)


def settings(c):
    def add(name, text, kind="config"):
        c.add(f"bombs/{name}.toml", text, kind)

    add("header-of-nothing", "[ = 254\n")
    add("header-of-a-dot", "[.a]\nx = 1\n")
    add("header-open", "[[\n")
    add("header-control", "[\x01]\n")
    add("numbers", "x = [" + "0," * MILLION + "]\n")
    add("keys", "".join(f"k{i} = 1\n" for i in range(200_000)))
    add("tables", "".join(f"[t{i}]\n" for i in range(200_000)), "ok")
    add("too-large", "#" * (5 << 20), "limit")
    add("inf", "[optimizer]\nlr = inf\n")
    add("over-64-bits", "[rollout]\nn = 99999999999999999999\n")
    add("date", "[optimizer]\nlr = 2026-01-01\n")
    add("nul", "[optimizer]\nlr = 1\0\n")
    add("utf-16", "[method]\nname = 'grpo'\n".encode("utf-16"))
    add("name-of-control-bytes", '["\\u001b[2J"]\nx = 1\n')
    add("unterminated", 'a = """' + "x" * 100_000)


def runs(c):
    for name, text in (("columns", b'{"training/global_step": 1' + b"".join(b',"m%d":1' % i for i in range(200_000)) + b"}\n"),
                       ("lists", b'{"training/global_step": 1, "a": ' + tiny_values(MILLION) + b"}\n")):
        path = c.path("bombs", f"run-{name}", "steps.jsonl")
        with open(path, "wb") as file:
            file.write(text)
        c.expect(f"bombs/run-{name}", "limit" if name == "columns" else "data_line")
    c.add("bombs/x.outputs.jsonl", b'{"a":' + tiny_values(2 * MILLION) + b"}\n", "data_line")


def write(c, good_config, tokenizer_text, good_row, tensor_file, tensor):
    weights(c, tensor_file, tensor)
    configs(c, good_config)
    tokenizers(c, tokenizer_text)
    rows(c, good_row)
    settings(c)
    runs(c)
