"""ucas verify beside math-verify: verdicts per CPU second on one core and the time of single verdicts, both graders on
the same answers in the same run.

    PYTHON bench/verify_bench.py --data shared/data/verifier [--ucas build/ucas] [--limit N] [--json FILE]

PYTHON has math-verify (pip install math-verify==0.9.0); without it only ucas is measured. Nothing is asserted."""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

HOSTILE_LIMIT = 8  # seconds for one hostile answer


def nested(opening, middle, closing, depth):
    return opening * depth + middle + closing * depth


HOSTILE = [
    ("tower of powers", "10^{10^{10^{10}}}"),
    ("tower under a root", "\\sqrt{10^{10^{10^{10}}}}"),
    ("factorial of a factorial", "((1000!)!)!"),
    ("factorial of 10^9", "10^9!"),
    ("10^6 digits", "1" * 10**6),
    ("10^6 decimals", "0." + "3" * 10**6),
    ("exponent of 10^6 digits", "2^{" + "9" * 10**6 + "}"),
    ("10^5-deep parentheses", nested("(", "1", ")", 10**5)),
    ("10^5-deep fractions", nested("\\frac{1}{", "1", "}", 10**5)),
    ("10^5-deep roots", nested("\\sqrt{", "2", "}", 10**5)),
    ("10^5 boxes", "\\boxed{1}" * 10**5),
    ("10^5 nested boxes", nested("\\boxed{", "1", "}", 10**5)),
    ("10^5 open braces", "{" * 10**5),
    ("an unclosed box", "\\boxed{" + "1" * 10**5),
    ("(x+1)^99999", "(x+1)^{99999}"),
    ("product of 1000 sums", "(x+y+1)" * 1000),
    ("sum of 100 roots", "+".join(f"\\sqrt{{{n}}}" for n in range(2, 102))),
    ("list of 10^4", ",".join(map(str, range(10**4)))),
    ("10^5 minus signs", "-" * 10**5 + "1"),
    ("NUL bytes", "1\0" * 1000),
    ("replacement characters", "\ufffd" * 10**4),
    ("injected Python", "__import__('os').system('true')"),
]


