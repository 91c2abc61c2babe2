"""Rewards by a Python function, for `ucas train --reward.python FILE.py:FUNCTION`: the program starts this file and asks it, batch by batch.

    FUNCTION              answers batches of lines of reward.command
    check FUNCTION ROW..  loads it and calls it once with rows of the data

Known by the names of its parameters is a function of
  verl   compute_score(data_source, solution_str, ground_truth, extra_info=None) -> number, or {"score": number, ...}
  verl   compute_score(data_sources, solution_strs, ground_truths, extra_infos) -> list of them, for a whole batch
  TRL    reward(completions, prompts=.., COLUMN=.., **kwargs) -> list of numbers, for a whole batch
Each gets what TRL and verl give it: every column of the data by its name, completions as messages where the data's prompt is a list of
messages; the row's own extra_info. None leaves a response out of its group. A function of TRL may be async. What it prints goes to standard error, and an exception ends the training
with its traceback there and the last checkpoint kept. Needs nothing but Python's own library.
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
        found = sys.modules.get(spec.name)
        if getattr(found, "__file__", None) != spec.origin:  # a file is run once, whatever is taken from it
            found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
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
    """verl's as the data have it, of any type; else the right answers as texts."""
    own = row.get("row", {}).get("reward_model")
    if isinstance(own, dict) and own.get("ground_truth") is not None:
        return own["ground_truth"]
    gold = row["answer"]
    return gold[0] if len(gold) == 1 else gold


def _extra(row):
    """The row's own extra_info; beside it what this program knows."""
    own = row.get("row", {}).get("extra_info")
    known = {"index": row["problem"], "tokens": row["tokens"], "finished": row["finished"], "verdict": row["verdict"], "question": row["prompt"]}
    return known | own if isinstance(own, dict) else known


_QUESTIONS = ("prompt", "messages", "problem", "question")


def _messages(row):
    """The prompt of conversational data, else None."""
    for key in _QUESTIONS:
        value = row.get("row", {}).get(key)
        if isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value):
            return value
    return None


def _columns(rows, state):
    """What TRL gives besides completions: the columns of the data set, by their names, and what a trainer says of itself."""
    truths, sources = [_truth(row) for row in rows], [row["source"] for row in rows]
    given = {"answer": truths, "ground_truth": truths, "solution": truths, "data_source": sources, "source": sources, "id": [row["problem"] for row in rows],
             "tokens": [row["tokens"] for row in rows], "finished": [row["finished"] for row in rows], "verdict": [row["verdict"] for row in rows]}
    for key in dict.fromkeys(key for row in rows for key in row.get("row", {})):
        given[key] = [row.get("row", {}).get(key) for row in rows]
    chats = [_messages(row) for row in rows]
    for key in ("prompt", "completion"):  # TRL takes these two for itself
        given.pop(key, None)
    return given | {"prompts": [chat or row["prompt"] for chat, row in zip(chats, rows)],
                    "completions": [[{"role": "assistant", "content": row["response"]}] if chat else row["response"] for chat, row in zip(chats, rows)],
                    "completion_ids": [row.get("ids", []) for row in rows], **state}


class State:
    """trainer_state of TRL as far as it is known here: how many batches have been asked."""
    global_step = 0


def caller(function, place):
    """rows -> [(arguments, whether of one row)]: how the function wants to be called."""
    parameters = inspect.signature(function).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    def wanted(arguments):
        return {key: value for key, value in arguments.items() if takes_all or key in parameters}

    if "solution_strs" in parameters:
        return lambda rows, state: [(wanted({"data_sources": [row["source"] for row in rows], "solution_strs": [row["response"] for row in rows],
                                             "ground_truths": [_truth(row) for row in rows], "extra_infos": [_extra(row) for row in rows]}), rows)]
    if "solution_str" in parameters:
        return lambda rows, state: [(wanted({"data_source": row["source"], "solution_str": row["response"], "ground_truth": _truth(row),
                                             "extra_info": _extra(row)}), row) for row in rows]
    if parameters.keys() & {"completions", "completion_ids"}:
        return lambda rows, state: [(wanted(_columns(rows, state)), rows)]
    raise Unusable(f"{place}: its parameters are {', '.join(parameters) or 'none'}; expected solution_str and ground_truth (verl), "
                   "solution_strs (verl, batches) or completions (TRL)")


def fit(function, calls, place):
    """Refuses a function that asks for what the data do not have."""
    for arguments, row in calls:
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            columns = (row if isinstance(row, dict) else row[0]).get("row", {})
            raise Unusable(f"{place}: {error}; the data have the columns {', '.join(columns) or '(none)'}") from None


def scorer(function, place):
    calls_of, state = caller(function, place), State()

    def score(rows):
        notes = [[] for _ in rows]

        def log_extra(name, values):
            for note, value in zip(notes, values):
                note.append(f"{name} {value}")

        calls = calls_of(rows, {"trainer_state": state, "log_extra": log_extra, "log_metric": lambda name, value: print(f"{place}: {name} {value}")})
        fit(function, calls, place)
        given = []
        for arguments, row in calls:
            try:
                said = function(**arguments)
                said = asyncio.run(said) if inspect.isawaitable(said) else said
            except Exception:
                named = row["problem"] if isinstance(row, dict) else f"{row[0]['problem']} and {len(row) - 1} more"
                print(f"reward.python {place}: an exception for the responses to {named}:", file=sys.stderr)
                raise
            if not isinstance(row, dict) and isinstance(said, (str, bytes, set, frozenset, dict)):
                raise Unusable(f"{place}: gave a {type(said).__name__}; expected a list with a number for each response")
            given += [said] if isinstance(row, dict) else list(said)
        state.global_step += 1
        return given, notes

    return score


def reply(row, given, notes, place):
    """{"id", "score"} of what a function gave for one response, and a reason where it says one."""
    answer = {"id": row["id"]} | ({"reason": ", ".join(notes)[:200]} if notes else {})
    score = given
    if given is None:
        return answer | {"score": None}
    if isinstance(given, dict):
        score = given.get("score")
        if isinstance(given.get("acc"), bool):
            answer["right"] = given["acc"]
        answer["reason"] = ", ".join(f"{key} {value}" for key, value in given.items() if key != "score")[:200]
    try:
        number = math.nan if isinstance(score, (str, bytes)) else float(score)
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
        write(answers(score, batch, place))
        batch = []


def answers(score, batch, place):
    given, notes = score(batch)
    if len(given) != len(batch):
        raise Unusable(f"{place}: gave {len(given)} scores for {len(batch)} responses")
    return "".join(json.dumps(reply(row, one, note, place)) + "\n" for row, one, note in zip(batch, given, notes))


def check(place, rows):
    """A call before there is a model, on responses that hold the right answer."""
    batch = [json.loads(row) for row in rows]
    try:
        answers(scorer(load(place), place), batch, place)
    except Unusable as error:
        sys.exit(str(error).removeprefix(f"{place}: "))
    except Exception as error:
        traceback.print_exc()
        sys.exit(f"raises {type(error).__name__}: {error} when called with {', '.join(row['problem'] for row in batch)} of the data, before the first step")


def main(arguments):
    if arguments[0] == "check":
        return check(arguments[1], arguments[2:])
    place = arguments[0]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the function prints is no reply
    sys.stdout = sys.stderr

    def write(text):
        replies.write(text)
        replies.flush()

    try:
        serve(scorer(load(place), place), place, sys.stdin, write)
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
