"""Goldens of chat templates by jinja2 3.1.6, with the settings, filters and functions that transformers gives it:
  python3 -m venv V && V/bin/pip install jinja2==3.1.6 && V/bin/python tools/make_chat_goldens.py
Writes tests/goldens/chat/goldens.json: 200 generated conversations, each through one of the templates beside it, and single
expressions; where jinja2 raises, "error"."""
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


def conversation(rng, name):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": text_of(rng, 5)})
    for turn in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": text_of(rng)})
        if turn == 0 and rng.random() < 0.2 or rng.random() < 0.8:
            content = text_of(rng)
            if rng.random() < 0.4:
                content = "<think>\n" + text_of(rng) + "\n</think>\n\n" + content
            message = {"role": "assistant", "content": content}
            if name in ("chatml", "headers") and rng.random() < 0.3:
                arguments = {"x": rng.randint(-5, 5), "y": rng.random(), "note": text_of(rng, 2), "deep": [1, {"a": None}]}
                message["tool_calls"] = [{"name": "add", "arguments": arguments}]
                if name == "chatml" and rng.random() < 0.5:
                    message["tool_calls"][0] = {"function": message["tool_calls"][0]}
            if name == "thinking" and rng.random() < 0.2:
                message["reasoning_content"] = rng.choice([None, text_of(rng)])
            messages.append(message)
            if rng.random() < 0.15:
                messages.append({"role": "tool", "content": text_of(rng, 3)})
        if name in ("turns", "macros", "brackets") and rng.random() < 0.15:
            messages[-1]["content"] = [{"type": "text", "text": text_of(rng, 3)}, {"type": "image"}, {"type": "text", "text": "b"}]
    context = {"messages": messages, "add_generation_prompt": rng.random() < 0.8}
    if name == "thinking" and rng.random() < 0.5:
        context["enable_thinking"] = rng.random() < 0.5
    if name == "chatml" and rng.random() < 0.2:
        context["tools"] = [{"type": "function", "function": {"name": "add", "description": "it's \u00fc \"x\"", "parameters": {}}}]
    return context


