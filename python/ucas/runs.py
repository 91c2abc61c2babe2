"""A run directory (docs/formats.md of the sources) as pandas frames. A run that is still going may be read: a last line that is not whole yet
is left out."""
import functools
import json
import os
import re
import tomllib

from ._ucas import Error

_STEP = re.compile(r"step-(\d{7})\.jsonl$")


def _lines(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    whole = [line for line in lines[:-1] if line]  # what follows the last newline is being written
    try:
        return [json.loads(line) for line in whole]
    except ValueError as error:
        raise Error(f"{path}: not a file of JSON lines ({error})") from None


class Run:
    """What `read` gives; each part is read when it is asked for, and empty where the run lacks it."""

    def __init__(self, path):
        self.path = os.fspath(path)
        if not any(os.path.exists(self._of(name)) for name in ("steps.jsonl", "sft.jsonl", "env.json", "eval")):
            raise Error(f"{self.path}: not a run directory: neither steps.jsonl, sft.jsonl, env.json nor eval/ is there")

    def __repr__(self):
        return f"Run({self.path!r})"

    def _of(self, *names):
        return os.path.join(self.path, *names)

    def _frame(self, *names, index=None):
        import pandas

        path = self._of(*names)
        frame = pandas.DataFrame(_lines(path) if os.path.exists(path) else [])
        return frame.set_index(index) if index in frame else frame

    @functools.cached_property
    def config(self):
        """Settings as resolved, a dict of tables; {} where nothing was trained."""
        path = self._of("config.toml")
        if not os.path.exists(path):
            return {}
        with open(path, "rb") as file:
            return tomllib.load(file)

    @functools.cached_property
    def env(self):
        """Version, machine, title."""
        path = self._of("env.json")
        if not os.path.exists(path):
            return {}
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    @functools.cached_property
    def steps(self):
        """A row a step, indexed by it, with every logged number (docs/metrics.md) as a column."""
        return self._frame("steps.jsonl", index="training/global_step")

    @functools.cached_property
    def sft(self):
        """A row a step of supervised training."""
        return self._frame("sft.jsonl", index="step")

    @functools.cached_property
    def rollouts(self):
        """Sampled responses that were kept, of all steps, with the column `step`."""
        import pandas

        names = os.listdir(self._of("rollouts")) if os.path.isdir(self._of("rollouts")) else []
        frames = []
        for name in sorted(name for name in names if _STEP.match(name)):
            frame = self._frame("rollouts", name)
            frame["step"] = int(_STEP.match(name)[1])
            frames.append(frame)
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    @functools.cached_property
    def evaluations(self):
        """Figures of each evaluation by its name, as eval/NAME.json has them."""
        names = sorted(os.listdir(self._of("eval"))) if os.path.isdir(self._of("eval")) else []
        found = {}
        for name in names:
            if name.endswith(".json") and not name.endswith(".card.json"):
                with open(self._of("eval", name), encoding="utf-8") as file:
                    found[name[:-len(".json")]] = json.load(file)
        return found

    def problems(self, evaluation):
        """A row a problem of an evaluation."""
        return self._frame("eval", f"{evaluation}.jsonl")

    def outputs(self, evaluation):
        """A row a response of an evaluation."""
        return self._frame("eval", f"{evaluation}.outputs.jsonl")


def read(run):
    """A run directory as frames: `.steps`, `.sft`, `.rollouts`, `.evaluations`, `.problems(NAME)`, `.outputs(NAME)`, `.config`, `.env`.

    Needs pandas (`pip install ucas[runs]`).
    """
    return Run(run)
