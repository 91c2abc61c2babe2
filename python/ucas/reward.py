"""Rewards by a Python function, for `ucas train --reward.python FILE.py:FUNCTION`: the program starts this file and asks it, batch by batch.

Known by the names of its parameters is a function of
  verl   compute_score(data_source, solution_str, ground_truth, extra_info=None) -> number, or {"score": number, ...}
  verl   compute_score(data_sources, solution_strs, ground_truths, extra_infos) -> list of them, for a whole batch
  TRL    reward(completions, prompts=.., answer=.., **kwargs) -> list of numbers, for a whole batch
A function of TRL may be async. What it prints goes to standard error, and an exception ends the training with its traceback there and the
last checkpoint kept. Needs nothing but Python's own library.
"""
import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback


class Unusable(Exception):
    """Said in one line, without a traceback: no such function, or no number from it."""


def load(place):
    """The function at FILE.py:NAME, package.module:NAME or package.module.NAME."""
    sys.path.insert(0, os.getcwd())
    module, colon, name = place.rpartition(":")
    if not colon:
        module, _, name = place.rpartition(".")
    if not module or not name:
        raise Unusable(f"{place}: expected FILE.py:FUNCTION or package.module.function")
    if module.endswith(".py"):
        if not os.path.isfile(module):
            raise Unusable(f"{place}: no such file as {module}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        spec = importlib.util.spec_from_file_location(os.path.basename(module)[:-3], module)
        found = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
    else:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise Unusable(f"{place}: {error}") from None
    function = getattr(found, name, None)
    if not callable(function):
        known = [key for key, value in vars(found).items() if callable(value) and not key.startswith("_")]
        raise Unusable(f"{place}: {module} has no function {name}; it has {', '.join(known) or 'none'}")
    return function


def _truth(row):
    gold = row["answer"]
    return gold[0] if len(gold) == 1 else gold


def _extra(row):
    return {"index": row["problem"], "tokens": row["tokens"], "finished": row["finished"], "verdict": row["verdict"], "question": row["prompt"]}


def _columns(rows):
    """What TRL gives besides completions: the columns of the data set, by the names that data sets have."""
    truths = [_truth(row) for row in rows]
    return {"prompts": [row["prompt"] for row in rows], "answer": truths, "ground_truth": truths, "solution": truths,
            "data_source": [row["source"] for row in rows], "source": [row["source"] for row in rows], "id": [row["problem"] for row in rows],
            "tokens": [row["tokens"] for row in rows], "finished": [row["finished"] for row in rows], "verdict": [row["verdict"] for row in rows]}


def caller(function, place):
    """rows -> what the function gives for them, as it wants to be called."""
    parameters = inspect.signature(function).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    def call(**arguments):
        given = function(**{key: value for key, value in arguments.items() if takes_all or key in parameters})
        return asyncio.run(given) if inspect.isawaitable(given) else given

    if "solution_strs" in parameters:
        return lambda rows: call(data_sources=[row["source"] for row in rows], solution_strs=[row["response"] for row in rows],
                                 ground_truths=[_truth(row) for row in rows], extra_infos=[_extra(row) for row in rows])
    if "solution_str" in parameters:
        return lambda rows: [call(data_source=row["source"], solution_str=row["response"], ground_truth=_truth(row), extra_info=_extra(row))
                             for row in rows]
    if "completions" in parameters:
        return lambda rows: call(completions=[row["response"] for row in rows], **_columns(rows))
    raise Unusable(f"{place}: its parameters are {', '.join(parameters) or 'none'}; expected solution_str and ground_truth (verl), "
                   "solution_strs (verl, batches) or completions (TRL)")


def reply(row, given, place):
    """{"id", "score"} of what a function gave for one response, and a reason where it says one."""
    answer = {"id": row["id"]}
    score = given
    if isinstance(given, dict):
        score = given.get("score")
        if isinstance(given.get("acc"), bool):
            answer["right"] = given["acc"]
        answer["reason"] = ", ".join(f"{key} {value}" for key, value in given.items() if key != "score")[:200]
    try:
        number = math.nan if score is None else float(score)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise Unusable(f"{place}: gave {score!r} for the response to {row['problem']}; expected a finite number")
    return answer | {"score": number}


def serve(score, place, lines, write):
    """Answers batches until the input ends. Each row says how many its batch has."""
    batch = []
    for line in lines:
        batch.append(json.loads(line))
        if len(batch) < batch[0]["batch"]:
            continue
        given = list(score(batch))
        if len(given) != len(batch):
            raise Unusable(f"{place}: gave {len(given)} scores for {len(batch)} responses")
        write("".join(json.dumps(reply(row, one, place)) + "\n" for row, one in zip(batch, given)))
        batch = []


def main(arguments):
    place = arguments[0]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the function prints is no reply
    sys.stdout = sys.stderr

    def write(text):
        replies.write(text)
        replies.flush()

    try:
        serve(caller(load(place), place), place, sys.stdin, write)
    except Unusable as error:
        print(f"reward.python {error}", file=sys.stderr)
        return 2
    except Exception:
        print(f"reward.python {place}: an exception, and no response of this step is scored:", file=sys.stderr)
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
