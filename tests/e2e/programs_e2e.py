"""Evaluations of programs: rows as LiveCodeBench publishes them, right and wrong answers, graded in the sandbox and again."""
import base64
import json
import os
import pickle
import subprocess
import sys
import zlib

from support import UCAS, check, path, ucas

if subprocess.run([UCAS, "doctor", "--sandbox"], capture_output=True).returncode != 0:
    print("skipped: no sandbox on this machine")
    sys.exit(77)


def packed(tests):
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def write(name, rows):
    with open(path(name), "w") as out:
        out.write("".join(json.dumps(row) + "\n" for row in rows))


PROBLEMS = [
    {"question_id": "sum", "question_content": "Print the sum of two numbers.", "starter_code": "", "metadata": "{}",
     "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
     "private_test_cases": packed([{"input": "5 6\n", "output": "11\n", "testtype": "stdin"}])},
    {"question_id": "twice", "question_content": "Double it.", "metadata": json.dumps({"func_name": "twice"}),
     "starter_code": "class Solution:\n    def twice(self, n: int) -> int:\n        ",
     "public_test_cases": json.dumps([{"input": "4", "output": "8", "testtype": "functional"}]),
     "private_test_cases": packed([{"input": "-3", "output": "-6", "testtype": "functional"}])}]
ANSWERS = {"right": ["a, b = map(int, input().split())\nprint(a + b)",
                     "class Solution:\n    def twice(self, n):\n        return 2 * n"],
           "public": ["input()\nprint(3)", "class Solution:\n    def twice(self, n):\n        return abs(2 * n)"],
           "prose": ["the sum", "twice as much"]}
os.mkdir(path("data"))
write("data/livecodebench.jsonl", PROBLEMS)
for name, texts in ANSWERS.items():
    write(f"{name}.jsonl", [{"id": row["question_id"], "response": f"So:\n```python\n{text}\n```"}
                            for row, text in zip(PROBLEMS, texts)])
    done = ucas("evaluate", "--responses", path(f"{name}.jsonl"), "--suite", "livecodebench", "--data", path("data"),
                "--out", path("out"))
    score = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("livecodebench (2)")][0]
    check(score == ("100.0" if name == "right" else "0.0"), f"{name}: {score}")
    rows = [json.loads(line) for line in open(path("out", name, "eval", "livecodebench.jsonl"))]
    check("Starter code:\n```python\nclass Solution:" in rows[1]["problem"], "the starter code belongs to the question")
    done = ucas("verify", path("out", name))
    check("no verdict flips" in done.stdout, f"{name}: graded again, the same")

# Own files, by an option; what is no test is refused before anything is graded.
write("own.jsonl", [{"id": "inc", "problem": "Add one.", "test": "assert inc(1) == 2\nassert inc(-1) == 0"}])
write("answers.jsonl", [{"id": "inc", "response": "```python\ndef inc(n):\n    return n + 1\n```"}])
done = ucas("evaluate", "--responses", path("answers.jsonl"), "--data", path("own.jsonl"), "--grader", "code", "--extract",
            "lenient")
check("100.0" in done.stdout, "own tests")
write("none.jsonl", [{"id": "inc", "problem": "Add one.", "answer": "2"}])
done = ucas("evaluate", "--responses", path("answers.jsonl"), "--data", path("none.jsonl"), "--grader", "code", expect=2)
check("error[data_line]: problem inc" in done.stderr, "an answer that is no test")
