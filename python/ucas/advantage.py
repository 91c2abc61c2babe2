"""Advantages by a Python function, for `ucas train --method.python FILE.py:FUNCTION`: the program starts this file and asks it each step.

The function gets one step as a dictionary and gives a list with, for each response, one number (for all its tokens) or a list of one number
per token:

    def advantages(step):
        return [r["reward"] - r["group_mean"] for r in step["responses"]]

step["responses"] has, for each response: group (0, 1, ..: responses of one prompt share it), problem, reward, score, right, length,
finished, trained, group_mean, group_std (of the rewards; the std with n - 1), advantage (the method's own, per token), and per token:
token, logprob, entropy, confidence. step["step"] is the step's number. It is slower than a method of the program: every token goes through a pipe.
"""
import importlib.util
import json
import math
import os
import sys
import traceback


def _reward():
    """reward.py of this folder, where the functions are loaded; its text where the program put it."""
    if "UCAS_REWARD_BRIDGE" in os.environ:
        space = {"__name__": "ucas_reward"}
        exec(os.environ["UCAS_REWARD_BRIDGE"], space)
        return space["load"], space["Unusable"]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reward.py")
    spec = importlib.util.spec_from_file_location("ucas_reward", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load, module.Unusable


def _numbers(given, responses, place, unusable):
    given = list(given)
    if len(given) != len(responses):
        raise unusable(f"{place}: gave {len(given)} advantages for {len(responses)} responses")
    out = []
    for response, one in zip(responses, given):
        tokens = [float(one)] * response["length"] if not hasattr(one, "__len__") else [float(value) for value in one]
        if len(tokens) != response["length"]:
            raise unusable(f"{place}: gave {len(tokens)} advantages for the {response['length']} tokens of a response to {response['problem']}")
        if not all(math.isfinite(value) for value in tokens):
            raise unusable(f"{place}: gave an advantage that is not finite for a response to {response['problem']}")
        out.append(tokens)
    return out


def main(arguments):
    place = arguments[0]
    load, unusable = _reward()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        function = load(place)
        for line in sys.stdin:
            step = json.loads(line)
            answer = {"id": step["id"], "score": 0, "advantages": _numbers(function(step), step["responses"], place, unusable)}
            replies.write(json.dumps(answer) + "\n")
            replies.flush()
    except unusable as error:
        print(f"method.python {error}", file=sys.stderr)
        return 2
    except Exception:
        print(f"method.python {place}: an exception, and this step is not trained on:", file=sys.stderr)
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
