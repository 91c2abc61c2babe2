"""A run's log to a tracker, from outside the run, which it can therefore never stop:

    python -m ucas.track RUN --to wandb|mlflow|trackio [--project NAME] [--name NAME]

Sends the settings and every step that is in steps.jsonl. Where and as whom is the tracker's own business (its environment variables).
"""
import argparse
import importlib
import math
import os
import re
import sys

from ._ucas import Error
from .runs import Run, _lines

TRACKERS = ("wandb", "mlflow", "trackio")


def flat(table, prefix=""):
    """{"method": {"name": "ucas"}} as {"method.name": "ucas"}."""
    found = {}
    for key, value in table.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return found


def numbers(row):
    return {key: value for key, value in row.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)}


def send(run, to, project="ucas", name=None):
    """Sends the steps of a run; how many."""
    run = Run(run)
    path = os.path.join(run.path, "steps.jsonl")
    rows = _lines(path) if os.path.exists(path) else []
    if not rows:
        raise Error(f"{path}: no step yet, nothing to send")
    try:
        tracker = importlib.import_module(to)
    except ImportError:
        raise Error(f"{to} is not installed: pip install {to}") from None
    name, settings = name or os.path.basename(os.path.abspath(run.path)), flat(run.config)
    step = "training/global_step"
    if to == "mlflow":
        tracker.set_experiment(project)
        with tracker.start_run(run_name=name):
            for key, value in settings.items():
                tracker.log_param(key, str(value)[:500])
            for row in rows:  # mlflow's names know no @
                tracker.log_metrics({re.sub(r"[^\w\-./ ]", "_at_", key): value for key, value in numbers(row).items()}, step=row[step])
        return len(rows)
    tracker.init(project=project, name=name, config=settings)
    for row in rows:
        tracker.log(numbers(row), step=row[step])
    tracker.finish()
    return len(rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m ucas.track", description="Sends a run's log to a tracker.")
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--to", required=True, choices=TRACKERS)
    parser.add_argument("--project", default="ucas")
    parser.add_argument("--name", help="of the run there; else that of the directory")
    given = parser.parse_args(arguments)
    try:
        print(f"{send(given.run, given.to, given.project, given.name)} steps sent to {given.to}")
    except Error as error:
        print(f"ucas.track: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