def rows_of(data, limit):
    """name -> [(gold, prediction, kind)]"""
    with open(os.path.join(data, "cases.jsonl"), encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    with open(os.path.join(data, "math_cot_100.jsonl"), encoding="utf-8") as file:
        samples = [json.loads(line) for line in file]
    bare = [(row["gold"], row["prediction"], "bare") for row in cases if row["kind"] == "bare"]
    outputs = [(row["gold"], text, "output") for row in samples for text in row["responses"]]
    return {"bare answers": bare[:limit], "math_cot_100 outputs": outputs[:limit]}


def run_ucas(ucas, rows, folder):
    """Verdicts and the figures that ucas verify prints of itself (CPU time of the grading thread)."""
    source, out = os.path.join(folder, "rows.jsonl"), os.path.join(folder, "verdicts.jsonl")
    with open(source, "w", encoding="utf-8") as file:
        for number, (gold, prediction, kind) in enumerate(rows):
            row = {"id": str(number), "gold": gold, "prediction": prediction, "kind": kind}
            file.write(json.dumps(row) + "\n")
    done = subprocess.run([ucas, "verify", source, "--threads", "1", "--out", out], check=True, text=True,
                          stdout=subprocess.PIPE)
    found = re.search(r"([\d,]+) verdicts per CPU second; each p50 ([\d.]+ \w+), p99 ([\d.]+ \w+), max ([\d.]+ \w+)",
                      done.stdout)
    with open(out, encoding="utf-8") as file:
        verdicts = [json.loads(line)["verdict"] for line in file]
    scale = {"us": 1e-3, "ms": 1, "s": 1e3}

    def milliseconds(text):
        number, unit = text.split()
        return float(number) * scale[unit]

    return verdicts, {"per_cpu_s": float(found[1].replace(",", "")), "p50_ms": milliseconds(found[2]),
                      "p99_ms": milliseconds(found[3]), "max_ms": milliseconds(found[4])}


def math_verify_one(gold, prediction):
    from math_verify import parse, verify
    golds = gold if isinstance(gold, list) else [gold]
    return any(verify(parse(f"${one}$"), parse(prediction)) for one in golds)


def run_math_verify(rows):
    times, verdicts = [], []
    for gold, prediction, kind in rows:
        # A bare answer is handed over as its convention asks, in a box.
        text = f"\\boxed{{{prediction}}}" if kind == "bare" else prediction
        began = time.process_time()
        verdicts.append(math_verify_one(gold, text))
        times.append(time.process_time() - began)
    times.sort()
    at = [1e3 * times[min(int(share * len(times)), len(times) - 1)] for share in (0.5, 0.99, 1)]
    return verdicts, {"per_cpu_s": len(times) / max(sum(times), 1e-9), "p50_ms": at[0], "p99_ms": at[1],
                      "max_ms": at[2]}


def hostile_math_verify(text):
    """A process of its own: what hangs in it ends with it. Seconds, or None where the limit was reached."""
    began = time.monotonic()
    try:
        done = subprocess.run([sys.executable, os.path.realpath(__file__), "--one"], input=text.encode(),
                              timeout=HOSTILE_LIMIT + 4, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return float(done.stdout or "nan")  # nan: it crashed
    except subprocess.TimeoutExpired:
        return None if time.monotonic() - began > HOSTILE_LIMIT else 0.0


def grade_stdin():
    text = sys.stdin.buffer.read().decode()
    math_verify_one("7", "\\boxed{7}")  # imports and caches are not counted
    began = time.process_time()
    math_verify_one("7", text if "\\boxed" in text else f"\\boxed{{{text}}}")
    print(time.process_time() - began)


def line(name, figures):
    return (f"  {name:<24}{figures['per_cpu_s']:>12,.0f}{figures['p50_ms']:>12.3f}{figures['p99_ms']:>12.3f}"
            f"{figures['max_ms']:>12.3f}")


def bench_rows(arguments, folder, peer, results):
    for name, rows in rows_of(arguments.data, arguments.limit).items():
        print(f"{name} ({len(rows)})\n  {'':<24}{'per CPU s':>12}{'p50 ms':>12}{'p99 ms':>12}{'max ms':>12}")
        verdicts, figures = run_ucas(arguments.ucas, rows, folder)
        results[name] = {"answers": len(rows), "ucas": figures}
        print(line("ucas verify", figures), flush=True)
        if not peer:
            continue
        theirs, figures = run_math_verify(rows)
        results[name]["math_verify"] = figures
        same = sum((a == "equal") == b for a, b in zip(verdicts, theirs))
        print(line("math-verify", figures) + f"\n  same verdict on {same} of {len(rows)}\n", flush=True)


def bench_hostile(arguments, folder, peer, results):
    print(f"hostile answers, gold 7\n  {'':<28}{'ucas ms':>10}  {'verdict':<14}{'math-verify ms':>16}")
    results["hostile"] = {}
    for name, text in HOSTILE:
        kind = "output" if "boxed" in text else "bare"
        verdicts, figures = run_ucas(arguments.ucas, [("7", text, kind)], folder)
        theirs = hostile_math_verify(text) if peer else float("nan")
        shown = (f"> {HOSTILE_LIMIT * 1e3:,.0f}" if theirs is None
                 else "crashed" if math.isnan(theirs) else f"{1e3 * theirs:,.1f}")
        results["hostile"][name] = {"ucas_ms": figures["max_ms"], "verdict": verdicts[0],
                                    "math_verify": shown}
        print(f"  {name:<28}{figures['max_ms']:>10.3f}  {verdicts[0]:<14}{shown if peer else '':>16}", flush=True)


def bench_groups(arguments, folder, results):
    """Right verdicts by group on cases.jsonl, beside what was measured of math-verify there (peer-verdicts.jsonl)."""
    def load(name):
        with open(os.path.join(arguments.data, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    peers = {row["id"]: row["verdicts"]["math_verify"] for row in load("peer-verdicts.jsonl")}
    out = os.path.join(folder, "verdicts.jsonl")
    subprocess.run([arguments.ucas, "verify", os.path.join(arguments.data, "cases.jsonl"), "--out", out], check=True,
                   stdout=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        ours = {row["id"]: row["verdict"] == "equal" for row in map(json.loads, file)}
    groups = {}
    for row in load("cases.jsonl"):
        names = [row["group"], "all", "all but outputs"] if row["kind"] != "output" else [row["group"], "all"]
        for name in names:
            tally = groups.setdefault(name, [0] * 7)
            tally[0] += 1
            for place, paid in ((1, ours[row["id"]]), (4, peers[row["id"]])):
                tally[place] += paid == row["expected"]
                tally[place + 1] += paid and not row["expected"]
                tally[place + 2] += not paid and row["expected"]
    print("| group | answers | ucas | false positives | false negatives | math-verify | false positives | false negatives |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in sorted(groups, key=lambda name: (name.startswith("all"), name)):
        n, right, paid, missed, peer_right, peer_paid, peer_missed = groups[name]
        print(f"| {name} | {n:,} | {right / n:.1%} | {paid} | {missed} | {peer_right / n:.1%} | {peer_paid} "
              f"| {peer_missed} |".replace("%", " %"))
    print()
    results["groups"] = groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with cases.jsonl and math_cot_100.jsonl")
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--limit", type=int, default=10**9, help="answers of each kind")
    parser.add_argument("--no-hostile", action="store_true")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return grade_stdin()
    if not arguments.data:
        parser.error("--data is missing")
    try:
        import math_verify  # noqa: F401
        import logging
        logging.disable(logging.CRITICAL)
        peer = True
    except ImportError:
        print("math-verify is not installed here: ucas alone\n")
        peer = False
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        if os.path.exists(os.path.join(arguments.data, "peer-verdicts.jsonl")):
            bench_groups(arguments, folder, results)
        bench_rows(arguments, folder, peer, results)
        if not arguments.no_hostile:
            bench_hostile(arguments, folder, peer, results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return None


if __name__ == "__main__":
    main()
