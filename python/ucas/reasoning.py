"""Problems of the package reasoning-gym, and its own scorers: for `--data rg:TASK,size=N,seed=S` of the program.

    rows rg:TASK,KEY=VALUE,... FOLDER         writes the problems to a file in FOLDER (unless it is there) and prints its path
    score LAUNCHER WALL CPU MEMORY FILE ...   answers lines of reward.command by the scorer of the problem's task, in the sandbox
    tasks                                     prints the names of all tasks

The answer of a response is what stands in the last <answer>..</answer>, else in the last \\boxed{..}, else its last line. Some scorers evaluate
it as Python. So scorers run in the sandbox of the program (LAUNCHER is its ucas-sandbox): one process makes the problems again, and each answer
is scored in a copy of that process, which ends with it: WALL and CPU are its seconds, MEMORY its bytes. There `eval` takes expressions alone.
"""
import ast
import builtins
import fcntl
import hashlib
import json
import os
import re
import resource
import select
import signal
import sys
import time

_MISSING = "reasoning-gym is not installed for this Python ({}): pip install reasoning-gym"


def _gym():
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        sys.exit(_MISSING.format(error))
    return reasoning_gym, DATASETS


def _value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse(name):
    """("chain_sum", {"size": 2000, "seed": 1}) of "rg:chain_sum,size=2000,seed=1"."""
    task, *pairs = name.removeprefix("rg:").split(",")
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            sys.exit(f"{name}: expected KEY=VALUE after the task, got {pair!r}")
        settings[key] = _value(value)
    return task, {"size": 500, "seed": 0} | settings


def _plain(value):
    """As JSON: what a task keeps beside its answer may be anything."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def make(name):
    gym, known = _gym()
    task, settings = parse(name)
    if task not in known:
        import difflib
        near = difflib.get_close_matches(task, known, 1)
        sys.exit(f"{name}: reasoning-gym has no task {task}" + (f" (did you mean {near[0]}?)" if near else "") + f"; it has {len(known)}: "
                 + ", ".join(sorted(known)))
    try:
        return gym.create_dataset(task, **settings), task, settings
    except (AssertionError, TypeError, ValueError) as error:
        sys.exit(f"{name}: {task} does not take these settings: {error}")


def rows(name, folder):
    data, task, settings = make(name)
    version = getattr(_gym()[0], "__version__", "")
    key = hashlib.sha256(json.dumps([task, settings, version], sort_keys=True).encode()).hexdigest()[:12]
    path = os.path.join(folder, f"{task}-{key}.jsonl")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        whole = f"{path}.tmp-{os.getpid()}"
        with open(whole, "w", encoding="utf-8") as file:
            for index in range(settings["size"]):
                entry = data[index]
                answer = entry["answer"]
                row = {"id": f"{task}/{settings['seed']}/{index}", "data_source": f"rg:{task}", "problem": entry["question"],
                       "answer": "(any that the task's scorer takes)" if answer is None else str(answer),
                       "reasoning_gym": {"task": task, "settings": settings, "index": index}}
                file.write(json.dumps(row) + "\n")
        os.replace(whole, path)
    return path


def answer_of(response):
    tagged = re.findall(r"<answer>(.*?)</answer>", response, re.DOTALL)
    if tagged:
        return tagged[-1].strip()
    at = response.rfind("\\boxed{")
    if at >= 0:
        depth, begin = 1, at + len("\\boxed{")
        for end in range(begin, len(response)):
            depth += {"{": 1, "}": -1}.get(response[end], 0)
            if depth == 0:
                return response[begin:end].strip()
    lines = [line.strip() for line in response.strip().split("\n") if line.strip()]
    return lines[-1] if lines else ""


_PARTS = (ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.Name, ast.Call, ast.operator,
          ast.unaryop, ast.expr_context)


def _expressions_alone(evaluate):
    """eval() of numbers, lists, names, operators and sympy's own functions: what an answer may be. All else raises ValueError."""
    def harmless(called, names):
        if isinstance(called, ast.Call):  # Function('f')(x)
            return True
        found = names.get(called.id) if isinstance(called, ast.Name) else None
        basic = getattr(sys.modules.get("sympy"), "Basic", ())
        return isinstance(found, type) and issubclass(found, basic) or getattr(found, "__module__", "").startswith("sympy.functions.")

    def careful(source, globals=None, locals=None):
        frame = sys._getframe(1)
        globals = frame.f_globals if globals is None else globals
        locals = (frame.f_locals if globals is frame.f_globals else globals) if locals is None else locals
        tree = ast.parse(source.strip(), mode="eval")
        for node in ast.walk(tree):
            if not isinstance(node, _PARTS) or isinstance(node, ast.Call) and not harmless(node.func, {**globals, **locals}):
                raise ValueError(f"an answer is an expression; this one holds {type(node).__name__}")
        return evaluate(compile(tree, "answer", "eval"), globals, locals)

    return careful


