"""Problems of reasoning-gym by python/ucas/reasoning.py, as the program calls it: rows written by one process, answers judged in another. Of every
task family the own answers and those of the next problem get what the task's scorer gives them.

Needs reasoning-gym and the sandbox (UCAS_SANDBOX, else build/ucas-sandbox); `python -m unittest python/tests/test_reasoning.py` with UCAS_TASKS=a,b for some tasks."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPT = os.path.join(HERE, "..", "ucas", "reasoning.py")
LAUNCHER = os.environ.get("UCAS_SANDBOX", os.path.join(HERE, "../../build/ucas-sandbox"))
SIZE, SEED = 3, 5
# What the task's own scorer says of a problem's answer and of the next problem's, in a process with the same seed for hashes.
WANTED = """
import json, reasoning_gym, sys
task, size, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = reasoning_gym.create_dataset(task, size=size, seed=seed)
wanted = {}
for i in range(size):
    for kind, j in (("own", i), ("other", (i + 1) % size)):
        answer = data[j]["answer"]
        if answer is not None:
            wanted[f"{kind}/{i}"] = [str(answer), float(data.score_answer(answer=str(answer).strip(), entry=data[i]))]
sys.__stdout__.write("\\n" + json.dumps(wanted))
"""


def load():
    spec = importlib.util.spec_from_file_location("reasoning", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def last_line(*words, **more):
    return subprocess.run([sys.executable, "-B", *words], stdout=subprocess.PIPE, text=True, check=True, **more).stdout.strip().split("\n")


@unittest.skipUnless(importlib.util.find_spec("reasoning_gym"), "reasoning-gym is not installed")
class Reasoning(unittest.TestCase):
    def judge(self, task, folder):
        """(wanted, got) of each answer."""
        path = last_line(SCRIPT, "rows", f"rg:{task},size={SIZE},seed={SEED}", folder)[-1]
        with open(path, encoding="utf-8") as file:
            names = [json.loads(line)["id"] for line in file]
        wanted = json.loads(last_line("-c", WANTED, task, str(SIZE), str(SEED), env=os.environ | {"PYTHONHASHSEED": "0"})[-1])
        questions = "".join(json.dumps({"id": key, "problem": names[int(key.split("/")[1])], "verdict": "unequal",
                                        "response": f"Thus\n<answer>{answer}</answer>"}) + "\n" for key, (answer, _) in wanted.items())
        got = [json.loads(line) for line in last_line(SCRIPT, "score", LAUNCHER, "60", "60", str(2 << 30), path, input=questions) if line]
        return {key: score for key, (_, score) in wanted.items()}, {reply["id"]: reply["score"] for reply in got}

    def test_answers_are_scored_as_the_task_does(self):
        chosen = os.environ.get("UCAS_TASKS", "")
        tasks = chosen.split(",") if chosen else [task for task in last_line(SCRIPT, "tasks") if task != "composite"]   # made of other tasks
        whole = alike = 0
        with tempfile.TemporaryDirectory() as folder:
            for task in tasks:
                with self.subTest(task=task):
                    wanted, got = self.judge(task, folder)
                    self.assertEqual(got, wanted)
                    alike += len(got)
                    own = [score for key, score in got.items() if key.startswith("own")]
                    whole += own == [1.0] * SIZE
                    if own != [1.0] * SIZE:
                        print(f"{task}: its scorer gives its own answers {own}" if own else f"{task}: its problems have no answer of their own", flush=True)
        print(f"{len(tasks)} families; {whole} with full marks for all own answers; {alike} answers judged as the task's scorer judges")

    def test_an_answer_that_is_code_is_not_run(self):
        """The nine scorers that evaluate: what it does is not done, and the answers behind it are scored as before."""
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "mark")
            code = [f"__import__('os').system('touch {mark}')", "__import__('builtins').__dict__.__setitem__('float', lambda *a: 1.0)", "9**9**9"]
            for task in ("binary_matrix", "n_queens", "spiral_matrix", "string_insertion", "countdown", "puzzle24", "polynomial_multiplication",
                         "simple_integration", "intermediate_integration"):
                path = last_line(SCRIPT, "rows", f"rg:{task},size=1,seed={SEED}", folder)[-1]
                with open(path, encoding="utf-8") as file:
                    row = json.loads(file.readline())
                answers = [row["answer"], "0", *code, "0", row["answer"]]
                questions = "".join(json.dumps({"id": i, "problem": row["id"], "verdict": "unequal", "response": f"<answer>{answer}</answer>"}) + "\n"
                                    for i, answer in enumerate(answers))
                got = [json.loads(line)["score"] for line in last_line(SCRIPT, "score", LAUNCHER, "60", "1", str(2 << 30), path, input=questions)]
                with self.subTest(task=task):
                    self.assertEqual(len(got), len(answers))
                    self.assertEqual(got[5:], [got[1], got[0]])
                    self.assertTrue(all(score < 0.5 for score in got[2:5]), got)
                    self.assertFalse(os.path.exists(mark))

    def test_an_answer_is_found(self):
        reasoning = load()
        self.assertEqual(reasoning.answer_of("a <answer> 1 </answer> b <answer>2\n3</answer>"), "2\n3")
        self.assertEqual(reasoning.answer_of("so \\boxed{1} or \\boxed{\\frac{1}{2}}."), "\\frac{1}{2}")
        self.assertEqual(reasoning.answer_of("I think\n\n 42 \n"), "42")
        self.assertEqual(reasoning.answer_of(""), "")


if __name__ == "__main__":
    unittest.main()
