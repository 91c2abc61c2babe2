"""Data sets in the shapes in which they are published become files that the program reads (tools/published_data.py)."""
import gzip
import hashlib
import json
import os
import subprocess
import sys

from support import HANG, check, fail, path, ucas

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "published_data.py")
OUT = path("data")


def convert(*words, expect=0):
    done = subprocess.run([sys.executable, "-B", SCRIPT, *words, "--out", OUT], capture_output=True, text=True, timeout=HANG)
    if (done.returncode == 0) != (expect == 0):
        fail(f"{words}: exit {done.returncode}\n{done.stderr}")
    return done


def put(name, text):
    file = path(name)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with (gzip.open if name.endswith(".gz") else open)(file, "wt", encoding="utf-8") as out:
        out.write(text)
    return file


def made(name):
    with open(os.path.join(OUT, name), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


# GSM8K: the number after the working; told with its hash, and the same bytes again.
gsm = put("gsm/test.jsonl", lines({"question": "How many?", "answer": "6 + 66 = <<6+66=72>>72\n#### 72"},
                                  {"question": "And then?", "answer": "Much.\n#### 1,234"}))
told = convert("gsm8k", gsm).stdout
file = os.path.join(OUT, "eval/extra_gsm8k.jsonl")
with open(file, "rb") as whole:
    digest = hashlib.sha256(whole.read()).hexdigest()
check(told.startswith(digest) and "2 rows" in told and "expected 1319" in told, f"path, rows and hash are told: {told.strip()}")
check(made("eval/extra_gsm8k.jsonl") == [{"id": "gsm8k-0000", "problem": "How many?", "answer": "72"},
                                         {"id": "gsm8k-0001", "problem": "And then?", "answer": "1234"}], "GSM8K")
check(convert("gsm8k", put("gsm/test.jsonl.gz", open(gsm).read())).stdout == told, "the same from .gz, byte for byte")

# AMC has floats, AIME leading zeros, Minerva alternatives, OlympiadBench lists of one.
convert("amc83", put("amc.json", json.dumps([{"problem": "x?", "answer": 142.0}])))
check(made("eval/amc83.jsonl")[0]["answer"] == "142", "AMC: a whole number stays one")
convert("aime24", put("aime.jsonl", lines({"id": 60, "problem": "a?", "solution": "..", "answer": "025", "url": "", "year": "2024"})))
check(made("eval/aime24.jsonl") == [{"id": "aime24-0000", "problem": "a?", "answer": "025"}], "AIME: the text as it is")
convert("minerva", put("minerva.json", json.dumps([{"problem": "v?", "answer": ["0.01", "0.02"]}])))
check(made("eval/minerva.jsonl")[0]["answer"] == ["0.01", "0.02"], "Minerva: alternatives")
convert("olympiadbench", put("olympiad.json", json.dumps([{"question": "n?", "final_answer": ["$2$"], "subfield": "Algebra"}])))
check(made("eval/olympiadbench.jsonl")[0] == {"id": "olympiadbench-0000", "problem": "n?", "answer": "$2$"}, "OlympiadBench")
m500 = put("m500.jsonl", lines({"problem": "Held  out", "solution": "\\boxed{1}", "answer": "1", "subject": "Algebra", "level": 3,
                                "unique_id": "test/algebra/2.json"}))
convert("math500", m500)
check(made("eval/math500.jsonl")[0]["unique_id"] == "test/algebra/2.json", "MATH-500")

# MATH: a file for each problem, in the order of their numbers; the last box is the answer.
for number, (level, problem, solution) in {"10": ("Level 5", "ten", "first \\boxed{3}, so \\boxed{\\frac{1}{2}}."),
                                           "2": ("Level 2", "two", "\\boxed 7$ it is"), "3": ("Level ?", "three", "\\fbox{x}")}.items():
    put(f"MATH/train/algebra/{number}.json", json.dumps({"problem": problem, "level": level, "type": "Algebra", "solution": solution}))
put("MATH/test/algebra/2.json", json.dumps({"problem": "Held out", "level": "Level 3", "type": "Algebra", "solution": "\\boxed{1}"}))
convert("math", path("MATH"), "--math500", m500)
rows = made("train/math_12500.jsonl")
check([(r["id"], r["problem"], r["answer"], r["level"], r["in_math500"]) for r in rows] ==
      [("math-test-0000", "Held out", "1", 3, True), ("math-train-0000", "two", "7", 2, False), ("math-train-0001", "three", "x", 0, False),
       ("math-train-0002", "ten", "\\frac{1}{2}", 5, False)], "MATH")
check([r["problem"] for r in made("train/math_lvl3to5.jsonl")] == ["ten"], "levels 3 to 5 without MATH-500")

# DAPO: verl's rows, each problem once, without the instruction around it.
ASK = "Solve the following math problem step by step. The last line ...\n\n{}\n\nRemember to put your answer on its own line after \"Answer:\"."
dapo = [{"data_source": "math_dapo", "prompt": [{"role": "user", "content": ASK.format(p)}],
         "reward_model": {"ground_truth": g, "style": "rule"}} for p, g in (("a+b?", "34"), ("c?", "5"), ("a+b?", "34"))]
convert("dapo17k", put("dapo.jsonl", lines(*dapo)))
check([(r["problem"], r["answer"]) for r in made("train/dapo_17k.jsonl")] == [("a+b?", "34"), ("c?", "5")], "DAPO-Math-17k")

# LeetCode of DeepSeek-Coder.
convert("leetcode", put("leet.jsonl", lines({"task_id": "t-1", "prompt": "\"\"\"\nAdd.\n\"\"\"\nclass Solution:\n    def f(self, x: int) -> int:\n        ",
        "prompt_sft": "Add.\n\n\nPlease complete the code below to solve above prblem:\n```python\n..```", "meta": {"difficulty": "Easy"},
        "test": "my_solution = Solution()\nassert my_solution.f(x=1) == 2\n"})))
check(made("cross/leetcode180_deepseek.jsonl")[0]["problem"].startswith("Add.\n\n\nPlease complete"), "LeetCode")

# AIME in verl's schema, the right answer nested once more.
convert("aime25", put("aime.jsonl", lines({"prompt": [{"role": "user", "content": "Find it."}],
        "reward_model": {"ground_truth": {"question": "Find it.", "target": "70"}, "style": "rule"}})))
check([(r["problem"], r["answer"]) for r in made("eval/aime25.jsonl")] == [("Find it.", "70")], "rows of verl's schema")

# What was written is what the program reads.
for name in ("train/math_12500.jsonl", "train/math_lvl3to5.jsonl", "train/dapo_17k.jsonl", "eval/extra_gsm8k.jsonl", "eval/minerva.jsonl"):
    said = ucas("check", os.path.join(OUT, name)).stdout
    check(": ok (" in said, f"ucas check: {said.strip()[:120]}")

# A file of one's own environment may hold Arrow and Parquet, as the five sets of the paper are published.
try:
    import pyarrow
    import pyarrow.parquet
    table = pyarrow.table({"problem": ["p?"], "answer": [142.0]})
    os.makedirs(path("arrow"))
    with pyarrow.OSFile(path("arrow/data-00000-of-00001.arrow"), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    put("arrow/state.json", "{}")
    convert("amc83", path("arrow"))
    check(made("eval/amc83.jsonl") == [{"id": "amc83-0000", "problem": "p?", "answer": "142"}], "a folder of Arrow")
    pyarrow.parquet.write_table(pyarrow.table({"question": ["q?"], "answer": ["#### 5"]}), path("one.parquet"))
    convert("aime25", path("one.parquet"))
    check(made("eval/aime25.jsonl")[0]["problem"] == "q?", "Parquet")
except ImportError:
    print("pyarrow is not installed: Arrow and Parquet are not tried")

before = sorted(os.listdir(os.path.join(OUT, "eval")))
for words, said in ((("gsm8k", path("nowhere")), "no such file"), (("math", path("MATH")), "--math500"),
                    (("amc23", put("bad.jsonl", lines({"problem": "x"}))), "no answer"),
                    (("amc23", put("bool.jsonl", lines({"problem": "x", "answer": True}))), "expected a text or a number"),
                    (("math", put("nobox.jsonl", lines({"problem": "x", "solution": "y"})), "--math500", m500), "no \\boxed"),
                    (("amc23", put("torn.jsonl", "{\"problem\": ")), "expected JSON")):
    done = convert(*words, expect=1)
    check(said in done.stderr and "Traceback" not in done.stderr, f"refused: {done.stderr.strip()[:110]}")
check(sorted(os.listdir(os.path.join(OUT, "eval"))) == before, "and nothing is written then")
