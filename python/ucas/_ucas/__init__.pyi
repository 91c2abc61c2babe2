# The extension module: plain functions on lists and arrays. What a user calls, with its checks, stands in the Python files; a test
# holds these names to those of the module. Legend: B responses, N tokens of all of them, n values.
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from . import stats as stats

Text = str | bytes
Setting = bool | int | float | str | Sequence[int] | Sequence[str]
Settings = Sequence[tuple[str, Setting]]

version: str
grader_version: int
graders: list[str]
extracts: list[str]
methods: list[str]

class Error(ValueError):
    """What a caller can cause and mend; `kind` is its class: config, unsupported, path, tokenizer ..."""

    kind: str

class Bug(RuntimeError):
    """A check of ucas itself failed: a bug, please report it with the call."""

@final
class Verdict:
    """How one answer was graded; true where it is right."""

    @property
    def kind(self) -> str:
        """equal, unequal, unparseable or over_budget"""
    @property
    def right(self) -> bool: ...
    @property
    def answer(self) -> str:
        """What was taken from the response; "" if nothing."""
    @property
    def reason(self) -> str: ...
    @property
    def score(self) -> float:
        """1 where it is right, else 0; of programs the share of tests passed."""
    def __bool__(self) -> bool: ...

@final
class Verdicts:
    """Those of B responses, in their order, and their columns."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Verdict: ...
    def __iter__(self) -> Iterator[Verdict]: ...
    @property
    def score(self) -> npt.NDArray[np.float32]:
        """[B]"""
    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """[B]"""
    @property
    def kind(self) -> list[str]: ...
    @property
    def answer(self) -> list[str]: ...
    @property
    def reason(self) -> list[str]: ...

@final
class Tokenizer:
    @staticmethod
    def load(directory: str) -> Tokenizer: ...
    def encode(self, texts: Sequence[Text], special: bool, prompt: bool, threads: int) -> list[npt.NDArray[np.int32]]: ...
    def decode(self, ids: npt.NDArray[np.int32], skip_special: bool, /) -> bytes: ...
    def token_text(self, id: int, /) -> bytes: ...
    def id_of(self, token: Text, /) -> int | None: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def eos_ids(self) -> list[int]: ...
    @property
    def pad_id(self) -> int | None: ...
    @property
    def directory(self) -> str: ...

def isa() -> tuple[str, str]: ...
def embedded(folder: str) -> list[str]: ...
def fail_a_check() -> None: ...
def explain(name: str, settings: Sequence[tuple[str, str]]) -> str: ...
def check_grader(grader: str, extract: str, /) -> None: ...
def grade(grader: str, extract: str, gold: Sequence[Sequence[Text]], responses: Sequence[Text], threads: int) -> Verdicts: ...
def classes(grader: str, verdicts: Verdicts, group: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]: ...
def explain_answer(gold: Sequence[Text], response: Text, extract: str) -> str: ...
def describe_method(name: str, preset: str, settings: Settings) -> dict[str, Any]: ...
def advantages(
    name: str,
    preset: str,
    settings: Settings,
    group_sizes: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    arrays: dict[str, Any],
    stop_ids: Sequence[int],
) -> dict[str, Any]: ...
def token_loss(
    name: str,
    preset: str,
    settings: Settings,
    objective: Settings,
    lengths: npt.NDArray[np.int64],
    arrays: dict[str, npt.NDArray[Any]],
    seed: int,
) -> dict[str, Any]: ...

# Arrays of the LM head are anything on the CPU that speaks DLPack; the last ones are written to.
def head_stats(
    hidden: Any,
    weight: Any,
    target: Any,
    temperature: float,
    threads: int,
    logprob: Any,
    entropy: Any,
    confidence: Any,
    logit: Any,
    margin: Any,
    lse: Any,
) -> None: ...
def head_gradient(
    hidden: Any,
    weight: Any,
    target: Any,
    temperature: float,
    threads: int,
    lse: Any,
    entropy: Any,
    d_logprob: Any,
    d_entropy: Any,
    d_confidence: Any,
    d_hidden: Any | None,
    d_weight: Any | None,
) -> None: ...
