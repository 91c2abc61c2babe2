"""Every task family of the installed reasoning-gym through python/ucas/reasoning.py, as the program calls it: rows written by `rows`, answers judged by
`score` in a process of its own. Each problem's own answer must get full marks where the task's scorer gives them; the answer of the next problem
must get what the scorer gives it.

    pip install reasoning-gym && python3 tools/check_reasoning_gym.py [--size 5] [--seed 1] [TASK ..]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/ucas/reasoning.py")


def judged(path, questions):
    replies = subprocess.run([sys.executable, "-B", SCRIPT, "score", path], input="".join(json.dumps(q) + "\n" for q in questions), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return {reply["id"]: reply["score"] for reply in map(json.loads, replies.splitlines())}


def check(task, size, seed, folder):
    """(own answers right, others judged alike, judged apart, note) of a family."""
    import reasoning_gym
    made = subprocess.run([sys.executable, "-B", SCRIPT, "rows", f"rg:{task},size={size},seed={seed}", folder], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return 0, 0, 0, made.stderr.strip().split("\n")[-1]
    path = made.stdout.strip().split("\n")[-1]
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    data = reasoning_gym.create_dataset(task, size=size, seed=seed)
    questions, wanted = [], {}
    for index, row in enumerate(rows):
        entry = data[index]
        if entry["question"] != row["problem"]:
            return 0, 0, 0, f"problem {index} is another when it is made again"
        for kind, answer in (("own", entry["answer"]), ("other", data[(index + 1) % size]["answer"])):
            if answer is None:
                continue
            name = f"{kind}/{index}"
            questions.append({"id": name, "problem": row["id"], "verdict": "unequal", "response": f"I think so.\n<answer>{answer}</answer>"})
            wanted[name] = float(data.score_answer(answer=str(answer).strip(), entry=entry))
    got = judged(path, questions)
    own = sum(got[name] >= 1 for name in wanted if name.startswith("own"))
    apart = [name for name in wanted if abs(got[name] - wanted[name]) > 1e-12]
    note = "" if len(wanted) == 2 * size else f"{size - len(wanted) // 2} of {size} problems have no answer of their own: the scorer alone judges"
    short = [name for name in wanted if name.startswith("own") and wanted[name] < 1]
    if short:
        note += f"the task's scorer gives its own answer {min(wanted[name] for name in short):g}"
    return own, len(wanted) - len(apart), len(apart), note


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--size", type=int, default=5)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("tasks", nargs="*")
    options = options.parse_args()
    tasks = options.tasks or subprocess.run([sys.executable, "-B", SCRIPT, "tasks"], capture_output=True, text=True, check=True).stdout.split()
    whole = failed = alike = apart = 0
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            own, same, other, note = check(task, options.size, options.seed, folder)
            whole, alike, apart = whole + (own == options.size), alike + same, apart + other
            failed += same == 0
            if note or other or own < options.size:
                print(f"{task}: {own} of {options.size} own answers right, {other} judged apart{'; ' + note if note else ''}", flush=True)
    print(f"{len(tasks)} families, {whole} with all own answers right; {alike} answers judged as the task's scorer judges, {apart} apart; "
          f"{failed} families could not be made")
    sys.exit(1 if apart or failed else 0)


if __name__ == "__main__":
    main()
