"""Problems of reasoning-gym by python/ucas/reasoning.py: of each of its tasks, the own answer and another problem's are scored as its scorer does.

Needs reasoning-gym; `python -m unittest python/tests/test_reasoning.py` with UCAS_TASKS=a,b for some tasks."""
import importlib.util
import os
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))


def load():
    spec = importlib.util.spec_from_file_location("reasoning", os.path.join(HERE, "..", "ucas", "reasoning.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipUnless(importlib.util.find_spec("reasoning_gym"), "reasoning-gym is not installed")
class Reasoning(unittest.TestCase):
    def test_answers_are_scored_as_the_task_does(self):
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
        reasoning, chosen = load(), os.environ.get("UCAS_TASKS", "")
        tasks = chosen.split(",") if chosen else sorted(set(DATASETS) - {"composite"})
        for task in tasks:
            with self.subTest(task=task):
                settings = {"size": 2, "seed": 5}
                data, scorers = reasoning_gym.create_dataset(task, **settings), reasoning.Scorers([])
                entries = [data[0], data[1]]
                for i in range(2):
                    scorers.places[f"{task}/{i}"] = {"task": task, "settings": settings, "index": i}
                for i, j in ((0, 0), (1, 1), (0, 1), (1, 0)):
                    answer = entries[j]["answer"]
                    if answer is None:
                        continue
                    got = scorers.score({"id": 0, "problem": f"{task}/{i}", "response": f"Thus\n<answer>{answer}</answer>", "verdict": "unequal"})
                    self.assertEqual(got["score"], data.score_answer(answer=str(answer), entry=entries[i]))

    def test_an_answer_is_found(self):
        reasoning = load()
        self.assertEqual(reasoning.answer_of("a <answer> 1 </answer> b <answer>2\n3</answer>"), "2\n3")
        self.assertEqual(reasoning.answer_of("so \\boxed{1} or \\boxed{\\frac{1}{2}}."), "\\frac{1}{2}")
        self.assertEqual(reasoning.answer_of("I think\n\n 42 \n"), "42")
        self.assertEqual(reasoning.answer_of(""), "")


if __name__ == "__main__":
    unittest.main()