def _apart(work, wall, cpu):
    """What work() gives, as JSON, from a copy of this process that ends with it, and what it started, too."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        try:
            os.closerange(3, theirs)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            builtins.eval = _expressions_alone(eval)
            try:
                said = {"score": float(work())}
            except BaseException as error:
                said = {"score": 0.0, "why": f"the scorer failed on it: {type(error).__name__}"}
            os.write(theirs, json.dumps(said).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(theirs)
    said, end = b"", time.monotonic() + wall
    while not said.endswith(b"\n") and len(said) < 200 and select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(ours, 200)
        if not part:
            break
        said += part
    os.close(ours)
    try:
        os.kill(-1, signal.SIGKILL)  # this is the first process of its namespace: all others in it
    except ProcessLookupError:
        pass
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    try:
        given = json.loads(said)
        return {"score": min(1.0, max(0.0, float(given["score"]))), "why": str(given.get("why", ""))}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {"score": 0.0, "why": "scored 0: the answer takes too long or too much memory to score"}


def inside(wall, cpu, paths):
    """Scores lines of descriptor 3, in the sandbox."""
    if os.getpid() != 1:
        sys.exit("only the first process of the sandbox scores")
    sys.path[:] = json.loads(paths)
    asked, replies, sets = os.fdopen(3, encoding="utf-8"), os.fdopen(4, "w", encoding="utf-8"), {}

    def reply_to(ask):
        key = json.dumps([ask["task"], ask["settings"]], sort_keys=True)
        if key not in sets:
            sets[key] = _gym()[0].create_dataset(ask["task"], **ask["settings"])
        entry = sets[key][ask["index"]]
        if entry["question"] != ask["question"]:
            return {"error": "reasoning-gym makes another problem now than the file holds; is it another version? Remove the file, and it is made again"}
        return _apart(lambda: sets[key].score_answer(answer=ask["answer"], entry=entry), float(wall), int(cpu))

    for line in asked:
        try:
            reply = reply_to(json.loads(line))
        except (Exception, SystemExit) as error:  # of the package: no answer has been looked at
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _shown():
    """What the sandbox shows of this Python: itself, its library, the folders of packages and of what they load."""
    import sysconfig
    gym = _gym()[0]
    paths = [path for path in sys.path if os.path.isabs(path) and os.path.isdir(path)]
    packages = os.path.dirname(os.path.dirname(os.path.realpath(gym.__file__)))
    shown = {os.path.realpath(sys.executable), "/etc/ld.so.cache", "/lib", "/lib64", "/usr/lib64", packages, *sysconfig.get_paths().values()}
    shown |= {path for path in paths if os.path.basename(path) in ("site-packages", "dist-packages", "lib-dynload")}
    with open("/proc/self/maps", encoding="utf-8") as maps:
        shown |= {os.path.dirname(line.split(None, 5)[5].strip()) for line in maps if ".so" in line}
    return sorted(path for path in shown if os.path.exists(path)), [packages, *paths]


def _moved(end):
    """Out of the way of the numbers that the sandbox gets."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved


def _text():
    """Of this file, which may have been started as `python -c TEXT`."""
    if "__file__" in globals():
        with open(__file__, encoding="utf-8") as file:
            return file.read()
    return sys.orig_argv[sys.orig_argv.index("-c") + 1]


class Scorers:
    """The task's own scorer for each problem. Entries are made again by their settings and index, so that nothing is lost in a file."""

    def __init__(self, launcher, wall, cpu, memory, *files):
        self.places = {}
        for path in files:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    row = json.loads(line)
                    if "reasoning_gym" in row:
                        self.places[row["id"]] = row["reasoning_gym"] | {"question": row["problem"]}
        shown, paths = _shown()
        always = str(10 ** 9)
        words = [launcher, "--tier", "a", "--forks", "1", "--parent", str(os.getpid()), "--wall", always, "--cpu", always, "--memory", memory]
        words += [word for path in shown for word in ("--ro", path)]
        words += ["--", os.path.realpath(sys.executable), "-s", "-S", "-B", "-c", _text(), "inside", wall, cpu, json.dumps(paths)]
        pipes = [[_moved(end) for end in os.pipe()] for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        streams += [(os.POSIX_SPAWN_DUP2, end, 3 + i) for i, end in enumerate(theirs)]
        os.posix_spawn(launcher, words, os.environ, file_actions=streams)
        for end in theirs:
            os.close(end)
        self.asked, self.replies, self.status = os.fdopen(pipes[0][1], "w"), os.fdopen(pipes[1][0]), os.fdopen(pipes[2][0])

    def score(self, row):
        place = self.places.get(row["problem"])
        if place is None:
            return {"id": row["id"], "score": 1.0 if row["verdict"] == "equal" else 0.0}
        try:
            self.asked.write(json.dumps(place | {"answer": answer_of(row["response"])}) + "\n")
            self.asked.flush()
        except BrokenPipeError:
            pass
        line = self.replies.readline()
        if not line:
            sys.exit(f"the sandbox of the scorers ended ({self.status.readline().strip()}); every user must be able to read and start this Python, "
                     f"{os.path.realpath(sys.executable)}, and its packages: UCAS_PYTHON names another")
        reply = json.loads(line)
        if "error" in reply:
            sys.exit(f"{row['problem']}: {reply['error']}")
        score, why = reply["score"], reply["why"]
        return {"id": row["id"], "score": score, "right": score >= 1, "reason": why or f"by the scorer of {place['task']}: {score:g}"}


def main(arguments):
    what, *rest = arguments
    if what == "inside":
        return inside(*rest)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some tasks print while they make their problems
    if what == "rows":
        return replies.write(rows(*rest) + "\n")
    if what == "tasks":
        return replies.write("\n".join(sorted(_gym()[1])) + "\n")
    scorers = Scorers(*rest)
    for line in sys.stdin:
        replies.write(json.dumps(scorers.score(json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # some tasks choose from sets of strings: the same problems in every process
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    main(sys.argv[1:])
