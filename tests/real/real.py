"""What the tests of a real model share: where it is, the goldens, and the Python that has its peers."""
import hashlib
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, "..", "..")
for folder in ("e2e", "support"):
    sys.path.insert(1, os.path.join(HERE, "..", folder))
from support import HANG, SCRATCH, UCAS, check, clean, path, ucas, wait_until  # noqa: E402, F401

SKIP = 77
MODELS = os.path.join(os.path.abspath(sys.argv[1]), "real")


def skip(why):
    print("skipped:", why)
    clean()
    sys.exit(SKIP)


def tensors_of(folder):
    """(name, shape, bytes) of each tensor, in turn."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        base = file.tell()
        for name, entry in sorted(header.items()):
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                file.seek(base + begin)
                yield name, entry["shape"], file.read(end - begin)


def digests(folder):
    return [[name, shape, hashlib.sha256(data).hexdigest()[:16]] for name, shape, data in tensors_of(folder)]


def fetched(name, folder, dtype="f32"):
    """Makes the checkpoint there by tools/fetch_model, or skips."""
    done = subprocess.run([os.path.join(ROOT, "tools", "fetch_model"), name, folder, "--dtype", dtype], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == SKIP:
        skip(done.stderr.strip().splitlines()[-1])
    check(done.returncode == 0, f"the file is here, and converted in {dtype}: {done.stderr.strip().splitlines()[-1]}")


def model(dtype="f32"):
    """A checkpoint that convert_real.py has left."""
    folder = os.path.join(MODELS, dtype)
    if not os.path.exists(os.path.join(folder, "config.json")):
        skip(f"no SmolLM2-135M-Instruct in {folder}: real.convert says why")
    return folder


def peers():
    """A Python with transformers, peft and tokenizers, or None."""
    done = subprocess.run([os.path.join(ROOT, "tools", "real_peers")], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def golden(name):
    with open(os.path.join(HERE, "..", "goldens", "real", name), encoding="utf-8") as file:
        return json.load(file)


def lines(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_lines(name, rows):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return name


def greedy(folder, problems, dtype, most, *more, template="chat"):
    """Rows of `ucas generate`, by default with the model's own chat template, in the order of the problems."""
    data = write_lines(path("problems.jsonl"), [{"id": f"{i:03}", "problem": p, "answer": "0"} for i, p in enumerate(problems)])
    out = path("answers.jsonl")
    if os.path.exists(out):
        os.remove(out)
    ucas("generate", "--model", folder, "--data", data, "--template", template, "--temperature", 0, "--max_tokens", most, "--dtype", dtype,
         "--out", out, *more)
    return sorted(lines(out), key=lambda row: row["id"])
