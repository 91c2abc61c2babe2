"""A chat template for `ucas`, rendered by jinja2 with the settings of transformers (utils/chat_template_utils.py). Started by the program, as
chat_template.py PACKAGES (a folder, or ""); JSON lines in and out. The first line, a text, is the template: {"made_by"}. Each line after it has the
names that the template sees: {"text"}. What cannot be: {"error"}, with "line" in the template where that is known; {"missing"} where there is
no jinja2. A template comes with a checkpoint, unread: it runs in jinja2's sandbox, as in transformers, and within limits of this process."""
import sys

if __name__ == "__main__":
    # Not the folder that it runs in, which may be the checkpoint's; this Python's own packages last, as their jinja2 may be old.
    sys.path[:] = sorted(filter(None, [*sys.path, *sys.argv[1:]]), key=lambda path: path.endswith("-packages") and path not in sys.argv)

import datetime
import json
import re
import resource
import signal
import time
import traceback

try:
    import jinja2.ext
    import jinja2.sandbox
    version = vars(jinja2).get("__version__", "3.2 or later")
    # transformers refuses older ones, too: programs get out of their sandbox.
    missing = f"jinja2 {version} is older than 3.1.6" if list(map(int, re.findall(r"\d+", version)[:3])) < [3, 1, 6] else ""
except ImportError as error:
    missing = str(error)

SECONDS = 5  # of CPU time for a prompt
LONGEST = 16 << 20  # bytes of a reply


class TooMuch(Exception):
    @classmethod
    def time(cls, *_):  # and every second from then on: jinja2 lets some exceptions pass
        raise cls(f"it takes more than {SECONDS} s")


def limit(kind, value):
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def compiled(text):
    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            return jinja2.nodes.CallBlock(self.call_method("through"), [], [],
                                          parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

        def through(self, caller):
            return caller()

    class Dict:  # without the attributes of the type
        fromkeys, __call__ = staticmethod(lambda *given: dict.fromkeys(*given)), staticmethod(lambda *given, **named: dict(*given, **named))

    class Namespace(jinja2.utils.Namespace):  # without Python's own names
        def __init__(*given, **named):
            jinja2.utils.Namespace.__init__(given[0])
            for name, value in dict(*given[1:], **named).items():
                given[0][name] = value

        def __setitem__(self, name, value):
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError(f"a namespace takes no name that begins with an underscore, {name}")
            super().__setitem__(name, value)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.TemplateError(f"the template refuses: {message}")

    def strftime_now(format):
        return datetime.datetime.now().strftime(format)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now, dict=Dict(), namespace=Namespace)
    return environment.from_string(text)


def refusal(error):
    if isinstance(error, jinja2.TemplateSyntaxError):
        return {"error": error.message, "line": error.lineno}
    plain = isinstance(error, TooMuch) or type(error) is jinja2.TemplateError
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == "<template>"]
    return {"error": str(error) if plain else f"{type(error).__name__}: {error}".rstrip(": ")} | ({"line": lines[-1]} if lines else {})


def main():
    def compile_first(text):
        nonlocal answer
        template = compiled(text)
        answer = lambda names: {"text": template.render(names)}
        return {"made_by": f"jinja2 {version} of {sys.executable}"}

    answer = (lambda _: {"missing": f"{sys.executable}: {missing}"}) if missing else compile_first
    limit(resource.RLIMIT_AS, 1 << 30)
    signal.signal(signal.SIGPROF, TooMuch.time)
    for line in sys.stdin.buffer:
        try:
            limit(resource.RLIMIT_CPU, int(time.process_time()) + 2 * SECONDS)  # for one step of Python's own, which hears of no exception
            signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)
            try:
                reply = json.dumps(answer(json.loads(line)), ensure_ascii=False).encode()
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            if len(reply) > LONGEST:
                raise TooMuch(f"it makes a prompt of more than {LONGEST >> 20} MiB")
        except Exception as error:
            refused = refusal(error)
            if isinstance(error, (TooMuch, MemoryError)):  # once, and not for each of many prompts
                answer = lambda _: refused
            reply = json.dumps(refused).encode()
        sys.stdout.buffer.write(reply + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
