"""How seconds and memory grow with batch, length, vocabulary, ranks and number of problems: CPU seconds and peak memory of the process at each
size, and the exponent from the last doubling but one to the last (1: linear). Prints Markdown; what grows faster than linearly is marked.

    bench/growth.py [--build build] [--base runs/demo/base/model --data runs/demo/task/train.jsonl] [--only ranks,problems]

Tokens of a row are the same at each length (training) or each batch (decoding) unless its name says otherwise. `make demo` makes base and data.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

BENCH = [  # name, program, words of all sizes, the word that grows, sizes
    ("decoding: sequences at once", "bench_decode", "shape=tiny prompt=16 new=32", "batch", (64, 256, 1024, 4096)),
    ("decoding: tokens of the prompt", "bench_decode", "shape=tiny batch=16 new=16", "prompt", (512, 1024, 2048, 4096)),
    ("training: sequences", "bench_train_step", "shape=tiny length=128 spread=0", "sequences", (32, 64, 128, 256)),
    ("training: tokens of a sequence, 16,384 in all", "bench_train_step", "shape=tiny spread=0 micro=4096", "length", (512, 1024, 2048, 4096)),
    ("LM head: vocabulary", "bench_head", "rows=256 width=576", "vocab", (16384, 32768, 65536, 131072)),
]


def cost(command):
    """CPU seconds of a command that must succeed and of its processes, and peak bytes of the largest of them."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}\n{said[-500:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, said


def seconds_of(said):
    return min(json.loads(next(line for line in said.splitlines() if line.startswith('{"what"')))["seconds"])


def row(name, sizes, measured):
    def exponent(k):
        return math.log(measured[-1][k] / measured[-2][k]) / math.log(sizes[-1] / sizes[-2])
    mark = " **faster than linear**" if max(exponent(0), exponent(1)) > 1.1 else ""
    print(f"| {name} | {', '.join(f'{s:,}' for s in sizes)} | {', '.join(f'{m[0]:.3g}' for m in measured)} | {exponent(0):.2f} "
          f"| {', '.join(f'{m[1] / 2**20:,.0f}' for m in measured)} | {exponent(1):.2f}{mark} |", flush=True)


def bench(a, name, program, words, grows, sizes):
    measured = []
    for size in sizes:
        more = [f"sequences={16384 // size}"] if grows == "length" else []
        _, peak, said = cost([f"{a.build}/{program}", *words.split(), *more, f"{grows}={size}", "repeat=2", "threads=1"])
        measured.append((seconds_of(said), peak))
    row(name, sizes, measured)


def train(a, folder, *words):
    shutil.rmtree(f"{folder}/run", ignore_errors=True)
    return cost([f"{a.build}/ucas", "train", "dapo-tiny", "--model", a.base, "--train.test_freq", "0", "--threads", "1", "--progress", "none",
                 "--out", f"{folder}/run", *words])[:2]


def ranks(a, folder):
    sizes = (1, 2, 4)
    row("four steps of dapo-tiny: ranks (seconds of all, memory of the largest)", sizes, [train(a, folder, "--data", a.data, "--train.steps", "4", "--ranks", str(n)) for n in sizes])


def problems(a, folder):
    """One step of dapo-tiny: reading, shuffling and saving the place in the data is all that grows."""
    with open(a.data, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    sizes, measured, resumed = (10_000, 100_000, 1_000_000), [], []
    for size in sizes:
        with open(f"{folder}/data.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps({**rows[i % len(rows)], "id": f"p{i}"}) + "\n" for i in range(size))
        measured.append(train(a, folder, "--data", f"{folder}/data.jsonl", "--train.steps", "1", "--train.save_freq", "1"))
        resumed.append(cost([f"{a.build}/ucas", "train", "--resume", f"{folder}/run", "--train.steps", "2"])[:2])
    row("problems: first step", sizes, measured)
    row("problems: resume and a step", sizes, resumed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--base", default="runs/demo/base/model")
    parser.add_argument("--data", default="runs/demo/task/train.jsonl")
    parser.add_argument("--only", default="", help="rows whose name holds one of these words")
    a = parser.parse_args()
    print("| what grows | sizes | CPU seconds | exponent | peak MiB | exponent |\n| --- | --- | --- | --- | --- | --- |")
    def wanted(name):
        return not a.only or any(word in name for word in a.only.split(","))
    for line in BENCH:
        if wanted(line[0]):
            bench(a, *line)
    with tempfile.TemporaryDirectory() as folder:
        if wanted("ranks"):
            ranks(a, folder)
        if wanted("problems"):
            problems(a, folder)


main()
