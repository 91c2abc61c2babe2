"""Grades answers to mathematical problems, exactly: what `ucas verify` and training do, on lists of texts."""
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _ucas
from ._ucas import Error, Verdict, Verdicts  # noqa: F401
from .arrays import array

Text = str | bytes
Gold = Text | float | Sequence[Text]  # a list: any one of them counts


def _texts_of(gold: Any) -> tuple[Text, ...]:
    if isinstance(gold, (str, bytes)):
        return (gold,)
    if isinstance(gold, numbers.Number) and not isinstance(gold, bool):
        return (str(gold),)
    if isinstance(gold, (list, tuple)) and all(isinstance(one, (str, bytes)) for one in gold):
        return tuple(gold)
    raise Error(f"gold: expected text, a number, or a list of texts of which any one counts, got {gold!r:.80}")


def _responses(responses: Iterable[Text]) -> list[Text]:
    if isinstance(responses, (str, bytes)):
        raise Error("responses: expected a list of texts, got one text; verify() grades a single answer")
    return list(responses)


def verify(gold: Gold, answer: Text) -> Verdict:
    r"""Is this the right answer?

    `gold` is the right answer, or a list of texts of which any one counts; `answer` is an answer, or a whole response, of which the
    last box is taken. Returns a `Verdict`, which is true where the answer is right. No text makes it raise, hang or wait: work is
    counted, and what would take too much is `over_budget`.

    >>> verify(r"\frac{1}{2}", "0.5").kind
    'equal'
    >>> bool(verify("x^2-1", r"Therefore \boxed{(x-1)(x+1)}."))
    True
    >>> verify("72", "seventy").kind
    'unequal'
    """
    return _ucas.grade("math", "auto", [_texts_of(gold)], [answer], 1)[0]


class Verifier:
    r"""A grader with its settings: picklable, cheap to make, safe to use from any thread and after a fork.

    extract: where in a response the answer is. `strict`: in the last box, as RLVR pays; `lenient`: there, or after the usual
    phrases; `answer_tag`: in the last box inside the last <answer>..</answer>; `bare`: the whole text; `auto`: the last box, or the
    whole text where there is none.
    grader: `math`, or another of `Verifier.graders`. threads: of a batch; 0: all cores that this process may use.

    >>> grade = Verifier()
    >>> grade.batch(["1/2", "3"], [r"\boxed{0.5}", r"\boxed{4}"]).score
    array([1., 0.], dtype=float32)
    """

    graders = tuple(_ucas.graders)
    extracts = (*_ucas.extracts, "auto")

    def __init__(self, extract: str = "strict", grader: str = "math", threads: int = 0) -> None:
        _ucas.check_grader(grader, extract)
        if not 0 <= threads <= 1024:
            raise Error(f"threads: expected 0 to 1024, got {threads}")
        self.extract, self.grader, self.threads = extract, grader, threads

    def __repr__(self) -> str:
        return f"Verifier(extract={self.extract!r}, grader={self.grader!r}, threads={self.threads})"

    def batch(self, gold: Iterable[Gold], responses: Iterable[Text]) -> Verdicts:
        r"""Verdicts on B responses: gold [B] (texts, or lists of alternatives), responses [B] (texts).

        Runs without the GIL. The verdicts are a sequence; `score` [B] float32, `right` [B] bool, `kind`, `answer` and `reason` are
        their columns. Responses to one problem are best neighbours: their gold is then read once.

        >>> Verifier("lenient").batch(["12"], ["The answer is 12."]).kind
        ['equal']
        """
        golds = [_texts_of(one) for one in gold]
        return _ucas.grade(self.grader, self.extract, golds, _responses(responses), self.threads)

    def classes(self, verdicts: Verdicts, group: npt.ArrayLike) -> npt.NDArray[np.int32]:
        r"""Which answers are the same: the class of each verdict's answer within its group, [B] int32, -1 for none.

        All that is right is one class, however it is written. `group` [B] says which verdicts belong together (any integers).

        >>> grade = Verifier()
        >>> wrong = grade.batch(["1"] * 4, [r"\boxed{1/2}", r"\boxed{0.5}", r"\boxed{3}", "none"])
        >>> grade.classes(wrong, [7, 7, 7, 7])
        array([ 0,  0,  1, -1], dtype=int32)
        """
        group = array(group, np.int64, "group", 1)
        if len(group) != len(verdicts):
            raise Error(f"group: expected one for each of {len(verdicts)} verdicts, got {len(group)}")
        _, numbers = np.unique(group, return_inverse=True)
        return _ucas.classes(self.grader, verdicts, np.ascontiguousarray(numbers, dtype=np.int64))

    def explain(self, gold: Gold, response: Text) -> str:
        r"""How the verdict came about: what was taken, how both were read, which rule decided. For people.

        >>> print(Verifier().explain("1/2", r"\boxed{0.5}"))
        gold     1/2
          read as  (/ 1 2)
        answer   0.5  (last box)
          read as  0.5
        verdict  equal: the same value
        """
        if self.grader != "math":
            raise Error("explain() is of the grader \"math\"")
        return _ucas.explain_answer(_texts_of(gold), response, self.extract)
