"""ucas.read and ucas.track on a run directory as `ucas train` and `ucas evaluate` write it. Needs pandas; trackers are stand-ins
here, tests/test_integrations.py has the real ones."""
import json
import os
import sys
import tempfile
import unittest

import ucas
from ucas import track


def write(folder, files):
    for name, content in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content))


def example(folder):
    figure = {"value": 0.5, "low": 0.1, "high": 0.9}
    signal = {"sample": 0, "score": 1, "verdict": "equal", "token": [7, 8], "old_logprob": [-0.5, "nan"], "trace/l_hat": [0, 1],
              "trace/W": 1.25}
    write(folder, {
        "config.toml": 'seed = 3\n[method]\nname = "ucas"\nbeta = 0.01\n',
        "env.json": json.dumps({"version": "0.1.0", "started": "2026-01-31T12:00:00Z"}),
        "steps.jsonl": '{"training/global_step": 0, "val-core/dev/acc/mean@1": 0.25}\n'
                       '{"training/global_step": 1, "actor/entropy": 2.5, "actor/lr": null}\n{"training/global_st',
        "rollouts/step-0000001.jsonl": [{"step": 1, "problem": "p", "response": "4", "verdict": "equal"}],
        "signals/step-0000001.jsonl": [{"format": "ucas-signals-1", "step": 1}, {"problem": "p", "index": 0, "responses": 1}, signal],
        "eval/test.json": json.dumps({"label": "a", "step": 1, "problems": 2, "greedy": {"pass@1": figure},
                                      "pass@k": [{"k": 8, **figure}], "by_source": {"s": {"problems": 2, "greedy": {"pass@1": figure}}}}),
        "eval/test.card.json": "{}",
        "eval/test.outputs.jsonl": [{"format": "ucas-outputs-1"}, {"source": "s", "id": "1", "sample": -1, "text": "4"}],
    })


class Tracker:
    """What `track` asks of a tracker."""

    def __init__(self, last=None):
        self.last, self.logged, self.ended = last, [], False

    def log(self, metrics, step):
        self.logged.append((step, metrics))

    def end(self):
        self.ended = True


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        example(self.folder)
        self.run_ = ucas.read(self.folder)

    def test_a_line_that_is_being_written_is_left_out(self):
        steps = self.run_.steps
        self.assertEqual(list(steps.index), [0, 1])
        self.assertEqual(steps.loc[1, "actor/entropy"], 2.5)
        self.assertTrue(steps["actor/lr"].isna().all())

    def test_config_and_machine_are_dicts(self):
        self.assertEqual(self.run_.config["method"]["beta"], 0.01)
        self.assertEqual(self.run_.env["version"], "0.1.0")

    def test_signals_have_a_row_a_token(self):
        signals = self.run_.signals(1)
        self.assertEqual(list(signals["token"]), [7, 8])
        self.assertEqual(list(signals["position"]), [0, 1])
        self.assertTrue(signals["old_logprob"].isna()[1])
        self.assertEqual(list(signals["trace/W"]), [1.25, 1.25])
        self.assertEqual(list(signals["problem"]), ["p", "p"])
        with self.assertRaisesRegex(ucas.Error, "no signals of step 2; there are some of \\[1\\]"):
            self.run_.signals(2)

    def test_evaluations_have_their_figures_with_intervals_and_by_source(self):
        found = self.run_.evaluations
        self.assertEqual(list(found["source"]), ["", "s"])
        self.assertEqual(found.loc[0, "greedy/pass@1/high"], 0.9)
        self.assertEqual(found.loc[0, "pass@8"], 0.5)
        self.assertEqual(self.run_.evaluation_names, ["test"])
        self.assertEqual(len(self.run_.responses("test")), 1)
        self.assertEqual(self.run_.rollouts()["verdict"][0], "equal")

    def test_what_is_absent_is_empty_and_what_is_no_run_is_refused(self):
        write(self.folder, {"bare/config.toml": ""})
        bare = ucas.read(os.path.join(self.folder, "bare"))
        self.assertEqual(len(bare.steps) + len(bare.evaluations) + len(bare.rollouts()) + len(bare.sft), 0)
        for path in ("eval", "missing"):
            with self.assertRaises(ucas.Error):
                ucas.read(os.path.join(self.folder, path))

    def test_a_damaged_line_is_named(self):
        write(self.folder, {"steps.jsonl": '{"a": 1}\n{"a": \n'})
        with self.assertRaisesRegex(ucas.Error, "steps.jsonl:2: not JSON"):
            self.run_.steps

    def test_a_tracker_gets_each_step_once_and_no_more_than_it_lacks(self):
        tracker = Tracker()
        self.assertEqual(track.send(self.run_, tracker), 2)
        self.assertEqual(tracker.logged, [(0, {"val-core/dev/acc/mean@1": 0.25}), (1, {"actor/entropy": 2.5})])
        self.assertTrue(tracker.ended)
        again = Tracker(last=0)
        self.assertEqual(track.send(self.run_, again), 1)
        self.assertEqual([step for step, _ in again.logged], [1])

    def test_following_sends_what_comes_and_ends_when_nothing_does(self):
        tracker, waits = Tracker(), []

        def sleep(seconds):
            waits.append(seconds)
            if len(waits) == 1:
                with open(os.path.join(self.folder, "steps.jsonl"), "a", encoding="utf-8") as file:
                    file.write('ep": 2, "x": 1}\n')

        self.assertEqual(track.send(self.run_, tracker, follow=20, sleep=sleep), 3)
        self.assertEqual(tracker.logged[-1], (2, {"x": 1}))
        self.assertLess(len(waits), 10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
