"""verifiers (and prime-rl): a reward of a task, whose data has `answer`. Plugged by name, without code,

    [env.taskset.task.rewards.accuracy]
    fn = "ucas.integrations.verifiers:accuracy"

or called from a task's own `@vf.reward`.
"""
from ..verifier import Verifier


async def accuracy(task, trace) -> float:
    """1.0 where the last reply's answer is the task's, else 0.0. What verifiers hands over as the task is its data."""
    return float(Verifier(threads=1).batch([task.answer], [trace.last_reply])[0].score)
