"""Does TensorBoard read what a training wrote? RUN/tensorboard by TensorBoard's own reader, and by tbparse where it is installed,
against RUN/steps.jsonl: the same names, the same steps, each once, the same numbers as floats.

    pip install tensorboard tbparse
    tools/check_tensorboard.py RUN       # of a training with --train.tensorboard true, best one that was resumed
"""
import json
import math
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def as_float(value):
    return math.nan if value is None else struct.unpack("f", struct.pack("f", value))[0]


def expected(run):
    numbers = {}
    with open(f"{run}/steps.jsonl", encoding="utf-8") as file:
        for row in map(json.loads, file):
            for name, value in row.items():
                numbers.setdefault(name, []).append((row["training/global_step"], as_float(value)))
    return numbers


def by_tensorboard(run):
    events = EventAccumulator(f"{run}/tensorboard", size_guidance={"scalars": 0, "tensors": 0}).Reload()
    return {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}


def by_tbparse(run):
    from tbparse import SummaryReader

    numbers = {}
    for row in SummaryReader(f"{run}/tensorboard").scalars.itertuples():
        numbers.setdefault(row.tag, []).append((row.step, row.value))
    return numbers


def differences(expected, found):
    yield from sorted(expected.keys() ^ found.keys())
    for name in expected.keys() & found.keys():
        same = [a[0] == b[0] and (a[1] == b[1] or math.isnan(a[1])) for a, b in zip(expected[name], found[name])]
        if len(expected[name]) != len(found[name]) or not all(same):
            yield f"{name}: {expected[name][:3]} .. of steps.jsonl, {found[name][:3]} .. here"


def main(run):
    numbers, wrong = expected(run), 0
    for reader in (by_tensorboard, by_tbparse):
        try:
            found = reader(run)
        except ImportError:
            print(f"{reader.__name__}: not installed, left out")
            continue
        problems = list(differences(numbers, found))
        wrong += len(problems)
        print(f"{reader.__name__}: {len(found)} names, {sum(map(len, found.values()))} numbers, {len(problems)} differences")
        print("\n".join(problems[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
