#!/usr/bin/env python3
"""Does `ucas check TOKENIZER --ids` find the ids and texts that Hugging Face tokenizers gives, on texts that no golden holds?

    PEER_PYTHON -B tools/check_tokenizers.py DATA [--ucas build/ucas] [--texts 1000] [--random 1000]

DATA is a folder of shared data: texts are drawn from all strings of its .jsonl files, and more are made of random
characters; every tokenizer.json in it is compared, and every kind of tokenizer_kinds.py. Prints for each how many texts
agree and ends with 1 if any differs. PEER_PYTHON has tokenizers.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

from make_tokenizer_goldens import FIXED, MORE, some_text
from tokenizer_kinds import MAKERS
from tokenizers import Tokenizer


def strings_in(value, found):
    if isinstance(value, str):
        found.add(value)
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            strings_in(inner, found)


def texts_of(data, count, made, rng):
    found = set()
    for path in sorted(glob.glob(os.path.join(data, "**", "*.jsonl"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            for line in file:
                strings_in(json.loads(line), found)
    texts = rng.sample(sorted(text for text in found if len(text) > 20), count)
    return texts, [some_text(rng, ["<|end|>", "<s>", "</s>", "<0x41>", *MORE, *FIXED]) for _ in range(made)]


def any_code(rng):
    code = rng.choice([rng.randrange(0x110000), rng.randrange(0x3000), rng.randrange(0x20000)])
    return chr(code) if not 0xD800 <= code < 0xE000 else "x"


def tokenizers_in(data):
    for path in sorted(glob.glob(os.path.join(data, "**", "tokenizer.json"), recursive=True)):
        yield os.path.relpath(os.path.dirname(path), data), Tokenizer.from_file(path)
    for name, maker in MAKERS.items():
        yield name, maker()


def differing(ucas, folder, tokenizer, texts):
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = os.path.join(folder, "rows.jsonl")
    reports = []
    plain = tokenizer.encode("a", add_special_tokens=False).ids
    begun = tokenizer.encode("a").ids[: -len(plain)]
    for special in (False, True):
        with open(rows, "w", encoding="utf-8") as file:
            for text in texts:
                ids = tokenizer.encode(text, add_special_tokens=special).ids
                if special and begun and ids[:2] == [begun[0]] * 2:
                    ids = ids[1:]  # a text that begins with BOS itself: ucas adds no second one
                row = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
                file.write(json.dumps(row) + "\n")
        command = [ucas, "check", folder, "--ids", rows, "--decode"]
        done = subprocess.run(command + ["--prompt"] * special, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = done.stdout.decode(errors="replace").splitlines()
        reports.append((done.returncode, lines))
    return reports


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--only", default="", help="names that hold this")
    options = parser.parse_args()
    rng = random.Random(14)
    drawn, made = texts_of(options.data, options.texts, options.random, rng)
    made += ["".join(any_code(rng) for _ in range(rng.randrange(1, 30))) for _ in range(options.random)]
    agree = True
    for name, tokenizer in tokenizers_in(options.data):
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="ucas-check-") as folder:
            for what, (code, lines) in zip(("text", "prompt"), differing(options.ucas, folder, tokenizer, drawn + made)):
                agree = agree and code == 0
                print(f"{name}, as {what}: {lines[-1]}", flush=True)
                print("\n".join(lines[:-1][:24]), end="\n" * (code != 0), flush=True)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
