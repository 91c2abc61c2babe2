"""Goldens of chat templates by jinja2 3.1.6, with the settings, filters and functions that transformers gives it:
  python3 -m venv V && V/bin/pip install jinja2==3.1.6 && V/bin/python tools/make_chat_goldens.py
Writes tests/goldens/chat/goldens.json: 200 generated conversations, each through one of the templates beside it; where jinja2 raises, or the
question is not in the text, "error"."""
import json
import os
import random

import jinja2
import jinja2.ext
import jinja2.sandbox

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests/goldens/chat")
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant wrote; its text goes through."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("through"), [], [], body).set_lineno(line)

    def through(self, caller):
        return caller()


def environment():
    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = refuse
    return made


def rendered(text, context):
    try:
        return {"text": environment().from_string(text).render(**context)}
    except Exception as error:  # whatever Python raises, the template is refused
        return {"error": f"{type(error).__name__}: {error}"}


WORDS = ["What is", "2 + 2", "the root of $x^2 = 9$", "\\boxed{3}", "so", "therefore", "\u00e9t\u00e9", "\u7b54\u6848\u662f", "\U0001f600",
         "<|im_end|>", "<|eot_id|>", "</s>", "[INST]", "<think>", "</think>", "{{ bos_token }}", "{% raw %}", "\"quoted\"", "it's",
         "a\\b", "\n", "\n\n", "\t", "  ", "\u00a0", "\u2028", "\r\n", "<tool_response>", "0.5", "."]


def text_of(rng, most=9):
    return rng.choice(["", " ", "\n"]) + " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, most))) + rng.choice(["", " ", "\n\n"])


def conversation(rng):
    """As prompts have them: a question, perhaps after turns that take turns, or do not, which some templates refuse."""
    messages = [{"role": "system", "content": text_of(rng, 5)}] if rng.random() < 0.5 else []
    for _ in range(rng.randint(0, 3)):
        messages.append({"role": "user", "content": text_of(rng)})
        if rng.random() < 0.9:
            thoughts = "<think>\n" + text_of(rng) + "\n</think>\n\n" if rng.random() < 0.4 else ""
            messages.append({"role": "assistant", "content": thoughts + text_of(rng)})
    return messages + [{"role": "user", "content": f"Q {text_of(rng)} A"}]


def main():
    rng = random.Random(20)
    names = sorted(f[:-6] for f in os.listdir(FOLDER) if f.endswith(".jinja"))
    rows = []
    for i in range(200):
        name = names[i % len(names)]
        with open(os.path.join(FOLDER, name + ".jinja"), encoding="utf-8") as file:
            source = file.read()
        own = TOKENS | ({"enable_thinking": rng.random() < 0.5} if name == "thinking" and rng.random() < 0.5 else {})
        messages = conversation(rng)
        made = rendered(source, {**own, "messages": messages, "tools": None, "documents": None, "add_generation_prompt": True})
        if " ".join(messages[-1]["content"].split()) not in " ".join(made.get("text", "").split()):  # ucas refuses that
            made = {"error": made.get("error", "without the question")}
        rows.append({"template": name, "messages": messages, "own": own, **made})
    with open(os.path.join(FOLDER, "goldens.json"), "w", encoding="ascii") as file:
        file.write(json.dumps({"made_by": f"jinja2 {jinja2.__version__}"})[:-1] + ', "conversations": [\n')
        file.write(",\n".join(json.dumps(row) for row in rows) + "\n]}\n")
    print(f"{len(rows)} conversations, {sum('error' in row for row in rows)} of them refused")


main()
