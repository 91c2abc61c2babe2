# Runs a solution inside the sandbox. Reads the task from descriptor 3, writes what came out to descriptor 4. It knows no
# expected output, so that nothing that a solution could do to it earns more than the same output printed honestly.
# Imports nothing that is not built in: an interpreter without site and without packages starts in half the time.
import gc
import posix
import sys
from _io import TextIOWrapper, open as open_file

LIMIT = 64 << 20  # of one answer; the sandbox's memory is the real limit
NAMES = {  # what solutions of the data sets use without an import; only what a text names is fetched
    "typing": "List Dict Set Tuple Optional Union Any Callable Iterable Iterator Generator Sequence Deque DefaultDict Counter "
              "NamedTuple FrozenSet Literal TypeVar Generic",
    "collections": "deque defaultdict Counter OrderedDict namedtuple ChainMap",
    "heapq": "heappush heappop heapify heappushpop heapreplace nlargest nsmallest merge",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "itertools": "accumulate chain combinations combinations_with_replacement count cycle groupby islice pairwise permutations "
                 "product repeat takewhile dropwhile zip_longest starmap tee compress filterfalse",
    "functools": "lru_cache cache reduce partial cmp_to_key wraps total_ordering cached_property",
    "math": "inf gcd lcm sqrt isqrt ceil floor log log2 log10 comb perm factorial prod pi e hypot fabs fmod nan",
    "operator": "add sub mul xor or_ and_ itemgetter attrgetter",
    "string": "ascii_lowercase ascii_uppercase ascii_letters digits punctuation",
    "random": "randint choice shuffle randrange",
    "copy": "deepcopy",
}
MODULES = ("math collections heapq bisect itertools functools operator string random re sys os copy datetime time statistics "
           "json decimal fractions typing queue array cmath hashlib io").split()


class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right


def list_node(values):
    first = None
    for value in reversed(values):
        first = ListNode(value, first)
    return first


def tree_node(values):
    nodes = [None if value is None else TreeNode(value) for value in values]
    children = nodes[:0:-1]
    for node in nodes:
        if node is not None:
            if children:
                node.left = children.pop()
            if children:
                node.right = children.pop()
    return nodes[0] if nodes else None


def read_all(descriptor):
    parts = []
    while part := posix.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def write_all(descriptor, data):
    data = memoryview(data)
    while data:
        data = data[posix.write(descriptor, data):]


def frame(number, kind, payload):
    write_all(4, b"%d %s %d\n" % (number, kind, len(payload)) + payload)


def described(error):
    try:
        return ascii(type(error).__name__ + ": " + str(error))[1:-1][:200].encode()
    except BaseException:
        return b"an exception that cannot be shown"


class NoAnswer(Exception):
    pass


# Values of the exact built-in types as text that reads back as the same value.
def encode(value, out, depth):
    kind = type(value)
    if depth > 40:
        raise NoAnswer("nested more than 40 deep")
    if kind is int or kind is str or kind is float or kind is bool or value is None or kind is bytes:
        try:
            out.append(ascii(value))
        except ValueError:
            raise NoAnswer("a whole number of more than 50,000 digits")
        if len(out) > 4000000:
            raise NoAnswer("too large")
        return
    if kind is complex:
        value = ("complex", value.real, value.imag)
        kind = tuple
    if kind is list or kind is tuple or kind is set or kind is frozenset:
        marks = {list: "[]", tuple: "()"}.get(kind, "{}")
        if marks == "{}" and not value:
            out.append("set()")
            return
        out.append(marks[0])
        for item in value:
            encode(item, out, depth + 1)
            out.append(",")
        out.append(marks[1])
        return
    if kind is dict or (isinstance(value, dict) and kind.__module__ == "collections"):
        out.append("{")
        for key, item in dict.items(value):
            encode(key, out, depth + 1)
            out.append(":")
            encode(item, out, depth + 1)
            out.append(",")
        out.append("}")
        return
    if kind.__name__ == "ListNode":
        values = []
        while value is not None and len(values) < 200000:
            values.append(value.val)
            value = value.next
        return encode(values, out, depth)
    if kind.__name__ == "TreeNode":
        values, queue = [], [value]
        for node in queue:
            if len(queue) > 400000:
                raise NoAnswer("a tree that does not end")
            values.append(None if node is None else node.val)
            if node is not None:
                queue += [node.left, node.right]
        while values and values[-1] is None:
            values.pop()
        return encode(values, out, depth)
    raise NoAnswer("a value of type " + kind.__name__)


