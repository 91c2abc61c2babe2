"""Problems of the package reasoning-gym, and its own scorers: for `--data rg:TASK,size=N,seed=S` of the program.

    rows rg:TASK,KEY=VALUE,... FOLDER   writes the problems to a file in FOLDER (unless it is there) and prints its path
    score FILE ...                      answers lines of reward.command by the scorer of the problem's task
    tasks                               prints the names of all tasks

The answer of a response is what stands in the last <answer>..</answer>, else in the last \\boxed{..}, else its last line.
"""
import hashlib
import json
import os
import re
import sys

_MISSING = "reasoning-gym is not installed for this Python ({}): pip install reasoning-gym"


def _gym():
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        sys.exit(_MISSING.format(error))
    return reasoning_gym, DATASETS


def _value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse(name):
    """("chain_sum", {"size": 2000, "seed": 1}) of "rg:chain_sum,size=2000,seed=1"."""
    task, *pairs = name.removeprefix("rg:").split(",")
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            sys.exit(f"{name}: expected KEY=VALUE after the task, got {pair!r}")
        settings[key] = _value(value)
    return task, {"size": 500, "seed": 0} | settings


def _plain(value):
    """As JSON: what a task keeps beside its answer may be anything."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def make(name):
    gym, known = _gym()
    task, settings = parse(name)
    if task not in known:
        import difflib
        near = difflib.get_close_matches(task, known, 1)
        sys.exit(f"{name}: reasoning-gym has no task {task}" + (f" (did you mean {near[0]}?)" if near else "") + f"; it has {len(known)}: "
                 + ", ".join(sorted(known)))
    try:
        return gym.create_dataset(task, **settings), task, settings
    except (AssertionError, TypeError, ValueError) as error:
        sys.exit(f"{name}: {task} does not take these settings: {error}")


def rows(name, folder):
    data, task, settings = make(name)
    version = getattr(_gym()[0], "__version__", "")
    key = hashlib.sha256(json.dumps([task, settings, version], sort_keys=True).encode()).hexdigest()[:12]
    path = os.path.join(folder, f"{task}-{key}.jsonl")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        whole = f"{path}.tmp-{os.getpid()}"
        with open(whole, "w", encoding="utf-8") as file:
            for index in range(settings["size"]):
                entry = data[index]
                answer = entry["answer"]
                row = {"id": f"{task}/{settings['seed']}/{index}", "data_source": f"rg:{task}", "problem": entry["question"],
                       "answer": "(any that the task's scorer takes)" if answer is None else str(answer),
                       "reasoning_gym": {"task": task, "settings": settings, "index": index}}
                file.write(json.dumps(row) + "\n")
        os.replace(whole, path)
    return path


def answer_of(response):
    tagged = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)
    if tagged:
        return tagged[-1].strip()
    at = response.rfind("\\boxed{")
    if at >= 0:
        depth, begin = 1, at + len("\\boxed{")
        for end in range(begin, len(response)):
            depth += {"{": 1, "}": -1}.get(response[end], 0)
            if depth == 0:
                return response[begin:end].strip()
    lines = [line.strip() for line in response.strip().split("\n") if line.strip()]
    return lines[-1] if lines else ""


class Scorers:
    """The task's own scorer for each problem. Entries are made again by their settings and index, so that nothing is lost in a file."""

    def __init__(self, files):
        self.places, self.sets = {}, {}
        for path in files:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    row = json.loads(line)
                    if "reasoning_gym" in row:
                        self.places[row["id"]] = row["reasoning_gym"] | {"question": row["problem"]}

    def score(self, row):
        place = self.places.get(row["problem"])
        if place is None:
            return {"id": row["id"], "score": 1.0 if row["verdict"] == "equal" else 0.0}
        key = json.dumps([place["task"], place["settings"]], sort_keys=True)
        if key not in self.sets:
            self.sets[key] = _gym()[0].create_dataset(place["task"], **place["settings"])
        data = self.sets[key]
        entry = data[place["index"]]
        if entry["question"] != place["question"]:
            raise RuntimeError(f"{row['problem']}: reasoning-gym makes another problem now than the file holds; is it another version? Remove the file, "
                               "and it is made again")
        score = float(data.score_answer(answer=answer_of(row["response"]), entry=entry))
        return {"id": row["id"], "score": score, "right": score >= 1, "reason": f"by the scorer of {place['task']}: {score:g}"}


def main(arguments):
    what, *rest = arguments
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some tasks print while they make their problems
    if what == "rows":
        return replies.write(rows(*rest) + "\n")
    if what == "tasks":
        return replies.write("\n".join(sorted(_gym()[1])) + "\n")
    scorers = Scorers(rest)
    for line in sys.stdin:
        replies.write(json.dumps(scorers.score(json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # some tasks choose from sets of strings: the same problems in every process
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    main(sys.argv[1:])
