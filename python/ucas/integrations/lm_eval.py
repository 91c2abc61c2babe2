r"""lm-eval-harness: `process_results: !function utils.process_results` in a task, whose utils.py says
`from ucas.integrations.lm_eval import process_results`. Metrics "ucas_accuracy" and "ucas_unparseable", both means.

>>> process_results({"answer": "1/2"}, [r"\boxed{0.5}", r"\boxed{2}"])
{'ucas_accuracy': 0.5, 'ucas_unparseable': 0.0}
"""
from ..verifier import Error, Verifier

_GOLDS = ("answer", "solution", "ground_truth", "target", "gold")


def process_results(doc, results, extract="strict"):
    """Shares of the responses that are right, and that have no answer which can be read."""
    gold = next((doc[key] for key in _GOLDS if key in doc), None)
    if gold is None:
        raise Error(f"process_results: the doc has none of {', '.join(_GOLDS)}, got {', '.join(doc)}")
    flat = [text for one in results for text in ([one] if isinstance(one, str) else one)]
    verdicts = Verifier(extract).batch([gold] * len(flat), flat)
    return {"ucas_accuracy": float(verdicts.score.mean()),
            "ucas_unparseable": sum(kind == "unparseable" for kind in verdicts.kind) / len(flat)}
