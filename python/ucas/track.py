"""Sends a run's figures to a tracker: `python -m ucas.track RUN --to wandb|mlflow|trackio|tensorboard`.

It reads RUN/steps.jsonl in a process of its own: a tracker that is slow, down or missing cannot stop a training. It may be called again, during
the run (--follow) or after it, and sends what the tracker lacks. Where a tracker stores and
how it signs in is the tracker's own affair (WANDB_MODE, WANDB_API_KEY, MLFLOW_TRACKING_URI, TRACKIO_DIR ...); nothing of that is read or
stored here. The file needs nothing of this package.
"""
import argparse
import hashlib
import json
import os
import re
import sys
import time
import tomllib

try:
    from ._ucas import Error
except ImportError:  # as a file alone
    class Error(ValueError):
        """What a user can mend."""

_STEP = "training/global_step"
_POLL = 5.0  # seconds between looks at a run that is followed


class Recorded:
    """What a tracker needs of a run directory."""

    def __init__(self, path):
        self.path = path
        if not os.path.isdir(path) or not os.path.exists(os.path.join(path, "config.toml")):
            raise Error(f"{path}: no config.toml there; expected a run directory, as ucas train writes them")
        with open(os.path.join(path, "config.toml"), "rb") as file:
            self.config = tomllib.load(file)
        try:
            with open(os.path.join(path, "env.json"), encoding="utf-8") as file:
                self.env = json.load(file)
        except OSError:
            self.env = {}

    def metrics(self):
        """The rows of steps.jsonl; a last line without its newline is one that is being written."""
        path = os.path.join(self.path, "steps.jsonl")
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith("\n"):
                    return
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise Error(f"{path}:{number}: not JSON ({error}); the file was changed or cut") from None


def _flat(settings, prefix=""):
    flat = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def identity(run):
    """The same for the same run, wherever its directory was moved to: of its settings and the moment it started."""
    text = repr((run.env.get("started"), sorted(_flat(run.config).items(), key=str)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Wandb:
    def __init__(self, run, project, name):
        import wandb

        self.run = wandb.init(project=project, name=name, id=identity(run), resume="allow", config=_flat(run.config))
        self.last = self.run.step - 1 if self.run.step else None

    def log(self, metrics, step):
        self.run.log(metrics, step=step)

    def end(self):
        self.run.finish()


class Mlflow:
    def __init__(self, run, project, name):
        import mlflow

        self.client = mlflow.MlflowClient()
        found = self.client.get_experiment_by_name(project)
        experiment = found.experiment_id if found else self.client.create_experiment(project)
        known = self.client.search_runs([experiment], f"tags.ucas_run = '{identity(run)}'")
        self.id = (known[0] if known else self.client.create_run(experiment, tags={"ucas_run": identity(run)}, run_name=name)).info.run_id
        sent = self.client.get_metric_history(self.id, _STEP)
        self.last = max((metric.step for metric in sent), default=None)
        if not known:
            for key, value in _flat(run.config).items():
                self.client.log_param(self.id, key, str(value)[:6000])

    def log(self, metrics, step):
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        named = {re.sub(r"[^\w./: -]", "_at_", key): value for key, value in metrics.items()}  # it takes no mean@16
        self.client.log_batch(self.id, [Metric(key, float(value), now, step) for key, value in {**named, _STEP: step}.items()])

    def end(self):
        self.client.set_terminated(self.id)


class Trackio:
    def __init__(self, run, project, name):
        import trackio

        self.trackio, name = trackio, f"{name}-{identity(run)[:8]}"
        self.last = self._sent(project, name)
        self.run = trackio.init(project=project, name=name, resume="allow", config=_flat(run.config), embed=False)

    def _sent(self, project, name):
        try:
            history = self.trackio.Api().runs(project)
            rows = next((one.history() for one in history if one.name == name), [])
        except (AttributeError, ValueError, KeyError, StopIteration):
            return None
        steps = [row["step"] for row in rows if row.get("step") is not None]
        return max(steps, default=None)

    def log(self, metrics, step):
        self.trackio.log(metrics, step=step)

    def end(self):
        self.trackio.finish()


class Tensorboard:
    """Event files in RUN/tensorboard by the package tensorboard. Each start sends all steps, and says that what was known before is void."""

    def __init__(self, run, project, name):
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self.event, self.summary, self.last = event_pb2.Event, summary_pb2.Summary, None
        self.writer = EventFileWriter(os.path.join(run.path, "tensorboard"), filename_suffix=".track")
        self.writer.add_event(self.event(wall_time=time.time(), step=0, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)))

    def log(self, metrics, step):
        values = [self.summary.Value(tag=key, simple_value=float(value)) for key, value in metrics.items()]
        self.writer.add_event(self.event(wall_time=time.time(), step=step, summary=self.summary(value=values)))

    def end(self):
        self.writer.close()


TRACKERS = {"wandb": Wandb, "mlflow": Mlflow, "trackio": Trackio, "tensorboard": Tensorboard}


def send(run, tracker, follow=0, sleep=time.sleep):
    """Sends the steps that the tracker lacks (those after `tracker.last`) and ends it; their number. follow: goes on until the run has
    written nothing for so many seconds."""
    last, sent, idle = tracker.last, 0, 0.0
    try:
        while True:
            new = [row for row in run.metrics() if _STEP in row and (last is None or row[_STEP] > last)]
            for row in new:
                metrics = {key: value for key, value in row.items() if key != _STEP and isinstance(value, (int, float))}
                tracker.log(metrics, row[_STEP])
                last, sent, idle = row[_STEP], sent + 1, 0.0
            if idle >= follow:
                return sent
            sleep(_POLL)
            idle += _POLL
    finally:
        tracker.end()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m ucas.track", description=__doc__.split("\n")[0])
    parser.add_argument("run", help="run directory of ucas train")
    parser.add_argument("--to", required=True, choices=sorted(TRACKERS), help="an installed tracker")
    parser.add_argument("--project", default="ucas", help="where the tracker files it (mlflow: experiment)")
    parser.add_argument("--name", help="its name there; the directory's, if not given")
    parser.add_argument("--follow", type=float, default=0, metavar="SECONDS",
                        help="go on until the run has written nothing for so long; 0: send what is there")
    asked = parser.parse_args(arguments)
    try:
        run = Recorded(asked.run)
        name = asked.name or os.path.basename(os.path.abspath(asked.run))
        sent = send(run, TRACKERS[asked.to](run, asked.project, name), asked.follow)
    except Error as error:
        parser.exit(2, f"ucas.track: {error}\n")
    except ImportError as error:
        parser.exit(2, f"ucas.track: {asked.to} is not installed here ({error}): pip install {asked.to}\n")
    print(f"{asked.run}: {sent} steps sent to {asked.to}")


if __name__ == "__main__":
    sys.exit(main())
