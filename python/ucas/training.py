"""`ucas.train(...)`: starts the program beside this process and follows it, for notebooks and sweeps.

    run = ucas.train("dapo-tiny", out="runs/a", model="base", data="train.jsonl", optimizer={"lr": 1e-5})
    for row in run:                      # rows of steps.jsonl, as they come
        print(row["training/global_step"], row["critic/score/mean"])
    run.wait()

The training is a process of its own: it saves, stops and resumes as on the command line, and outlives this one if `detach=True`.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

try:
    from ._program import environment as _environment
    from ._ucas import Error
except ImportError:  # without the compiled part
    def _environment() -> dict[str, str]:
        return dict(os.environ)

    class Error(ValueError):
        """What a user can mend."""

if TYPE_CHECKING:
    from .runs import Run

_POLL = 0.2  # seconds
_KEPT_LINES = 40
INTERRUPTED = 75


def program() -> str:
    """The native program: UCAS_PROGRAM, the one inside this package, or the one on the PATH."""
    inside = os.path.join(os.path.dirname(__file__), "bin", "ucas")
    for path in (os.environ.get("UCAS_PROGRAM"), inside, shutil.which("ucas")):
        if path and os.path.exists(path):
            return path
    raise Error("the program ucas is not here: set UCAS_PROGRAM to build/ucas, or put it on the PATH")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(one) for one in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def words_of(options: Mapping[str, Any], prefix: str = "") -> list[str]:
    """--key value for each option; tables by their names: {"rollout": {"n": 4}} is --rollout.n 4. None leaves an option out."""
    words: list[str] = []
    for key, value in options.items():
        if isinstance(value, Mapping):
            words += words_of(value, f"{prefix}{key}.")
        elif value is not None:
            words += [f"--{prefix}{key}", _text(value)]
    return words


class Training:
    """A training under way. Iterating gives the rows of steps.jsonl, each once, until it ends; `wait` raises what went wrong."""

    def __init__(self, words: list[str], out: str, detach: bool = False, environment: Mapping[str, str] | None = None) -> None:
        self.out = out
        self._log = tempfile.TemporaryFile(mode="w+b")
        self._read, self._rows = 0, []  # type: int, list[dict[str, Any]]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=detach,
                                        env={**_environment(), "NO_TTY": "1", **(environment or {})})

    def __repr__(self) -> str:
        code = self.process.poll()
        state = "running" if code is None else "done" if code == 0 else f"ended with {code}"
        return f"<ucas training {self.out!r}: {state}, {len(self.metrics())} rows>"

    @property
    def running(self) -> bool:
        """Whether the program is still at work."""
        return self.process.poll() is None

    def _look(self) -> list[dict[str, Any]]:
        """Rows that came since the last look. A line without its end is being written."""
        path = os.path.join(self.out, "steps.jsonl")
        if not os.path.exists(path):
            return []
        with open(path, "rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        new = [json.loads(line) for line in whole.split(b"\n") if line.strip()] if newline else []
        self._rows += new
        return new

    def metrics(self) -> list[dict[str, Any]]:
        """All rows so far."""
        self._look()
        return list(self._rows)

    def latest(self) -> dict[str, Any]:
        """The last row, {} before the first."""
        rows = self.metrics()
        return rows[-1] if rows else {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        given = 0
        while True:
            over = not self.running  # before the look, so that nothing written before the end is missed
            self._look()
            while given < len(self._rows):
                given += 1
                yield self._rows[given - 1]
            if over:
                return
            time.sleep(_POLL)

    def log(self) -> str:
        """What it has printed."""
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def stop(self) -> None:
        """Asks it to save a checkpoint and end, as SIGTERM does; `wait` then returns, and the same call with resume="auto" goes on."""
        if self.running:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> "Training":
        """Until its end. Raises Error with its last lines unless it is done or was stopped."""
        code = self.process.wait(timeout)
        if code not in (0, INTERRUPTED):
            lines = self.log().strip().split("\n")
            told = [line for line in lines if "error[" in line] or lines[-_KEPT_LINES:]
            raise Error(f"ucas train ended with {code}: " + "\n".join(told))
        return self

    def read(self) -> "Run":
        """The run directory as frames: ucas.read(out)."""
        from .runs import read
        return read(self.out)


def train(config: str | os.PathLike[str] | None = None, *, out: str | os.PathLike[str], detach: bool = False,
          environment: Mapping[str, str] | None = None, **options: Any) -> Training:
    """Starts `ucas train CONFIG --out OUT --key value ...` and returns at once. Options are those of the command line, by name or as tables:
    train("dapo-tiny", out="runs/a", model="base", data="train.jsonl", rollout={"n": 4}, **{"optimizer.lr": 1e-5})."""
    words = [program(), "train", *([os.fspath(config)] if config is not None else []), "--out", os.fspath(out), *words_of(options)]
    return Training(words, os.fspath(out), detach, environment)