# Over `x`, which is what stands at the end of each row; @n and @t stand for a line end and a tab.
EXPRESSIONS = [line.rsplit("   # ", 1) for line in r"""
{{ x }}   # "a"
{{ x }}   # 1.0
{{ x }}   # 1e22
{{ x }}   # 1e-7
{{ x }}   # 123456789.125
{{ x }}   # [1, "it's", "say \"x\"", null, true, 2.5, {"k": [1]}, "\n\t\\"]
{{ x | tojson }}   # {"b": 1, "a": [1.5, "\u00e9\"\\\n\u0001", null, false], "c": {}, "d": []}
{{ x | tojson(indent=2) }}   # {"b": 1, "a": [1.5, []], "c": {}, "d": [{"e": 1}]}
{{ x[0] }}{{ x[-1] }}{{ x[9] }}|{{ x[1:3] }}|{{ x[::-1] }}|{{ x[-2:] }}|{{ x[:-1:2] }}   # "h\u00e9llo\u00e9"
{{ x[1:3] }}|{{ x[::-1] }}|{{ x[-2:] }}|{{ x[:-1:2] }}|{{ x[5:1:-2] }}|{{ x[7:] }}|{{ x[-9:2] }}   # [0, 1, 2, 3, 4, 5, 6]
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -7.5 // 2 }} {{ 7.5 % -2 }}   # 0
{{ 1 + 2 * 3 - 4 }}{{ 4 ~ 5 ~ 6 * 2 }} {{ -x ** 2 }} {{ (1, 2) }} {{ (1,) }} {{ () }}   # 3
{{ "a" * 3 }}{{ 2 * "b" }}{{ "a" + "b" }}{{ [1] + [2] }}{{ "a" "b" 'c' }}   # 0
{{ true + 1 }} {{ true == 1 }} {{ 1 == 1.0 }} {{ "1" == 1 }} {{ none == false }} {{ [1] == [1] }} {{ (1,) == [1] }}   # 0
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ "a" < "b" }} {{ 1 in [1, 2] }} {{ "a" not in "abc" }} {{ "k" in x }} {{ not 1 in [1] }}   # {"k": 1}
{{ x.k }} {{ x["k"] }} {{ x.missing }} {{ x["missing"] }} {{ x.get("k") }} {{ x.get("m") }} {{ x.get("m", 5) }} {{ x.items() | list }}   # {"k": 1}
{{ x.missing.deeper }}   # {"k": 1}
{{ missing.x }}   # 0
{{ missing }}|{{ missing is defined }}|{{ missing | default("d") }}|{{ "" | default("d") }}|{{ "" | default("d", true) }}|{{ missing | length }}   # 0
{{ missing + "a" }}   # 0
{{ missing ~ "a" }}   # 0
{{ "a" + 1 }}   # 0
{{ x | trim }}|{{ x.strip() }}|{{ x.lstrip() }}|{{ x.rstrip() }}|{{ x.strip(" \nab") }}|{{ x | trim("a \n") }}   # " \n ab c ba\u00a0\n"
{{ x.split() }}|{{ x.split(" ") }}|{{ x.split(" ", 1) }}|{{ x.rsplit(" ", 1) }}|{{ x.splitlines() }}   # " a  b\nc d "
{{ x.split("") }}   # "abc"
{{ x.startswith("ab") }} {{ x.endswith("c") }} {{ x.startswith(("x", "a")) }} {{ x.find("c") }} {{ x.find("z") }} {{ x.count("a") }}   # "abcab\u00e9c"
{{ x.replace("a", "bb") }}|{{ x.replace("a", "", 1) }}|{{ x | replace("b", "a") }}|{{ x.upper() }}|{{ x.title() }}|{{ x.capitalize() }}|{{ x | title }}   # "a ba-ab it's 3d x_y"
{{ x | upper }}{{ x | lower }}{{ x | capitalize }}{{ x | title }}   # "heLLo wORLD (foo) [bar"
{{ x | first }} {{ x | last }} {{ x | length }} {{ x | join("-") }} {{ x | reverse | list }} {{ x | list | string }}   # [3, 1, 2]
{{ x | first }} {{ x | last }} {{ x | length }} {{ x | join("-") }} {{ x | reverse }} {{ x | list }}   # "h\u00e9y"
{{ [] | first }}|{{ [] | last }}|{{ [] | join }}   # 0
{{ x | map(attribute="a") | list }} {{ x | map(attribute="b.c") | list }} {{ x | map(attribute="a", default=7) | list }} {{ x | map("length") | list }}   # [{"a": 1, "b": {"c": 2}}, {"b": {"c": 3}}]
{{ x | selectattr("a") | list }} {{ x | selectattr("a", "defined") | list }} {{ x | rejectattr("a", "equalto", 1) | list }} {{ x | selectattr("a", "==", 2) | map(attribute="a") | join(",") }} {{ x | selectattr("a", "in", [1, 5]) | list | length }}   # [{"a": 1}, {"a": 0}, {"a": 2}]
{{ x | select("odd") | list }} {{ x | reject("odd") | list }} {{ x | select | list }} {{ x | map("string") | list }}   # [0, 1, 2, 3]
{{ x | items | list }}{% for k, v in x.items() %}{{ loop.index }}{{ k }}={{ v }}{{ ", " if not loop.last }}{% endfor %}{% for k in x %}{{ k }}{% endfor %}   # {"b": 1, "a": [2]}
{{ x | int }} {{ "12" | int }} {{ " -7 " | int }} {{ "x" | int }} {{ "x" | int(3) }} {{ 2.9 | int }} {{ "2.9" | int }} {{ "2.5" | float }} {{ "z" | float }} {{ -3 | abs }} {{ true | int }}   # 4.7
{{ x | indent }}|{{ x | indent(2, true) }}|{{ x | indent(1, blank=true) }}|{{ x | indent("> ") }}   # "a\n\nb\nc"
{{ x | dictsort }}{{ x | dictsort(true) }}{{ x | dictsort(by="value", reverse=true) }}{% for k, v in x | dictsort %}{{ k }}{{ v }}{% endfor %}   # {"b": 2, "A": 3, "a": 1, "C": 0}
{{ x | sort }}{{ x | sort(reverse=true) }}{{ x | sort(case_sensitive=true) }}{{ [{"a": 2}, {"a": 1}] | sort(attribute="a") }}{{ "bca" | sort }}   # ["b", "A", "a", "C"]
{{ [1, "a"] | sort }}   # 0
{{ x | map(attribute="a") | list }}{{ x | selectattr("a") | list }}{{ x | reject | list }}   # null
{{ x is string }} {{ x is mapping }} {{ x is iterable }} {{ x is sequence }} {{ x is number }} {{ x is none }} {{ x is boolean }} {{ x is not none }} {{ x is integer }} {{ x is float }}   # "a"
{{ x is string }} {{ x is mapping }} {{ x is iterable }} {{ x is sequence }} {{ x is number }} {{ x is none }} {{ x is boolean }} {{ x is true }} {{ x is integer }} {{ x is float }}   # true
{{ x is string }} {{ x is mapping }} {{ x is iterable }} {{ x is sequence }} {{ x is number }} {{ x is false }} {{ x is boolean }} {{ x is defined }} {{ x is integer }} {{ x is float }}   # 0
{{ x is string }} {{ x is mapping }} {{ x is iterable }} {{ x is sequence }} {{ x is number }} {{ x is none }}   # {"a": 1}
{{ x is string }} {{ x is mapping }} {{ x is iterable }} {{ x is sequence }} {{ x is none }} {{ missing is undefined }} {{ missing is none }} {{ missing is iterable }} {{ missing is string }}   # null
{{ 4 is divisibleby 2 }} {{ 4 is even }} {{ 3 is odd }} {{ 3 is eq 3 }} {{ 3 is in [3] }} {{ 3 is gt(2) }} {{ namespace is callable }} {{ raise_exception is defined }}   # 0
{{ "a" if x else "b" }}{{ "c" if x > 5 }}{{ "d" if x > 5 else "e" if x > 1 else "f" }}   # 2
{{ x and "y" }}|{{ x or "z" }}|{{ not x }}|{{ 0 and 1 or 2 }}   # ""
{% set ns = namespace(a=1, b="q") %}{% for i in x %}{% set ns.a = ns.a + i %}{% set y = i %}{% endfor %}{{ ns.a }}{{ y }}{{ ns.b }}{{ ns.c }}   # [1, 2, 3]
{% set y = 1 %}{% for i in x %}{{ y }}{% set y = i * 10 %}{{ y }};{% endfor %}{{ y }}{% if true %}{% set y = 5 %}{% endif %}{{ y }}   # [1, 2]
{% set a, b = x %}{{ a }}{{ b }}{% for p, q in [[1, 2], (3, 4)] %}{{ p }}{{ q }}{% endfor %}   # [7, 8]
{% set a, b = x %}{{ a }}   # [7, 8, 9]
{% for i in x if i is odd %}{{ loop.index }}/{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.nextitem }}{{ loop.previtem }};{% else %}none{% endfor %}   # [1, 2, 3, 5]
{% for i in x if i > 9 %}{{ i }}{% else %}none{% endfor %}{% for i in missing %}{{ i }}{% else %}nothing{% endfor %}   # [1, 2]
{% for i in x %}{% for j in x %}{{ loop.depth }}{{ loop.index }}{% endfor %}{{ loop.depth0 }}{{ loop.cycle("a", "b") }}{% endfor %}   # [1, 2]
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}{{ range(5, 1, -2) | list }}{{ range(3) | list }}   # 0
{% macro m(a, b="B", c=a) %}[{{ a }}{{ b }}{{ c }}{{ x }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m() }}{{ m(b=3, a=4) }}   # 0
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}   # 0
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(x) }}   # 4
{% macro m() %}{{ y }}{% endmacro %}{% set y = 1 %}{{ m() }}{% set y = 2 %}{{ m() }}   # 0
{% set t %}a{{ x }}b{% endset %}{{ t | length }}{{ t }}{% set u | upper %}q{{ x }}{% endset %}{{ u }}   # 5
{% set t %}{% set inner = 1 %}{% endset %}{{ inner }}   # 0
a {%- if true %} b {%- endif %} c {{- x -}} d   # 1
a {# note #} b {#- note -#} c@n{# line #}@nd@n  {# indented #}@n e   # 0
a@n  {% if true %}@n  b@n  {% endif %}@n  c@n{%+ if true %} d {% endif +%}@n  {{ x }}  @n@n   # 1
  {%+ if true %}a{% endif %}@n@t{% if true %}b{% endif %}@tc {% if true %} d{% endif %}@n   # 0
{{ "\x41\u00e9\n\t\\\'\"\q\101" }}{{ 'a\
b' }}   # 0
{% set m = {0: "a", 512: "b", 1024: "c"} %}{{ m[512] }}{{ m.get(0) }}{{ m[7] is defined }} {{ 512 in m }} {{ "512" in m }} {{ m }} {{ m | tojson }} {{ m | length }}   # 0
{% for k, v in {512: "b", -1: "z", 0: x} | dictsort %}{{ k + 1 }}{{ v }}{% endfor %}{% for k in {2: 0, 1: 0} %}{{ k }}{% endfor %}   # "q"
{{ {true: "t", 2.0: "two", none: "n", "2": "text"} }}{{ {1: "a", 1.0: "b", true: "c"} }}{{ {2: "x"}[2.0] }}{{ {none: 3}[none] }} {{ {1: 2} == {true: 2} }}   # 0
{{ {3: 1}.items() | list }} {{ {3: 1}.keys() | list }} {{ {4: "v"} | items | list }} {{ {4: "v"} | dictsort(by="value") }} {{ {true: 1, none: 2, 1.5: 3} | tojson }}   # 0
{{ {[1]: 2} }}   # 0
{{ {1: 2, "a": 3} | dictsort }}   # 0
{{ "}}" }}{{ '%}' }}{{ {"a": {"b": 1}}["a"]["b"] }}{{ {"a": 1}.a }}{{ [1, [2, 3],] }}{{ {"a": 1,} }}   # 0
{{ 1_000 }} {{ 1.5e3 }} {{ 10.0 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ 100000000000000000.0 }} {{ 1 / 3 }}   # 0
{{ x | safe }}{{ "<b>" }}{{ x | string | length }}{{ 12 | string }}{{ x.join(["a", "b"]) }}{{ dict(a=1) }}{{ none }}{{ true }}   # "&"
{{ raise_exception("no") }}   # 0
{% if x is defined and x is not none and x | length > 0 and x[0] is string %}yes{% endif %}   # ["a"]
{{ x.0 }}{{ x.1.a }}   # ["q", {"a": "w"}]
{{ (x | tojson) ~ x | tojson }}{{ (x | string)[:3] }}{{ x | map(attribute="a") | first }}   # [{"a": "b"}]
{{ "%s" | replace("%s", x) }}{{ [x, none] }}{{ {"k": none} }}   # "v"
{{ 5 if true }}{{ 6 if false }}{{ (6 if false) is defined }}   # 0
{{ x[1] < x[0] }} {{ x[0] >= x[1] }} {{ x[0] != x[1] }} {{ 1 < "a" }}   # ["b", "a"]
{%- set s = x.split('|') -%}{{ s[0].strip() + '+' + s[-1] }}{{ s | length }}   # "a | b|c"
{{ x.keys() | list }}{{ x.values() | list }}{{ x | length }}{{ x | list }}{{ x | first }}   # {"p": 1, "q": 2}
{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ not true or true }} {{ 1 - 2 - 3 }} {{ 8 / 2 / 2 }} {{ 2 * 3 % 4 }}   # 0
{{ 1 }}{% if false %}{% elif x == 1 %}one{% elif x == 2 %}two{% else %}other{% endif %}   # 2
""".strip().split("\n")]


