"""Turns published data sets, as they are downloaded, into the files that suites, studies and trainings read:

    python tools/published_data.py SET SOURCE --out DATA [--math500 FILE]

SOURCE is what the publisher offers, a file (JSONL, JSON, Parquet, Arrow, each also as .gz but the last two) or a folder of such files;
DATA is then what `--data` and `--data.files` name. docs/data.md says where each set is published and under which licence. Every file that
is written is told with its rows and sha256; the same SOURCE gives the same bytes. Nothing is downloaded. Parquet and Arrow need pyarrow
(`python -m pip install pyarrow`). A row that does not fit ends the script, and nothing is written.
"""
import argparse
import gzip
import hashlib
import json
import os
import re
import sys

NAMES = {"problem": ("problem", "question", "Problem", "content", "prompt"),
         "answer": ("answer", "Answer", "final_answer", "target", "ground_truth")}


def refuse(message):
    sys.exit(f"published_data: {message}")


def rows_of_file(path):
    """Of one file, in its order."""
    name = path[:-3] if path.endswith(".gz") else path
    if name.endswith((".parquet", ".arrow")):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            refuse(f"{path}: needs pyarrow, which is not installed: python -m pip install pyarrow")
        if name.endswith(".parquet"):
            return pyarrow.parquet.read_table(path).to_pylist()
        with pyarrow.memory_map(path) as file:
            return pyarrow.ipc.open_stream(file).read_all().to_pylist()
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig") as file:
        text = file.read()
    try:
        if name.endswith(".jsonl"):
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        whole = json.loads(text)
    except ValueError as error:
        refuse(f"{path}: {error}; expected JSON")
    return whole if isinstance(whole, list) else [whole]


def place_of(path):
    """2.json before 10.json, train before test: the order of people."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path)]


def published(source):
    """[(path below source, row)]"""
    if not os.path.exists(source):
        refuse(f"{source}: no such file or folder, expected what docs/data.md names")
    paths = [source]
    if os.path.isdir(source):
        ends = (".jsonl", ".json", ".parquet", ".arrow", ".jsonl.gz", ".json.gz")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(source) for name in names
                 if name.endswith(ends) and name not in ("dataset_info.json", "state.json", "dataset_dict.json")]
        paths.sort(key=lambda path: place_of(os.path.relpath(path, source)))
    rows = []
    for path in paths:
        below = os.path.relpath(path, source) if os.path.isdir(source) else os.path.basename(path)
        for number, row in enumerate(rows_of_file(path), 1):
            if not isinstance(row, dict):
                refuse(f"{path}: row {number} is {type(row).__name__}, expected an object")
            rows.append((f"{path}, row {number}", below, row))
    if not rows:
        refuse(f"{source}: no rows; expected files that end with .jsonl, .json, .parquet or .arrow")
    return rows


def of_verl(row, kind):
    """Of a row of verl's schema, or None: the last message, and the right answer, which some nest once more."""
    messages, paid = row.get("prompt"), row.get("reward_model")
    if not isinstance(messages, list) or not messages or not isinstance(paid, dict):
        return None
    if kind == "problem":
        return messages[-1].get("content") if isinstance(messages[-1], dict) else None
    gold = paid.get("ground_truth")
    return gold.get("target") if isinstance(gold, dict) else gold


def field(where, row, kind):
    found = of_verl(row, kind)
    if found not in (None, ""):
        return found
    for name in NAMES[kind]:
        if row.get(name) not in (None, ""):
            return row[name]
    refuse(f"{where}: no {kind}: expected one of {', '.join(NAMES[kind])}, got {', '.join(row)}")


def answer_text(where, value):
    """As files hold it: a text, or a list of alternatives where there are several."""
    if isinstance(value, bool) or value is None:
        refuse(f"{where}: the answer is {value}, expected a text or a number")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # AMC: 142.0
    if isinstance(value, (list, tuple)):
        texts = [answer_text(where, one) for one in value]
        if not texts:
            refuse(f"{where}: no answer in the list")
        return texts[0] if len(texts) == 1 else texts
    text = str(value)
    if "\n#### " in text:  # GSM8K: the number after the working
        text = text.rsplit("#### ", 1)[1].strip().replace(",", "")
    return text


def last_box(where, solution):
    r"""What stands in the last \boxed{..} (\boxed 3, \fbox{..}) of a solution of MATH."""
    at = max(solution.rfind("\\boxed"), solution.rfind("\\fbox"))
    if at < 0:
        refuse(f"{where}: no \\boxed in the solution")
    rest = solution[at:].split("boxed" if solution.startswith("\\boxed", at) else "fbox", 1)[1]
    if not rest.lstrip().startswith("{"):
        return re.split(r"[\s$]", rest.lstrip(), maxsplit=1)[0]
    rest, depth = rest.lstrip(), 0
    for i, c in enumerate(rest):
        depth += (c == "{") - (c == "}")
        if depth == 0:
            return rest[1:i].strip()
    refuse(f"{where}: the last \\boxed is not closed")


def plain(name, rows):
    """id, problem, answer; of MATH-500 what it says of a problem besides."""
    return [{"id": f"{name}-{i:04d}", "problem": field(where, row, "problem"), "answer": answer_text(where, field(where, row, "answer")),
             **{k: row[k] for k in ("level", "subject", "unique_id") if k in row}} for i, (where, _, row) in enumerate(rows)]