def words_of(text):
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def fresh_names(text):
    names = {"__name__": "__main__", "ListNode": ListNode, "TreeNode": TreeNode, "list_node": list_node, "tree_node": tree_node}
    words = words_of(text)
    builtin = vars(sys.modules["builtins"])
    for module in MODULES:
        if module in words:
            exec("import " + module, names)
    for module, known in NAMES.items():
        for name in known.split():
            if name in words and name not in builtin and name not in names:
                exec("from %s import %s" % (module, name), names)
    if "bisect" in words and "bisect." in text:
        exec("import bisect", names)
    return names


def run_steps(source, text, steps):
    names = fresh_names(text)
    number = 0
    try:
        exec(source, names)
    except BaseException as error:
        return frame(0, b"c", described(error))
    for step in steps:
        kind, code = step[:1], step[1:]
        try:
            if kind == b"x":
                exec(compile(code, "tests", "exec"), names)
                continue
            out = []
            encode(eval(compile(code, "tests", "eval"), names), out, 0)
            frame(number, b"v", "".join(out).encode())
        except NoAnswer as error:
            frame(number, b"e", described(error))
        except BaseException as error:
            if kind == b"t":
                frame(number, b"e", described(error))
        number += kind == b"t"


def feed(descriptor, data, done):
    try:
        write_all(descriptor, data)
    except BaseException:
        pass
    posix.close(descriptor)
    done.release()


def drain(descriptor, parts, done):
    size = 0
    while part := posix.read(descriptor, 1 << 16):
        size += len(part)
        if size <= LIMIT:
            parts.append(part)
    posix.close(descriptor)
    done.release()


def run_with_input(source, text, number, data):
    import _thread
    fed, drained, parts = _thread.allocate_lock(), _thread.allocate_lock(), []
    fed.acquire()
    drained.acquire()
    read_end, write_end = posix.pipe()
    posix.dup2(read_end, 0)
    posix.close(read_end)
    _thread.start_new_thread(feed, (write_end, data, fed))
    read_end, write_end = posix.pipe()
    posix.dup2(write_end, 1)
    posix.close(write_end)
    _thread.start_new_thread(drain, (read_end, parts, drained))
    sys.stdin = sys.__stdin__ = TextIOWrapper(open_file(0, "rb", closefd=False), encoding="utf-8")
    sys.stdout = sys.__stdout__ = TextIOWrapper(open_file(1, "wb", closefd=False), encoding="utf-8")
    plain, failure, names = sys.stdout, None, fresh_names(text)
    try:
        exec(source, names)
    except SystemExit:
        pass
    except BaseException as error:
        failure = described(error)
    try:
        if "threading" in sys.modules:  # an interpreter waits for them at its end
            threading = sys.modules["threading"]
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
        if "atexit" in sys.modules:
            sys.modules["atexit"]._run_exitfuncs()
        for stream in (sys.stdout, plain):
            stream.flush()
    except BaseException as error:
        failure = failure or described(error)
    # What a program opened over 0 and 1, and never closed, must not close them in the middle of the next test.
    names.clear()
    gc.collect()
    null = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1):  # what was not read: the feeder's pipe has no reader any more
        if descriptor != null:
            posix.dup2(null, descriptor)
    if null > 2:
        posix.close(null)
    drained.acquire(True, 2)
    if failure is None:
        frame(number, b"o", b"".join(parts))
    else:
        frame(number, b"e", failure)


