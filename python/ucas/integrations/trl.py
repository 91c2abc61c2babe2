r"""Rewards for TRL: `GRPOTrainer(reward_funcs=accuracy_reward, ...)` with a data set that has a column "solution".

>>> accuracy_reward(completions=[r"\boxed{0.5}", [{"role": "assistant", "content": r"\boxed{3}"}]], solution=["1/2", "4"])
[1.0, 0.0]
"""
from ..verifier import Verifier
from . import text_of


class AccuracyReward:
    """1.0 where the answer is the solution's, 0.0 where not, None (TRL leaves the row out) where a row has no solution.

    extract and threads are those of `ucas.Verifier`; column: where the data set keeps the right answer, or a whole solution, whose
    last box counts. Picklable. Needs no main thread and no alarm, unlike a grader with a time-out.
    """

    def __init__(self, extract="strict", threads=0, column="solution"):
        self.grade, self.column, self.__name__ = Verifier(extract, threads=threads), column, "ucas_accuracy"

    def __call__(self, *, completions, log_extra=None, log_metric=None, **columns):
        golds, texts = columns[self.column], [text_of(one) for one in completions]
        verdicts = self.grade.batch(["" if gold is None else gold for gold in golds], texts)
        if log_extra is not None:
            log_extra("ucas_answer", verdicts.answer)
            log_extra("ucas_verdict", verdicts.kind)
        if log_metric is not None:
            log_metric("ucas_unparseable", sum(kind == "unparseable" for kind in verdicts.kind) / max(1, len(texts)))
        return [None if gold is None else float(verdict.score) for gold, verdict in zip(golds, verdicts)]


accuracy_reward = AccuracyReward()
