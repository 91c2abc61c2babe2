"""`ucas check` on a corpus of hostile files (support/hostile_files.py): each is refused with the class of the fault table in
docs/reliability.md, in one line without control bytes, within seconds of the processor and 512 MB beyond its size; the good ones beside them pass."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from support import HANG, SANITIZED, SCRATCH, UCAS, check, clean, path

TESTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
sys.path.insert(0, os.path.join(TESTS, "support"))
import hostile_files  # noqa: E402

SECONDS, BYTES = 20, 512 << 20  # 0.8 s on a quiet machine; what grows with the square of a size takes hours
if SANITIZED:  # whose own memory and time these would be
    SECONDS, BYTES = 60, 8 << 30
subprocess.run([sys.executable, os.path.join(TESTS, "support", "make_checkpoint.py"), path("good"), "--words", "a,b,c,0,1", "--hidden", "32",
                "--layers", "2", "--heads", "4", "--kv-heads", "2", "--intermediate", "48"], check=True)
expected = hostile_files.write(path("corpus"), path("good"), os.path.join(TESTS, "goldens", "tokenizer", "qwen2-like"))


def honest_size(name):
    """Bytes on disk: a sparse file has few."""
    size = 0
    for folder, _, files in os.walk(name):
        size += sum(os.lstat(os.path.join(folder, file)).st_blocks * 512 for file in files)
    return size if os.path.isdir(name) or not os.path.exists(name) else os.stat(name).st_blocks * 512


def run(name):
    """Exit code, both outputs, seconds of the processor (the machine may be busy) and the peak of the resident memory."""
    out, err = (open(path(f), "w+b") for f in ("out", "err"))
    pid = os.fork()
    if pid == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        signal.alarm(HANG)  # what hangs is ended
        os.execv(UCAS, [UCAS, "check", name])
    _, status, usage = os.wait4(pid, 0)
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read())
        file.close()
    return os.waitstatus_to_exitcode(status), *texts, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


wrong, slowest, largest = [], (0, ""), 0
for name, kind in expected.items():
    code, out, err, seconds, memory = run(name)
    beyond = memory - honest_size(name)
    slowest, largest = max(slowest, (seconds, os.path.relpath(name, SCRATCH))), max(largest, beyond)
    lines = err.decode("utf-8").splitlines()
    found = re.match(r"ucas: error\[(\w+)\]: ", lines[-1]) if lines else None
    said = found[1] if found else "ok" if b": ok (" in out else "nothing"
    if kind == "parquet" and b"reading Parquet needs pyarrow" in err:
        said = kind
    problems = []
    if said != kind:
        problems.append(f"{said}, expected {kind}")
    if code != (0 if kind == "ok" else 2) or (kind != "ok" and (out or len(lines) != 1)):
        problems.append(f"exit {code}, {len(lines)} lines of error")
    if kind != "ok" and os.path.basename(name).isprintable() and os.path.basename(name).encode() not in err:
        problems.append("the file is not named")
    if re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", out + err):
        problems.append("control bytes")
    if seconds > SECONDS or beyond > BYTES:
        problems.append(f"{seconds:.2f} s, {beyond >> 20} MB")
    if problems:
        wrong.append(f"{name!r}: {'; '.join(problems)}: {err[:300]!r}")
print("\n".join(wrong))
check(not wrong, f"{len(expected)} files: each with its class; slowest {slowest[0]:.2f} s ({slowest[1]}), at most {largest >> 20} MB beyond a file's size")

good = [name for name, kind in expected.items() if kind == "ok"]
bad = next(name for name, kind in expected.items() if kind == "truncated")
both = subprocess.run([UCAS, "check", good[0], bad, *good[1:]], capture_output=True, text=True)
check(both.returncode == 2 and both.stdout.count(": ok (") == len(good) and both.stderr.count("error[") == 1, "it goes on after an error")
check(subprocess.run([UCAS, "check", *good], capture_output=True).returncode == 0, f"{len(good)} good ones end with 0")
broken = subprocess.run([UCAS, "check", good[0]], capture_output=True, text=True, env={**os.environ, "UCAS_FAULT": "read:1:5"})
check(broken.returncode == 74 and "error[io]" in broken.stderr, "a disk that fails to read is no bad input: 74")

# What only shows when a text is encoded: a normalizer whose steps each double it.
shutil.copytree(os.path.join(path("corpus"), "tokenizer", "good"), path("corpus", "doubling"))
with open(path("corpus", "doubling", "tokenizer.json")) as file:
    tokenizer = json.load(file)
step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [step] * 60}
with open(path("corpus", "doubling", "tokenizer.json"), "w") as file:
    json.dump(tokenizer, file)
with open(path("corpus", "texts.jsonl"), "w") as file:
    file.write('{"text": "a", "ids": []}\n')
doubled = subprocess.run([UCAS, "check", path("corpus", "doubling"), "--ids", path("corpus", "texts.jsonl")], capture_output=True, text=True)
check(doubled.returncode == 2 and "error[limit]" in doubled.stderr, "a normalizer that doubles a text sixty times is stopped")
check(not [f for f in os.listdir(SCRATCH) if f not in ("good", "corpus", "out", "err")], "nothing is written")
clean()
