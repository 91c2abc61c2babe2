"""What a run in the sandbox costs: programs a second in each tier beside bare `python3 -I -S -c pass`, on one core and on all.
   python3 bench/sandbox.py build [PROGRAMS]
The start of `ucas verify` and its self-test are taken out by timing PROGRAMS and 3 x PROGRAMS."""
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

UCAS = os.path.join(os.path.abspath(sys.argv[1]), "ucas")
PROGRAMS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
CORES = sorted(os.sched_getaffinity(0))


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def sandboxed(folder, tier, count, cores):
    file = os.path.join(folder, f"{count}.jsonl")
    with open(file, "w") as out:
        for i in range(count):
            out.write(json.dumps({"id": str(i), "prediction": "x = 1", "gold": ["assert x == 1"]}) + "\n")
    words = [UCAS, "verify", file, "--kind", "code", "--code.sandbox", tier, "--code.python", PYTHON]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        sys.exit(done.stderr)


def bare(count, cores):
    def one(_):
        subprocess.run([PYTHON, "-I", "-S", "-c", "pass"], preexec_fn=lambda: os.sched_setaffinity(0, cores), check=True)
    with ThreadPoolExecutor(len(cores)) as pool:
        list(pool.map(one, range(count)))


with tempfile.TemporaryDirectory() as folder:
    for cores in ({CORES[0]}, set(CORES)):
        rates = {"bare": PROGRAMS / seconds(lambda: bare(PROGRAMS, cores))}
        for tier in ("a", "b"):
            few = seconds(lambda: sandboxed(folder, tier, PROGRAMS, cores))
            many = seconds(lambda: sandboxed(folder, tier, 3 * PROGRAMS, cores))
            rates[f"tier {tier}"] = 2 * PROGRAMS / (many - few)
        for name, rate in rates.items():
            print(f"{len(cores)} core(s)  {name:7} {rate:6.1f} runs/s  {1000 * len(cores) / rate:6.1f} ms a run of one core"
                  f"  {1000 * len(cores) * (1 / rate - 1 / rates['bare']):+6.1f} ms over bare")
