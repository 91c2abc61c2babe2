r"""verl's reward: `reward.custom_reward_function.path=pkg://ucas.integrations.verl`, or the path of this file.

>>> compute_score("math", r"so \boxed{0.5}", "1/2")
{'score': 1.0, 'acc': 1.0, 'pred': '0.5', 'verdict': 'equal'}
"""
from ucas import Verifier


def compute_score(data_source, solution_str, ground_truth, extra_info=None, extract="strict", **_):
    """1.0 where the answer is right, else 0.0, with the same keys for every sample. `extract` (reward.custom_reward_function.
    reward_kwargs.extract) is that of `ucas.Verifier`."""
    golds = list(ground_truth) if isinstance(ground_truth, (list, tuple)) or hasattr(ground_truth, "tolist") else ground_truth
    verdict = Verifier(extract, threads=1).batch([golds], [solution_str])[0]
    return {"score": float(verdict.score), "acc": float(verdict.right), "pred": verdict.answer, "verdict": verdict.kind}
