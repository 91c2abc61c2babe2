"""Seeds of every target of ucas-fuzz, a folder each, from the tests' own files: seeds.py FOLDER BUILD

The corpus of `ucas check` (support/hostile_files.py), the goldens, and what ucas-fuzz-seeds
writes. FOLDER/support holds what stands beside an input.
"""
import base64
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.realpath(__file__))
TESTS = os.path.dirname(HERE)
GOLDENS = os.path.join(TESTS, "goldens")
sys.path.insert(0, os.path.join(TESTS, "support"))
import hostile_files  # noqa: E402

LONGEST = 64 << 10
FOLDER, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
counts = {}


def seed(target, data):
    data = data if isinstance(data, bytes) else data.encode()
    if len(data) > LONGEST:
        return
    counts[target] = counts.get(target, 0) + 1
    hostile_files.save(os.path.join(FOLDER, target, f"seed-{counts[target]:05d}"), data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def support(*parts):
    return os.path.join(FOLDER, "support", *parts)


ENDINGS = {"model.safetensors.index.json": "index", "generation_config.json": "generation", "adapter_config.json": "adapter",
           "tokenizer_config.json": "tokenizer_config", "config.json": "config", "tokenizer.json": "tokenizer", ".safetensors": "safetensors",
           ".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv", ".gz": "gzip", ".toml": "settings"}


def by_name(folder):
    for path in sorted(glob.glob(os.path.join(folder, "**", "*"), recursive=True)):
        target = next((target for ending, target in ENDINGS.items() if path.endswith(ending)), None)
        if target and os.path.isfile(path) and os.path.getsize(path) <= LONGEST:
            seed(target, read(path))


def checkpoints(scratch):
    subprocess.run([sys.executable, os.path.join(TESTS, "support", "make_checkpoint.py"), support("checkpoint"), "--words", "a,b,c,0,1",
                    "--hidden", "16", "--layers", "1", "--heads", "2", "--kv-heads", "1", "--intermediate", "8"], check=True)
    hostile_files.write(os.path.join(scratch, "corpus"), support("checkpoint"), os.path.join(GOLDENS, "tokenizer", "qwen2-like"), bombs=False)
    by_name(os.path.join(scratch, "corpus"))
    by_name(os.path.join(GOLDENS, "model"))
    by_name(os.path.join(GOLDENS, "tokenizer"))
    by_name(os.path.join(TESTS, "..", "configs"))
    by_name(os.path.join(TESTS, "..", "suites"))
    by_name(os.path.join(TESTS, "..", "benchmarks"))
    seed("generation", '{"eos_token_id": [1, 2], "pad_token_id": 0}')
    seed("tokenizer_config", '{"eos_token": {"content": "<eos>"}, "pad_token": "<pad>", "chat_template": "{{ 1 }}"}')
    seed("index", '{"metadata": {}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}')
    adapter = {"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"], "base_model_name_or_path": support("checkpoint")}
    seed("adapter", json.dumps(adapter))
    hostile_files.save(support("adapter", "adapter_model.safetensors"), hostile_files.tensor_file({"a": hostile_files.tensor()}, b"\0" * 8))
    for name, key in (("one", "a"), ("two", "b")):
        hostile_files.save(support(f"{name}.safetensors"), hostile_files.tensor_file({key: hostile_files.tensor()}, b"\0" * 8))
    for name in ("qwen2-like", "gpt2-like", "llama2-like", "llama3-like", "metaspace-unknown", "gemma-like", "added-tokens", "tekken-like"):
        os.makedirs(support("tokenizers", name))
        for path in glob.glob(os.path.join(GOLDENS, "tokenizer", name, "tokenizer*.json")):
            shutil.copy(path, support("tokenizers", name))
    shapes = {"a": hostile_files.tensor("F32", (4, 2), (0, 32)), "b": hostile_files.tensor("BF16", (16,), (32, 64)), "__metadata__": {"format": "pt"}}
    seed("tensor_header", json.dumps(shapes))


def texts():
    for name in sorted(os.listdir(os.path.join(GOLDENS, "tokenizer"))):
        for line in list(open(os.path.join(GOLDENS, "tokenizer", name, "cases.jsonl"), "rb"))[::7]:
            row = json.loads(line)
            seed("encode", str(row.get("text", row)).encode("utf-8", "replace"))
    for path in glob.glob(os.path.join(TESTS, "..", "templates", "*.toml")):
        seed("template", read(path))
    for path in glob.glob(os.path.join(TESTS, "..", "studies", "tiny-*.toml")):
        seed("settings", read(path))