# Turns of an episode (rollout/environment): the same turns print the same text. Clocks tick when they are read, what is
# random is seeded, and sys.modules[..] = None makes datetime use the clock of `time`.
def repeatable():
    import _random
    import time
    now = 0.0
    asctime, strftime = time.asctime, time.strftime

    def tick(*seconds):
        nonlocal now
        now += 0.001
        return now

    def sleep(seconds):
        nonlocal now
        now += seconds

    class Random(_random.Random):
        def seed(self, a=None):
            super().seed(0 if a is None else a)

    for name in "time monotonic perf_counter process_time thread_time clock_gettime".split():
        setattr(time, name, tick)
        setattr(time, name + "_ns", lambda *clock: int(tick() * 1e9))
    time.sleep = sleep
    for name in "localtime gmtime ctime".split():
        setattr(time, name, lambda seconds=None, call=getattr(time, name): call(tick() if seconds is None else seconds))
    time.asctime = lambda at=None: asctime(at or time.localtime())
    time.strftime = lambda form, at=None: strftime(form, at or time.localtime())
    sys.modules["_datetime"] = None
    _random.Random = Random
    posix.urandom = posix.getrandom = lambda size, flags=0: bytes(size)


# At most `most` characters: the first and the last half. Addresses of objects differ from run to run.
def shortened(text, most):
    head, *rest = text.rstrip().split(" at 0x")
    text = head + "".join(" at 0x.." + part.lstrip("0123456789abcdef") for part in rest)
    if len(text) > most:
        text = "%s\n[%d characters left out]\n%s" % (text[:most - most // 2], len(text) - most, text[len(text) - most // 2:])
    return text.encode("utf-8", "backslashreplace")


# As an interactive session: what is printed, the value of a last expression, the last line of a traceback. The last
# turn's is the answer; those before it are there for the names that they left.
def run_turns(most, turns):
    import _ast
    from _io import StringIO
    repeatable()
    names = {"__name__": "__main__"}
    for number, code in enumerate(turns):
        out, said = StringIO(), ""
        sys.stdout = out
        try:
            body = compile(code, "python", "exec", 0x400)  # PyCF_ONLY_AST
            value = body.body.pop().value if body.body and type(body.body[-1]) is _ast.Expr else None
            exec(compile(body, "python", "exec"), names)
            value = value and eval(compile(_ast.Expression(value), "python", "eval"), names)
            said = "" if value is None else repr(value)
        except SystemExit:
            pass
        except BaseException as error:
            said = (type(error).__name__ + ": " + str(error)).removesuffix(": ")
    text = out.getvalue()
    frame(number, b"o", shortened(text + ("\n" if text[-1:] not in ("", "\n") else "") + said, most))


def main():
    task = read_all(3)
    posix.close(3)
    at = 0

    def blob():
        nonlocal at
        end = task.index(b"\n", at)
        size = int(task[at:end])
        at = end + 1 + size
        return task[end + 1:at]

    mode, count = blob(), int(blob())
    text = blob().decode("utf-8", "replace")
    steps = [blob() for _ in range(count)]
    frame(0, b"r", b"")
    builtins = vars(sys.modules["builtins"])
    builtins["exit"] = builtins["quit"] = sys.exit  # site makes them elsewhere
    getattr(sys, "set_int_max_str_digits", int)(50000)  # as LiveCodeBench's runner
    sys.argv = ["solution"]
    if mode == b"turns":
        return run_turns(int(text), steps)
    try:
        source = compile(text, "solution", "exec")
    except BaseException as error:
        return frame(0, b"c", described(error))
    if mode == b"input":
        for number, data in enumerate(steps):
            run_with_input(source, text, number, data)
    else:
        run_steps(source, text + "\n" + b"\n".join(step[:4096] for step in steps).decode("utf-8", "replace"), steps)


try:
    main()
    frame(0, b"d", b"")
finally:
    posix._exit(0)
