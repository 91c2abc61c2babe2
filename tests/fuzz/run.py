"""Runs fuzz_verify: run.py BINARY SECONDS [JOBS]. Seeds are the worked cases of tests/goldens/verify; what it finds is
left beside the binary, as crash-*, timeout-* or oom-* files."""
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
GOLDENS = os.path.join(HERE, "..", "goldens", "verify", "*.jsonl")


def write_seeds(folder):
    os.makedirs(folder, exist_ok=True)
    number = 0
    for path in sorted(glob.glob(GOLDENS)):
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                gold = row.get("gold", "7")
                gold = " ".join(map(str, gold)) if isinstance(gold, list) else str(gold)
                answer = str(row.get("answer", row.get("response", "")))
                with open(os.path.join(folder, f"seed-{number:05d}"), "wb") as seed:
                    seed.write(bytes([2]) + gold.encode() + b"\x1f" + answer.encode())
                number += 1
    return number


def main():
    binary, seconds = os.path.abspath(sys.argv[1]), sys.argv[2]
    build = os.path.dirname(binary)
    corpus = os.path.join(build, "fuzz-corpus")
    print(f"fuzz_verify: {write_seeds(corpus)} seeds, {seconds} s", flush=True)
    # The limits per input are generous: a verdict takes at most 50 ms without sanitizers on a quiet machine.
    command = [binary, corpus, f"-dict={HERE}/latex.dict", f"-max_total_time={seconds}", "-timeout=10",
               "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1", "-verbosity=0", "-print_funcs=0", "-print_pcs=0",
               f"-artifact_prefix={build}/"]
    sys.exit(subprocess.run(command, cwd=build, check=False).returncode)


main()