def answers():
    for path in sorted(glob.glob(os.path.join(GOLDENS, "verify", "*.jsonl"))):
        for line in open(path, encoding="utf-8"):
            row = json.loads(line)
            gold = row.get("gold", "7")
            gold = " ".join(map(str, gold)) if isinstance(gold, list) else str(gold)
            answer = str(row.get("answer", row.get("response", "")))
            seed("verify", b"\2" + gold.encode() + b"\x1f" + answer.encode())
            if counts["verify"] % 10 == 0:
                seed("text_graders", gold + "\x1f" + answer)
                seed("verify_rows", json.dumps({"prediction": answer, "gold": gold, "kind": "bare", "id": "1"}) + "\n")


def programs():
    cases = json.dumps([{"input": "1 2", "output": "3", "testtype": "functional"}])
    pickle = b"\x80\x04\x95" + (len(cases) + 7).to_bytes(8, "little") + b"X" + len(cases).to_bytes(4, "little") + cases.encode() + b"\x94."
    seed("packed_tests", b"\0" + base64.b64encode(zlib.compress(pickle)))
    seed("packed_tests", b"\1" + zlib.compress(pickle))
    seed("packed_tests", b"\2" + pickle)
    seed("packed_tests", b"\3" + cases.encode())
    for row in ({"test": "def check(candidate):\n    assert candidate(1) == 2\n", "entry_point": "f"}, {"test_list": ["assert f(1) == {2: (3,)}"]},
                {"input_output": [{"input": "a = 1", "output": "[1, 'b']"}], "entry_point": "f"},
                {"input_output": json.dumps({"inputs": [[1, "2"]], "outputs": [[3.5]], "fn_name": "f"})},
                {"public_test_cases": cases, "metadata": '{"func_name": "f"}'}):
        seed("published_tests", json.dumps(row))
    for text in ("[1, -2.5e3, 'a\\x41\\n', b'b', None, True, (1,), {1: {2}}, set()]", "{'a': [1, 2]}\x1f{'a': [1.0, 2]}", "0x1F + 1j", '{"a": [true, null]}'):
        seed("literal", text)


def rows():
    seed("json", '{"problem": "1+1?", "answer": ["2", 2]}, {"question": "a", "ground_truth": 3}')
    verl = {"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "1+1?"}], "reward_model": {"ground_truth": "2"}, "data_source": "x"}
    seed("jsonl", json.dumps(verl) + "\n" + json.dumps({"problem": "p", "choices": ["a", "b"], "answer": "B", "subject": "s"}) + "\n")
    seed("csv", 'problem,answer,id\r\n"a ""b""\nc",1,x\r\n')
    for row in ({"id": "1", "question": "1+1?", "answer": "2", "response": "\\boxed{2}"}, {"prompt": "1+1?", "responses": ["2", "3"], "gold": "2"},
                {"doc_id": 0, "doc": {"question": "1+1?", "answer": "2"}, "target": "2", "resps": [["2"]], "filtered_resps": ["2"]},
                {"input": "1+1?", "output": "2", "gts": "2", "score": 1.0, "step": 1}, {"prompt": [{"role": "user", "content": "a"}],
                "completion": [{"role": "assistant", "content": "2"}], "answer": "2"}):
        seed("responses", json.dumps(row) + "\n")
    seed("sft_steps", '{"step": 1, "loss": 2.5, "lr": 0.001, "tokens": 10}\n{"step": 2, "loss": null, "lr": 0.001, "tokens": 10}\n')
    seed("run", read(os.path.join(TESTS, "..", "configs", "demo-pretrained.toml")) + b'\x1f{"row": "x", "base": "b", "seed": 1}')


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    with tempfile.TemporaryDirectory() as scratch:
        checkpoints(scratch)
    texts()
    answers()
    programs()
    rows()
    subprocess.run([os.path.join(BUILD, "ucas-fuzz-seeds"), FOLDER], check=True)
    print(f"{sum(counts.values())} seeds of {len(counts)} targets")


main()
