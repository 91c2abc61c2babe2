"""ucas beside what one would use instead, in one sitting: medians of five takes, smallest and largest in brackets.

    bench/table.py [--peers .venv-peers] [--build build] [--takes 5] [--threads 1] [--core 0] [--rows decode,train,head]
                   [--shapes tiny,q05b] [--dtypes f32,bf16] [--without vllm,..]

--peers is the folder that tools/bench_peers makes. With one thread everything is pinned to --core and times are CPU
seconds; with more they are those of the clock, and the machine should be quiet. Random weights, bench/peers.py.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
DECODING = ("transformers", "vllm", "llama.cpp")
# shape: batches, tokens of a prompt, new tokens
LENGTHS = {"tiny": ([256], 16, 64), "m25": ([1, 64], 16, 32), "smollm2": ([1, 16, 64], 16, 32), "q05b": ([1, 16, 64], 4, 8)}
TRAINED = {"tiny": 4096, "m25": 2048, "smollm2": 1024, "q05b": 512}  # tokens of one sequence
HEAD_ROWS = 512


def takes_of(arguments, command):
    """The lines that a command prints for us; none when it fails, with its last words on stderr."""
    if arguments.threads == 1:
        command = ["taskset", "-c", str(arguments.core), *command]
    quiet = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, env=quiet, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"what"')]
    print(f"{time.monotonic() - began:6.0f} s  {' '.join(command[-9:])}", file=sys.stderr, flush=True)
    if ran.returncode != 0 and not lines:
        print("\n".join(ran.stderr.strip().splitlines()[-3:]), file=sys.stderr)
    return lines


def peer(arguments, which, *words):
    folder = arguments.peers + ("-vllm" if which == "vllm" else "")
    return takes_of(arguments, [f"{folder}/bin/python", f"{HERE}/peers.py", *map(str, words), str(arguments.takes),
                                str(arguments.threads)])


def own(arguments, name, **words):
    words = {**words, "repeat": arguments.takes, "threads": arguments.threads}
    return takes_of(arguments, [f"{arguments.build}/bench_{name}", *(f"{k}={v}" for k, v in words.items())])


def text_of(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Table:
    """Rows of (how much a second, or seconds where less is better) by engine."""

    def __init__(self, title, engines, unit):
        self.engines, self.unit = engines, unit
        print(f"\n| {title}, {unit} | {' | '.join(engines)} | ucas / best of the others |")
        print("|" + " --- |" * (len(engines) + 2), flush=True)

    def row(self, name, takes):
        """takes: by engine one line of its, or nothing."""
        def figure(line):
            values = [s if self.unit == "s" else line["amount"] / s for s in line["seconds"]]
            return statistics.median(values), min(values), max(values)

        figures = [figure(line) if line else None for line in takes]
        others = [f[0] for f in figures[1:] if f]
        ratio = "-"
        if figures[0] and others:
            best = min(others) / figures[0][0] if self.unit == "s" else figures[0][0] / max(others)
            ratio = f"{best:.2f}"
        cells = ["-" if f is None else f"{text_of(f[0])} ({text_of(f[1])} to {text_of(f[2])})" for f in figures]
        print(f"| {name} | {' | '.join(cells)} | {ratio} |", flush=True)


def decode(arguments):
    others = [name for name in DECODING if name not in arguments.without]
    table = Table("decoding", ["ucas", *others], "tokens/s")
    for shape in arguments.shapes:
        batches, prompt, new = LENGTHS[shape]
        for dtype in arguments.dtypes:
            asked = ",".join(map(str, batches))
            columns = [own(arguments, "decode", shape=shape, dtype=dtype, batch=asked, prompt=prompt, new=new)]
            columns += [peer(arguments, name, "decode", name, shape, dtype, asked, prompt, new) for name in others]
            for i, batch in enumerate(batches):
                table.row(f"{shape} {dtype}, batch {batch}", [c[i] if i < len(c) else None for c in columns])


def train(arguments):
    table = Table("forward and backward", ["ucas", "transformers"], "tokens/s")
    for shape in arguments.shapes:
        tokens = TRAINED[shape]
        for dtype in arguments.dtypes:
            ours = own(arguments, "train_step", shape=shape, dtype=dtype, sequences=1, length=tokens, spread=0, micro=tokens)
            theirs = peer(arguments, "transformers", "train", "transformers", shape, dtype, tokens)
            table.row(f"{shape} {dtype}, {tokens} tokens", [(lines or [None])[0] for lines in (ours, theirs)])


def head(arguments):
    table = Table(f"LM head, {HEAD_ROWS} x 896 x 151,936, forward and backward", ["ucas", "torch.compile", "whole logits"], "s")
    for dtype in arguments.dtypes:
        columns = [own(arguments, "head", rows=HEAD_ROWS, dtype=dtype)]
        columns += [peer(arguments, "head", "head", way, HEAD_ROWS, dtype) for way in ("compile", "whole")]
        table.row(dtype, [(lines or [None])[0] for lines in columns])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.dirname(HERE)
    parser.add_argument("--peers", default=f"{root}/.venv-peers")
    parser.add_argument("--build", default=f"{root}/build")
    parser.add_argument("--takes", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    for name, words in (("rows", "decode,train,head"), ("shapes", "tiny,q05b"), ("dtypes", "f32,bf16"), ("without", "")):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=words.split(","))
    arguments = parser.parse_args()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    print(f"{model}, {arguments.threads} thread(s), load of the last minute {os.getloadavg()[0]:.1f}", flush=True)
    for name in arguments.rows:
        {"decode": decode, "train": train, "head": head}[name](arguments)


if __name__ == "__main__":
    main()
