"""Tools and environments by Python, for `ucas train --rollout.tools FILE.py:NAME[,NAME..]`: the program starts this file and asks it turn by turn.

    REWARD describe NAME..  loads them and prints what they are; REWARD is the text of reward.py
    REWARD CHARS NAME..     answers turns; an answer of a tool has CHARS characters at most

NAMEs are functions, which a model calls by <tool_call>{"name": .., "arguments": {..}}</tool_call>, or one class, an environment:

    class Game:
        turn_ends = ["</move>"]     texts that end a turn of the model, besides its stop tokens
        chat = True                 False: what step() gives is inserted as it is, in no turn of the user
        def reset(self, problem):   {"id", "source", "problem", "answer"}, before the first turn
        def step(self, text):       what it says to a turn; "": the turn goes on; None: the episode is done
"""
import inspect
import json
import os
import re
import sys
import traceback
import types
import typing

TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}


def kind(hint):
    """The JSON schema of a type, as transformers has it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind(one) for one in inner if one is not type(None)]
        return (kinds[0] if len(kinds) == 1 else {"anyOf": kinds}) | ({"nullable": True} if len(kinds) < len(inner) else {})
    if origin is typing.Literal:
        return {"type": TYPES.get(type(inner[0]), "string"), "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": kind(inner[0])}
    return {} if hint is typing.Any else {"type": TYPES.get(hint, "object")}


def schema(function):
    """What a chat template is shown of it, from its signature and docstring: get_json_schema of transformers."""
    name, doc, hints, parameters = function.__name__, inspect.getdoc(function), typing.get_type_hints(function), inspect.signature(function).parameters
    if not doc or parameters.keys() - hints:
        sys.exit(f"{name}: expected a docstring and a type hint for each parameter, which a model is shown")
    head, _, rest = re.split(r"\n\s*(?:Returns|Raises):", doc)[0].partition("\nArgs:")
    said = dict(re.findall(r"^\s*(\w+)(?: *\(.*?\))?: *(.*(?:\n(?!\s*\w+(?: *\(.*?\))?:).*)*)", rest, re.M))
    properties = {key: kind(hints[key]) | ({"description": " ".join(said[key].split())} if key in said else {}) for key in parameters}
    required = [key for key, one in parameters.items() if one.default is one.empty]
    shown = {"name": name, "description": head.strip(), "parameters": {"type": "object", "properties": properties} | ({"required": required} if required else {})}
    if "return" in hints:
        gives = re.search(r"\n\s*Returns:\n\s*(.*?)\s*(?:\n\s*Raises:|\Z)", doc, re.S)
        shown["return"] = kind(hints["return"]) | ({"description": gives[1]} if gives else {})
    return {"type": "function", "function": shown}


class Tools:
    """Functions as an environment: a turn ends with a call, and is answered by what the function returns, or raises."""
    turn_ends = ["</tool_call>"]

    def __init__(self, functions, chars):
        self.functions, self.chars = {function.__name__: function for function in functions}, chars

    def reset(self, problem):
        pass

    def step(self, text):
        if self.turn_ends[0] not in text:
            return None
        said, most = self.answer(text.partition(self.turn_ends[0])[0].rpartition("<tool_call>")[2]), self.chars
        if len(said) > most:
            said = f"{said[:most - most // 2]}\n[{len(said) - most} characters left out]\n{said[len(said) - most // 2:]}"
        return f"<tool_response>\n{said}\n</tool_response>"

    def answer(self, call):
        try:
            asked = json.loads(call)
            if not isinstance(asked, dict) or not isinstance(asked.get("arguments"), dict):
                return 'error: expected {"name": "..", "arguments": {..}}'
            if asked.get("name") not in self.functions:
                return f"error: no tool {asked.get('name')!r}; there are {', '.join(self.functions)}"
            return str(self.functions[asked["name"]](**asked["arguments"]))
        except Exception as error:
            return " ".join(f"error: {type(error).__name__}: {error}".split())


def serve(make, lines, write):
    episodes = {}
    for line in lines:
        asked = json.loads(line)
        for number in asked["ended"]:
            episodes.pop(number, None)
        if "problem" in asked:
            episodes[asked["episode"]] = make()
            episodes[asked["episode"]].reset(asked["problem"])
        episode = episodes[asked["episode"]]
        said = episode.step(asked["turn"])
        if not isinstance(said, (str, type(None))):
            sys.exit(f"step() gave {said!r}; expected a text, or None at the end of the episode")
        write({"id": 0, "text": said and said.encode("utf-8", "replace").decode(), "chat": getattr(episode, "chat", True)})


def main(reward, task, *names):
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the functions print is no reply
    sys.stdout = sys.stderr
    space = {"__name__": "ucas_reward"}
    exec(reward, space)

    def write(reply):
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    try:
        found, file = [], ""
        for name in names:  # one without a file is in that of the name before
            place = name if ":" in name or "." in name else f"{file}:{name}"
            file = place.rpartition(":")[0]
            found.append(space["load"](place))
        own = found[0] if len(found) == 1 and inspect.isclass(found[0]) else None
        if task != "describe":
            tools = None if own else Tools(found, int(task))
            return serve(own or (lambda: tools), sys.stdin, write)
        write({"turn_ends": list(getattr(own or Tools, "turn_ends", [])), "names": [] if own else [one.__name__ for one in found],
               "tools": json.dumps([] if own else [schema(one) for one in found], ensure_ascii=False)})
    except space["Unusable"] as error:
        sys.exit(str(error))
    except Exception:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