def olympiad(name, rows):
    """Of OpenBMB's files the open questions of mathematics in English that have an answer without a picture."""
    kept = [(where, below, row) for where, below, row in rows
            if "OE_TO_maths_en_COMP" in below or "subfield" not in row or len({b for _, b, _ in rows}) == 1]
    return plain(name, kept)


def levels(rows):
    """Rows of MATH with split, level (0: none), subject, answer."""
    found, numbers = [], {}
    for where, below, row in rows:
        split = "test" if "test" in below.split(os.sep)[0] else "train"
        number = numbers[split] = numbers.get(split, -1) + 1
        digits = re.sub(r"\D", "", str(row.get("level", "")))
        solution = row.get("solution")
        if not isinstance(solution, str):
            refuse(f"{where}: no solution, from whose last box the answer is taken; got {', '.join(row)}")
        found.append({"id": f"math-{split}-{number:04d}", "split": split, "level": int(digits or 0),
                      "subject": row.get("type") or row.get("subject") or "", "problem": field(where, row, "problem"),
                      "solution": solution, "answer": last_box(where, solution) or "0"})  # two boxes are empty as published; both are 0
    return found


def key(text):
    return re.sub(r"\s+", "", text)


def math(rows, given):
    if not given.math500:
        refuse("math: --math500 FILE is missing: the problems that are evaluated on and must not be trained on")
    held = {key(field(where, row, "problem")) for where, _, row in published(given.math500)}
    made = levels(rows)
    for row in made:
        row["in_math500"] = key(row["problem"]) in held
    hit = sum(row["in_math500"] for row in made)
    if hit < len(held):
        print(f"published_data: {len(held) - hit} of {len(held)} problems of {given.math500} are none of MATH's: not the whole set?",
              file=sys.stderr)
    small = [{k: row[k] for k in ("id", "level", "subject", "problem", "answer")}
             for row in made if row["level"] >= 3 and not row["in_math500"]]
    return {"train/math_12500.jsonl": made, "train/math_lvl3to5.jsonl": small}


def dapo(rows):
    """verl's rows, each once: as published every problem stands there many times."""
    seen, made = {}, []
    for where, _, row in rows:
        text, gold = of_verl(row, "problem"), of_verl(row, "answer")
        if text is None or gold is None:
            refuse(f"{where}: expected prompt (messages) and reward_model.ground_truth, got {', '.join(row)}")
        # The instruction that stands around the problem is the template's matter (data.template).
        text = re.sub(r"^Solve the following math problem step by step\..*?\n\n", "", text, flags=re.S)
        text = re.sub(r"\n\nRemember to put your answer on its own line after \"Answer:\"\.\s*$", "", text)
        gold = answer_text(where, gold)
        if text in seen:
            if seen[text] != gold:
                print(f"published_data: {where}: the same problem has the answers {seen[text]} and {gold}; the first is kept", file=sys.stderr)
            continue
        seen[text] = gold
        made.append({"id": f"dapo-{len(made):05d}", "problem": text, "answer": gold})
    return {"train/dapo_17k.jsonl": made}


def leetcode(rows):
    """DeepSeek-Coder's 180 contest problems: a docstring with the head of a class, and asserts."""
    made = []
    for where, _, row in rows:
        prompt, test = row.get("prompt"), row.get("test")
        if not isinstance(prompt, str) or not isinstance(test, str):
            refuse(f"{where}: expected prompt and test, got {', '.join(row)}")
        text = row.get("prompt_sft") or prompt
        made.append({"id": str(row.get("task_id") or f"leetcode-{len(made):04d}"), "problem": text, "prompt": prompt,
                     "test": test, "difficulty": (row.get("meta") or {}).get("difficulty", "")})
    return {"cross/leetcode180_deepseek.jsonl": made}


# name -> (file below DATA, rows that it should have)
EVALUATIONS = {"aime24": ("eval/aime24.jsonl", 30), "aime25": ("eval/aime25.jsonl", 30), "math500": ("eval/math500.jsonl", 500),
               "amc83": ("eval/amc83.jsonl", 83), "amc23": ("eval/amc23_40.jsonl", 40), "minerva": ("eval/minerva.jsonl", 272),
               "olympiadbench": ("eval/olympiadbench.jsonl", 675), "gsm8k": ("eval/extra_gsm8k.jsonl", 1319)}
ROWS = {"train/math_12500.jsonl": 12500, "train/math_lvl3to5.jsonl": 8888, "train/dapo_17k.jsonl": None,
        "cross/leetcode180_deepseek.jsonl": 180, **{path: rows for path, rows in EVALUATIONS.values()}}


def converted(given):
    rows = published(given.source)
    if given.set == "math":
        return math(rows, given)
    if given.set == "dapo17k":
        return dapo(rows)
    if given.set == "leetcode":
        return leetcode(rows)
    make = olympiad if given.set == "olympiadbench" else plain
    return {EVALUATIONS[given.set][0]: make(given.set, rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=sorted([*EVALUATIONS, "math", "dapo17k", "leetcode"]))
    parser.add_argument("source")
    parser.add_argument("--out", required=True)
    parser.add_argument("--math500", help="of math: the published MATH-500, whose problems are left out of the training file")
    given = parser.parse_args()
    for name, made in converted(given).items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made).encode()
        path = os.path.join(given.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".tmp", "wb") as file:
            file.write(text)
        os.replace(path + ".tmp", path)
        expected = ROWS[name]
        remark = "" if expected in (None, len(made)) else f"  (expected {expected}: another edition?)"
        print(f"{hashlib.sha256(text).hexdigest()}  {path}  {len(made)} rows{remark}")


main()
