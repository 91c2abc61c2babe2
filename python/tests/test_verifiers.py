"""Our reward inside the real verifiers package, plugged into a task by name. An environment of its own (tools/test_integrations)."""
import asyncio
import unittest

import verifiers.v1 as vf

HALF = [r"it is \boxed{0.5}", r"so \boxed{\frac{1}{2}}", r"\boxed{2}", "none", ""]


class Half(vf.TaskData):
    answer: str


class Halves(vf.Task[Half, vf.State, vf.TaskConfig]):
    pass


class Verifiers(unittest.TestCase):
    def rewards(self, **entry):
        config = vf.TaskConfig(rewards={"accuracy": {"fn": "ucas.integrations.verifiers:accuracy", **entry}})
        task = Halves(Half(idx=0, prompt="?", answer="1/2"), config)
        for text in HALF:
            trace = vf.Trace(task={"type": "Halves", "data": task.data}, agent={"config": vf.AgentConfig()}, root_reply=text)
            asyncio.run(task.score(trace))
            yield trace.reward

    def test_a_task_is_scored_by_the_reward_that_its_config_names(self):
        self.assertEqual([*self.rewards()], [1.0, 1.0, 0.0, 0.0, 0.0])
        self.assertEqual([*self.rewards(weight=0.5)], [0.5, 0.5, 0.0, 0.0, 0.0])


if __name__ == "__main__":
    unittest.main()
