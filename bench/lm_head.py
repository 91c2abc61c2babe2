"""The LM head of the Python package beside torch.compile and a head whose logits are all stored: seconds of forward and backward, and memory,
in one sitting, each in a process of its own:

    PYTHON bench/lm_head.py [--rows 512,2048] [--dtypes f32,bf16] [--takes 3] [--threads 1] [--core 0]

PYTHON has the package and torch (bench/README.md). Width 896, vocabulary 151,936. With one
thread all is pinned to --core and times are CPU seconds; medians, smallest and largest in brackets. What is measured: bench/peers.py.
"""
import argparse
import os
import sys

from table import Table, takes_of

HERE = os.path.dirname(os.path.realpath(__file__))
WAYS = ("package", "compile", "whole")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, words in (("rows", "512,2048"), ("dtypes", "f32,bf16")):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=words.split(","))
    parser.add_argument("--takes", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    given = parser.parse_args()
    table = Table("tokens, type", ["ucas", "torch.compile", "all logits"], "s")
    memory = []
    for rows in given.rows:
        for dtype in given.dtypes:
            takes = [(takes_of(given, [sys.executable, f"{HERE}/peers.py", "head", way, rows, dtype, str(given.takes), str(given.threads)])
                      or [None])[0] for way in WAYS]
            table.row(f"{rows}, {dtype}", takes)
            memory.append(f"| {rows}, {dtype} | {' | '.join('-' if line is None else format(line['mb'], ',') for line in takes)} |")
    print("\n| memory beyond hidden states and weights, MB | ucas | torch.compile | all logits |\n| --- | --- | --- | --- |")
    print("\n".join(memory))


if __name__ == "__main__":
    main()
