"""`ucas evaluate --server` against a server that stalls, drops, damages, cuts, and says 429, 500 and 503: every response
arrives once, none is counted that did not come, a stopped run goes on, and the key is nowhere. 10,200 requests are the first part."""
import json
import os
import subprocess
import sys

from support import HANG, PATIENCE, SCRATCH, Nobody, check, clean, path, ucas

HERE = os.path.dirname(os.path.realpath(__file__))
KEY = "sk-do-not-tell-5f3a"
PROBLEMS, SAMPLES = 150, 16
RESPONSES = PROBLEMS * (1 + SAMPLES)  # each after three failures: 10,200 requests
ENVIRONMENT = {**os.environ, "UCAS_API_KEY": KEY}


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "..", "support", "hostile_server.py"),
                                         *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.terminate()
        return json.loads(self.process.communicate(timeout=HANG)[0])


said = ""


def evaluate(server, out, *more, expect=0):
    global said
    done = ucas("evaluate", f"fake=http://127.0.0.1:{server.port}/v1", "--data", path("digits.jsonl"), "--template", "plain",
                "--samples", SAMPLES, "--max_tokens", 50, "--requests", 64, "--request_timeout", 4 * PATIENCE, "--out", path(out), *more,
                expect=expect, env=ENVIRONMENT)
    said += done.stdout + done.stderr
    return done


def outputs(out):
    with open(path(out, "fake", "eval", "digits.outputs.jsonl")) as file:
        return [json.loads(line) for line in file][1:]


with open(path("digits.jsonl"), "w") as file:
    for i in range(PROBLEMS):
        file.write(json.dumps({"id": f"p{i}", "problem": f"say {100 + i}", "answer": str(100 + i)}) + "\n")


def check_result(out):
    rows = outputs(out)
    check(len({(r["id"], r["sample"]) for r in rows}) == len(rows) == RESPONSES, f"{out}: every response once, {len(rows)}")
    wanted = {f"p{i}": f"\\boxed{{{100 + i}}}" if i % 2 == 0 else f"\\boxed{{{100 + i}1}}" for i in range(PROBLEMS)}
    check(all(r["text"] == wanted[r["id"]] and r["finished"] and r["tokens"] == 7 for r in rows),
          f"{out}: and each is that of its own prompt")
    with open(path(out, "fake", "eval", "digits.json")) as file:
        figures = json.load(file)
    check(figures["greedy"]["pass@1"]["value"] == 0.5 and figures["mean@k"][-1]["value"] == 0.5, f"{out}: half of them are right")


server = Server("--failures", 3)
evaluate(server, "all")
counts = server.stop()
check_result("all")
faults = {name: n for name, n in counts.items() if name not in ("requests", "answered")}
check(len(faults) == 10 and sum(faults.values()) == 3 * RESPONSES, f"after {sum(faults.values())} failures: {faults}")
check(counts["requests"] - 1 >= 4 * RESPONSES and counts["answered"] == RESPONSES, f"{counts['requests']} requests, and no response was asked for twice that had come")
ucas("verify", path("all", "fake"))
check(True, "graded again, the same")

# Refused: missing, not wrong; the others are kept, and the same command asks for the missing ones alone.
server = Server("--failures", 0, "--refuse", "say 123")
stopped = evaluate(server, "some", expect=75)
server.stop()
check(f"{1 + SAMPLES} of {RESPONSES:,} responses are missing" in stopped.stderr and "refused" in stopped.stderr, "it says what is missing")
check(len(outputs("some")) == RESPONSES - 1 - SAMPLES, "the others are kept")
check(not os.path.exists(path("some", "fake", "eval", "test.json")), "and nothing is counted")
server = Server("--failures", 1)
evaluate(server, "some")
check(server.stop()["answered"] == 1 + SAMPLES, "the rest is asked for alone, at another address")
check_result("some")

server = Server("--dead")
dead = evaluate(server, "dead", "--patience", 1, expect=75)
check(f"{RESPONSES:,} of {RESPONSES:,} responses are missing: no response for" in dead.stderr, "a dead server ends the run")
server.stop()
gone = evaluate(Nobody(), "dead", expect=2)
check("no connection" in gone.stderr, f"and one that is gone is said at once: {gone.stderr}")

check(KEY not in said, "the key is in nothing that was said")
for folder, _, names in os.walk(SCRATCH):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            check(KEY.encode() not in file.read(), f"nor in {name}")
clean()
