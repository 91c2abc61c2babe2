"""What a run directory holds, as pandas frames: `ucas.read(RUN)`. Reads docs/formats.md's files and writes nothing."""
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._ucas import Error

if TYPE_CHECKING:
    import pandas

_STEP = "training/global_step"


def _lines(path: str, growing: bool = False) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file. growing: a last line without its newline is one that was being written, and is left out."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if growing and not line.endswith("\n"):
                return
            try:
                row = json.loads(line)
            except ValueError as error:
                raise Error(f"{path}:{number}: not JSON ({error}); the file was changed or cut") from None
            if not isinstance(row, dict):
                raise Error(f"{path}:{number}: expected an object")
            yield row


def _object(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise Error(f"{path}: not JSON ({error})") from None


def _frame(rows: Iterable[dict[str, Any]], columns: Iterable[str] = ()) -> "pandas.DataFrame":
    try:
        import pandas
    except ImportError:
        raise Error("frames need pandas, which is not here: pip install 'ucas[runs]'") from None
    rows = list(rows)
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=list(columns))


def _flat(figures: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"greedy": {"pass@1": {"value", "low", "high"}}, "pass@k": [..]} as {"greedy/pass@1": .., "pass@8/low": ..}."""
    flat: dict[str, Any] = {}
    for key, value in figures.items():
        name = prefix + key
        if isinstance(value, dict) and "value" in value:
            flat |= {name: value["value"], name + "/low": value.get("low"), name + "/high": value.get("high")}
        elif isinstance(value, dict) and key not in ("by_source", "calibration"):
            flat |= _flat(value, name + "/")
        elif isinstance(value, list) and value and all(isinstance(one, dict) and "k" in one for one in value):
            for one in value:
                flat |= _flat({name.replace("@k", f"@{one['k']}"): {k: v for k, v in one.items() if k != "k"}})
        elif not isinstance(value, (dict, list)):
            flat[name] = value
    return flat


class Run:
    """One run directory; a part that is absent is an empty frame or dict. Frames are read when asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            raise Error(f"{self.path}: expected a run directory, as ucas train and ucas evaluate write them")
        if not self._there("steps.jsonl", "sft.jsonl", "env.json", "config.toml", "eval"):
            raise Error(f"{self.path}: none of steps.jsonl, sft.jsonl, env.json, config.toml, eval/ is in it: no run directory")

    def __repr__(self) -> str:
        return f"<ucas run {self.path!r}>"

    def _there(self, *names: str) -> bool:
        return any(os.path.exists(os.path.join(self.path, name)) for name in names)

    def _file(self, *parts: str) -> str | None:
        path = os.path.join(self.path, *parts)
        return path if os.path.isfile(path) else None

    def _listed(self, folder: str, pattern: str) -> list[re.Match[str]]:
        path = os.path.join(self.path, folder)
        names = sorted(os.listdir(path)) if os.path.isdir(path) else []
        return [match for match in map(re.compile(pattern).fullmatch, names) if match]

    @property
    def config(self) -> dict[str, Any]:
        """config.toml: every option as resolved."""
        if not (path := self._file("config.toml")):
            return {}
        with open(path, "rb") as file:
            try:
                return tomllib.load(file)
            except tomllib.TOMLDecodeError as error:
                raise Error(f"{path}: not TOML ({error})") from None

    @property
    def env(self) -> dict[str, Any]:
        """env.json: version, machine, what was trained on."""
        return _object(path) if (path := self._file("env.json")) else {}

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of steps.jsonl as dicts, also while the run goes on."""
        return list(_lines(path, growing=True)) if (path := self._file("steps.jsonl")) else []

    @property
    def steps(self) -> "pandas.DataFrame":
        """One row a step, indexed by step; columns are the names of docs/metrics.md, nan where a step has not all of them."""
        frame = _frame(self.metrics(), [_STEP])
        return frame.set_index(_STEP)

    @property
    def sft(self) -> "pandas.DataFrame":
        """One row an SFT step: step, phase, loss, lr, grad_norm, tokens."""
        return _frame(_lines(path, growing=True) if (path := self._file("sft.jsonl")) else [])

    @property
    def stored_steps(self) -> dict[str, list[int]]:
        """Steps of which responses (`rollouts`) and of which all signals (`signals`) are kept."""
        return {folder: [int(m[1]) for m in self._listed(folder, r"step-(\d+)\.jsonl")] for folder in ("rollouts", "signals")}

    def rollouts(self, step: int | None = None) -> "pandas.DataFrame":
        """Stored responses of a step, or of all: step, problem, sample, prompt, response, verdict, reward, advantage_mean ..."""
        kept = self.stored_steps["rollouts"]
        if step is not None and step not in kept:
            raise Error(f"{self.path}: no responses of step {step}; there are some of {kept}")
        return _frame(row for s in (kept if step is None else [step])
                      for row in _lines(os.path.join(self.path, "rollouts", f"step-{s:07d}.jsonl")))

    def signals(self, step: int) -> "pandas.DataFrame":
        """All that methods read of a step, a row a token: problem, sample, position, token, old_logprob, entropy, confidence, logit,
        advantage, what the method recorded (trace/W ...), and the response's score, reward and verdict."""
        if step not in (kept := self.stored_steps["signals"]):
            raise Error(f"{self.path}: no signals of step {step}; there are some of {kept} (train.stored_signals)")
        path = os.path.join(self.path, "signals", f"step-{step:07d}.jsonl")
        rows, problem = [], None
        for line in list(_lines(path))[1:]:
            if "responses" in line:
                problem = line["problem"]
                continue
            length = len(line["token"])
            one_each = {key: value for key, value in line.items() if not isinstance(value, (list, dict))}
            a_token = {key: value for key, value in line.items() if isinstance(value, list) and len(value) == length}
            a_token = {key: [float(v) if v in ("nan", "inf", "-inf") else v for v in value] for key, value in a_token.items()}
            rows += [{"problem": problem, **one_each, "position": t, **{key: value[t] for key, value in a_token.items()}}
                     for t in range(length)]
        return _frame(rows)

    @property
    def evaluation_names(self) -> list[str]:
        """Evaluations of eval/, as the methods below take them."""
        return [match[1] for match in self._listed("eval", r"(.+?)(?<!\.card)\.json")]

    @property
    def evaluations(self) -> "pandas.DataFrame":
        """One row an evaluation: name, label, step, problems, and every figure with its interval (greedy/pass@1, .../low, .../high,
        mean@16, pass@64 ...); by source, with source "" for all problems together."""
        rows = []
        for name in self.evaluation_names:
            whole = _object(os.path.join(self.path, "eval", name + ".json"))
            about = {"name": name, **{key: whole.get(key) for key in ("label", "model", "suite", "step")}}
            rows.append({**about, "source": "", **_flat({k: v for k, v in whole.items() if k not in about})})
            rows += [{**about, "source": source, **_flat(figures)} for source, figures in (whole.get("by_source") or {}).items()]
        return _frame(rows)

    def problems(self, name: str) -> "pandas.DataFrame":
        """One row a problem of an evaluation: id, source, problem, gold, samples, correct, greedy (a dict) ..."""
        return _frame(_lines(self._evaluation(name, ".jsonl")))

    def responses(self, name: str) -> "pandas.DataFrame":
        """Every response of an evaluation: source, id, sample (-1: greedy), text, ids, finished, logprob ..."""
        lines = _lines(self._evaluation(name, ".outputs.jsonl"))
        next(lines, None)  # what decides the responses
        return _frame(lines)

    def _evaluation(self, name: str, end: str) -> str:
        if not (path := self._file("eval", name + end)):
            raise Error(f"{self.path}: no evaluation {name}{end}; there are {', '.join(self.evaluation_names) or 'none'}")
        return path


def read(path: str | os.PathLike[str]) -> Run:
    """The run directory `path` as a `Run`: its steps, responses and evaluations as pandas frames, its config and machine as dicts.

        run = ucas.read("runs/x")
        run.steps["critic/rewards/mean"].plot()
        run.evaluations[["name", "source", "greedy/pass@1"]]
    """
    return Run(path)