def expressions():
    rows, held = [], ""
    for parts in EXPRESSIONS:
        held += parts[0]
        if len(parts) == 1:  # a line of one that goes on
            held += "\n"
            continue
        source = held.replace("@n", "\n").replace("@t", "\t")
        held = ""
        context = {"x": json.loads(parts[1])}
        rows.append({"source": source, "context": context, **rendered(source, {**context, **TOKENS})})
    return rows


def main():
    rng = random.Random(20)
    names = sorted(f[:-6] for f in os.listdir(FOLDER) if f.endswith(".jinja"))
    rows = []
    for i in range(200):
        name = names[i % len(names)]
        with open(os.path.join(FOLDER, name + ".jinja"), encoding="utf-8") as file:
            source = file.read()
        context = conversation(rng, name)
        rows.append({"template": name, "context": context, **rendered(source, {**context, **TOKENS})})
    out = {"made_by": f"jinja2 {jinja2.__version__}", "own": TOKENS, "conversations": rows, "expressions": expressions()}
    with open(os.path.join(FOLDER, "goldens.json"), "w", encoding="ascii") as file:
        for key, value in out.items():
            lines = value if isinstance(value, list) else None
            file.write(("{" if key == "made_by" else ",") + json.dumps(key) + ": ")
            file.write("[\n" + ",\n".join(json.dumps(row) for row in lines) + "\n]" if lines else json.dumps(value))
            file.write("\n")
        file.write("}\n")
    refused = sum("error" in row for row in rows)
    print(f"{len(rows)} conversations, {refused} of them refused; {len(out['expressions'])} expressions")


main()
