# Takes tests that are Python apart: what the sandbox runs, and what is expected, which never goes there. A line of JSON
# in, {"asserts", "entry", "prelude"}, a line out: {"steps": [["x" | "t", code]], "expected": [..]} or {"refused": why}.
# It sees tests alone, never a program of a model, and runs nothing: an expected value is worked out node by node.
# An object of the program's own may answer a comparison, an operator or a search as it likes, and learns what it is
# compared with. So results are called for, converted and indexed in the sandbox; all else is refused, by its name.
import ast
import builtins
import json
import math
import resource
import sys

HARMLESS = set("abs all any bool dict enumerate float frozenset int iter len list map max min next range reversed round set sorted str sum "
               "tuple type zip floor ceil trunc fabs Counter deque islice chain deepcopy repr bytes complex".split())
SETTINGS = {"round", "int", "islice", "sorted"}  # whose further arguments say how
MAKERS = HARMLESS | set("ListNode TreeNode list_node tree_node OrderedDict defaultdict namedtuple Fraction Decimal chr ord bin hex oct pow "
                        "divmod slice isinstance print gcd sqrt prod permutations combinations product filter ascii bytearray".split())
MODULES = set("math itertools functools operator collections copy json re string random heapq bisect datetime cmath np numpy".split())
GROWS = {"append", "add", "extend", "appendleft", "insert"}
WORKED_OUT = {f.__name__: f for f in (set, frozenset, tuple, list, dict, float, int, str, bool, sorted, len, sum, min, max, round, abs, bytes)}
TEXTS = set("eval exec compile __import__ globals locals vars getattr setattr delattr open input breakpoint".split())  # run or reach anything
LARGEST = 1 << 20  # items, bits / 64
SAY = "expected assert CALL == LITERAL, which is compared outside"


class Refused(Exception):
    def __init__(self, node, why=""):
        self.text = (node if isinstance(node, str) else ast.unparse(node))[:80]
        self.why = why or "cannot be taken apart; " + SAY


def arithmetic(node, a, b):
    kind = type(node.op)
    numbers = all(isinstance(v, (int, float)) for v in (a, b))
    if kind is ast.Pow and numbers and (abs(b) > 4096 or abs(a) > 1 << 64):
        raise Refused(node)
    if kind is ast.Mult and not numbers and not (isinstance(a, int) != isinstance(b, int) and
                                                 (len(b) * a if isinstance(a, int) else len(a) * b) < LARGEST):
        raise Refused(node)
    if kind is ast.LShift and (not numbers or b > 4096) or kind is ast.Mod and not numbers:
        raise Refused(node)
    done = {ast.Add: lambda: a + b, ast.Sub: lambda: a - b, ast.Mult: lambda: a * b, ast.Div: lambda: a / b, ast.FloorDiv: lambda: a // b,
            ast.Mod: lambda: a % b, ast.Pow: lambda: a ** b, ast.LShift: lambda: a << b, ast.RShift: lambda: a >> b, ast.BitOr: lambda: a | b,
            ast.BitAnd: lambda: a & b, ast.BitXor: lambda: a ^ b}.get(kind)
    if done is None:
        raise Refused(node)
    return done()


def literal(value, left=None):
    """As text that verify/sandbox/value.h reads."""
    left = left or [LARGEST]
    left[0] -= 1
    if left[0] < 1:
        raise Refused("an expected value", "of more than a million parts")

    def each(values):
        return "".join(literal(one, left) + "," for one in values)
    if isinstance(value, (set, frozenset)):
        return "{" + each(value) + "}" if value else "set()"
    if isinstance(value, list):
        return "[" + each(value) + "]"
    if isinstance(value, tuple):
        return "(" + each(value) + ")"
    if isinstance(value, dict):
        return "{" + "".join(literal(key, left) + ":" + literal(one, left) + "," for key, one in value.items()) + "}"
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return ascii(value)
    raise Refused(str(value))


def alike(a, b):
    return type(a) is type(b) and a == b


class Reader:
    def __init__(self, entry, prelude):
        self.entry = entry.split("(")[0]
        self.kinds, self.known = {"candidate": "solution"}, {}  # of names: kinds, and the values of constants
        self.steps, self.expected, self.hows = [], [], []
        try:
            for node in ast.parse(prelude).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
                    self.define(node)
                else:
                    self.bind(node, "input")
        except SyntaxError:
            pass  # of LeetCode's, the half of a class

    # --- what is expected

    def value(self, node):
        if isinstance(node, ast.Constant) and node.value is not ...:
            return node.value
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](map(self.value, node.elts))
        if isinstance(node, ast.Dict) and None not in node.keys:
            return {self.value(key): self.value(item) for key, item in zip(node.keys, node.values)}
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            value = self.value(node.operand)
            return {ast.USub: lambda: -value, ast.UAdd: lambda: +value, ast.Invert: lambda: ~value}[type(node.op)]()
        if isinstance(node, ast.BinOp):
            return arithmetic(node, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id]
        if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in ("inf", "nan", "math.inf", "math.nan", "math.pi", "math.e"):
            return getattr(math, ast.unparse(node).removeprefix("math."))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORKED_OUT and node.func.id not in self.kinds:
            if all(word.arg in ("reverse",) for word in node.keywords):
                return WORKED_OUT[node.func.id](*map(self.value, node.args), **{word.arg: self.value(word.value) for word in node.keywords})
        raise Refused(node)

    def is_value(self, node):
        try:
            literal(self.value(node))
            return True
        except (Refused, TypeError, ValueError, ArithmeticError):
            return False

    # --- what is run

    def kind(self, function):
        """solution | harmless | maker | helper | method of a result | ''"""
        if isinstance(function, ast.Name):
            name = function.id
            if name in self.kinds:
                return self.kinds[name]
            if name in MAKERS or name in MODULES or hasattr(builtins, name):
                return "harmless" if name in HARMLESS else "maker"
            if name == self.entry or name[:1].isupper() or not self.entry:
                return "solution"
            return "maker"
        if not isinstance(function, ast.Attribute) or function.attr.startswith("__"):
            return ""
        of = function.value
        if isinstance(of, ast.Constant) and isinstance(of.value, str):
            return "harmless" if function.attr in ("join", "format") else "maker"
        if isinstance(of, ast.Name) and (self.kinds.get(of.id) == "library" or of.id in MODULES and of.id not in self.kinds):
            return "harmless" if function.attr in HARMLESS else "maker"
        if isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id[:1].isupper() and self.kind(of.func) == "solution":
            return "solution"  # Solution().f
        if isinstance(of, ast.Name) and (self.kinds.get(of.id) == "instance" or self.kind(of) == "solution"):
            return "solution"
        return "method" if self.has_result(of) else "maker"

    def has_result(self, node, made=True):
        """Does what the program gives stand there? `made`: or an object of a class of its own, made of inputs."""
        bound = {getattr(one, "arg", getattr(one, "id", None)) for one in ast.walk(node)
                 if isinstance(one, ast.arg) or isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        return any(isinstance(one, ast.Call) and self.kind(one.func) == "" or isinstance(one, ast.Name) and one.id not in bound and
                   (made or not one.id[:1].isupper() and self.kinds.get(one.id) != "instance") and
                   self.kind(one) in ("solution", "calls", "result", "instance") for one in ast.walk(node))

    def measures(self, node):
        """Refuses what is more than a result that is converted or indexed. What says how is kept, to be compared with what is expected."""
        if isinstance(node, ast.Name) and self.kinds.get(node.id) in ("result", "instance"):
            return
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            return [self.measures(item) for item in node.elts] and None
        if isinstance(node, ast.UnaryOp):
            return self.measures(node.operand)
        if isinstance(node, ast.Subscript) and not self.has_result(node.slice):
            self.hows += [one.value for one in ast.walk(node.slice) if isinstance(one, ast.Constant)]
            return self.measures(node.value)
        if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            return self.measures(node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            before = dict(self.kinds)
            for loop in node.generators:
                of_result = self.has_result(loop.iter)
                if of_result:
                    self.measures(loop.iter)
                self.bind(loop.target, "result" if of_result else "input")
                if any(map(self.has_result, loop.ifs)):
                    raise Refused(node, "decides inside, by a result; " + SAY)
            self.measures(node.elt)
            self.kinds = before
            return
        if isinstance(node, ast.Call):
            return self.measures_call(node)
        raise Refused(node, f"holds {type(node).__name__} around a result, where an object of the program's own decides how it ends; {SAY}")

    def measures_call(self, node):
        kind, arguments = self.kind(node.func), [*node.args, *(word.value for word in node.keywords)]
        results = [argument for argument in arguments if self.has_result(argument)]
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if kind == "solution":
            results = [argument for argument in results if self.has_result(argument, made=False)]
            if results and len(results) < len(arguments):
                raise Refused(node, "hands the program a value beside a result of its own; " + SAY)
            return [self.measures(argument) for argument in results] and None
        if kind == "method" and not arguments:
            return self.measures(node.func.value)
        if kind == "harmless" and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant):
            kind = "harmless"
        elif kind == "harmless" and name == "map" and len(node.args) == 2 and not node.keywords:
            if self.kind(node.args[0]) == "solution" and not self.has_result(node.args[1]):
                return
            if self.kind(node.args[0]) == "harmless":
                return self.measures(node.args[1])
            raise Refused(node)
        elif kind == "harmless" and name in SETTINGS and node.args:
            for how in [*node.args[1:], *(word.value for word in node.keywords)]:
                if not self.is_value(how) and not self.is_key(how):
                    raise Refused(node)
                self.hows += [one.value for one in ast.walk(how) if isinstance(one, ast.Constant)]
            return self.measures(node.args[0])
        elif not (kind == "harmless" or kind == "helper" and name in self.kinds):
            raise Refused(node, f"calls {name or 'what it has made'} with a result, which may compare it; {SAY}")
        if len(results) < len(arguments) or not arguments:
            raise Refused(node, "puts a value beside a result; " + SAY)
        for argument in arguments:
            self.measures(argument)

    def is_key(self, node):
        """lambda v: (v[0], -len(v))"""
        if isinstance(node, ast.Name):
            return node.id in HARMLESS and node.id not in self.kinds
        parts = (ast.Lambda, ast.arguments, ast.arg, ast.Name, ast.Load, ast.Subscript, ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Call)
        return isinstance(node, ast.Lambda) and all(isinstance(one, parts) and (not isinstance(one, ast.Call) or self.kind(one.func) == "harmless")
                                                    for one in ast.walk(node))

    # --- statements

    def bind(self, target, kind):
        for one in ast.walk(target):
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                self.kinds[one.id] = kind
                self.known.pop(one.id, None)

    def define(self, node):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                self.kinds[one.asname or one.name.split(".")[0]] = "library" if isinstance(node, ast.Import) else \
                    "harmless" if one.name in HARMLESS and not one.asname else "maker"
            return
        name = node.targets[0].id if isinstance(node, ast.Assign) else node.name
        self.kinds[name] = "maker"
        before = dict(self.kinds)
        for one in ast.walk(node):
            if isinstance(one, ast.arg) or isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self.kinds.setdefault(getattr(one, "arg", getattr(one, "id", None)), "input")
        calls = any(isinstance(one, ast.Call) and self.kind(one.func) in ("solution", "calls") for one in ast.walk(node))
        plain = not isinstance(node, ast.ClassDef) and all(self.is_plain(one, name) for one in ast.walk(node))
        self.kinds = before | {name: "calls" if calls else "helper" if plain else "maker"}

    def is_plain(self, one, name):
        """Of a function of the tests that may be given a result: it walks and collects, and holds no value."""
        if isinstance(one, ast.Compare):
            return all(isinstance(op, (ast.Is, ast.IsNot)) for op in one.ops) and all(isinstance(c, ast.Constant) and c.value is None for c in one.comparators)
        if isinstance(one, ast.Constant):
            return one.value is None or isinstance(one.value, (bool, int)) and one.value in (0, 1) or one.value == ""
        if isinstance(one, ast.Call):
            if isinstance(one.func, ast.Attribute):
                return one.func.attr in GROWS | {"pop", "popleft"}
            return isinstance(one.func, ast.Name) and (one.func.id == name or one.func.id in HARMLESS and one.func.id != "max" != "min")
        return not isinstance(one, (ast.Try, ast.Raise, ast.Assert, ast.JoinedStr, ast.With, getattr(ast, "Match", ast.Try))) and \
            not (isinstance(one, ast.Attribute) and one.attr.startswith("__")) and not (isinstance(one, ast.BinOp) and not isinstance(one.op, ast.Add))

    def run(self, node):
        self.steps.append(("x", node))

    def statement(self, node, looped=False):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            if any(isinstance(one, ast.Assert) for one in ast.walk(node)):
                raise Refused(node, "has asserts inside; expected each on a line of its own")
            self.define(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            self.assign(node, node.targets if isinstance(node, ast.Assign) else [node.target], looped)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.call(node.value)
        elif isinstance(node, ast.AugAssign) and not self.has_result(node.value) and \
                not any(isinstance(one, ast.Name) and self.kinds.get(one.id) in ("result", "instance") for one in ast.walk(node.target)):
            self.forget(node)
        elif isinstance(node, ast.For) and not node.orelse and not self.has_result(node.iter):
            if any(isinstance(one, ast.Assert) for one in ast.walk(node)):
                raise Refused(node, "has asserts inside; expected each on a line of its own")
            self.bind(node.target, "input")
            for one in node.body * 2:  # once more with what the first pass has said of names
                self.statement(one, looped=True)
        else:
            raise Refused(node, f"decides inside the sandbox ({type(node).__name__.lower()}), where the program's own objects answer; {SAY}")
        if not looped:
            self.run(node)

    def forget(self, node):
        for one in ast.walk(node):
            if isinstance(one, ast.Name):
                self.known.pop(one.id, None)

    def call(self, node):
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.attr in GROWS and \
           any(map(self.has_result, node.args)):
            into = node.func.value.id
            if self.kinds.get(into) not in ("result", "empty") or len(node.args) != 1:
                raise Refused(node, "puts a result beside a value; " + SAY)
            self.measures(node.args[0])
            self.kinds[into] = "result"
            self.known.pop(into, None)
        elif self.has_result(node):
            self.measures(node)
            self.changed_by(node)
        else:
            self.forget(node)

    def changed_by(self, node):
        """What a function of the solution was given it may have written its result to."""
        for argument in getattr(node, "args", []):
            if isinstance(argument, ast.Name):
                self.bind(ast.Name(argument.id, ast.Store()), "result")

    def assign(self, node, targets, looped):
        lone = targets[0] if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
        value = node.value
        self.forget(node)
        if lone is not None and isinstance(value, ast.Lambda):
            return self.define(ast.Assign([lone], value))
        if not self.has_result(value):
            for target in targets:
                if not isinstance(target, (ast.Name, ast.Tuple, ast.List)) and self.has_result(target):
                    raise Refused(node, "puts a value into a result; " + SAY)
                self.bind(target, "input")
            if lone is not None and self.is_value(value):
                empty = isinstance(value, (ast.List, ast.Dict, ast.Set)) and not self.value(value)
                if not looped:
                    self.known[lone.id] = self.value(value)
                self.kinds[lone.id] = "empty" if empty else "input"
            return
        if lone is not None and (isinstance(value, ast.Attribute) and self.kind(value) == "solution" or
                                 isinstance(value, ast.Name) and self.kind(value) == "solution"):
            self.kinds[lone.id] = "solution"
            return
        self.measures(value)
        self.changed_by(value)
        made = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper()
        for target in targets:
            if not isinstance(target, (ast.Name, ast.Tuple, ast.List)):
                raise Refused(node, "puts a result beside a value; " + SAY)
            self.bind(target, "instance" if made and lone is not None else "result")

    # --- asserts

    def test(self, node, form, value=None, **more):
        self.hows = []
        if not self.entry and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS and not self.has_result(node):
            self.kinds.setdefault(node.func.id, "solution")  # a solution called sum
        if not self.has_result(node):
            raise Refused(node, "does not call the program")
        self.measures(node)
        if form != "truth" and any(alike(how, value) and how not in (0, 1) for how in self.hows):
            raise Refused(node, "hands the program a value that says what is expected; " + SAY)
        self.steps.append(("t", node))
        self.expected.append({"form": form, "value": literal(value), **more})

    def assertion(self, node):
        if isinstance(node, ast.Constant) and node.value:
            return  # assert True, "..": tests nothing
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, op, right = node.left, node.ops[0], node.comparators[0]
            if isinstance(op, (ast.Lt, ast.LtE)) and self.is_value(right) and isinstance(left, ast.Call) and \
               getattr(left.func, "id", getattr(left.func, "attr", "")) in ("abs", "fabs") and isinstance(left.args[0], ast.BinOp):
                return self.near(node, left.args[0], self.value(right))
            if isinstance(op, (ast.Eq, ast.Is)):
                expected, tested = (right, left) if self.is_value(right) else (left, right)
                if self.is_value(expected):
                    if isinstance(op, ast.Is) and not isinstance(self.value(expected), (bool, type(None))):
                        raise Refused(node)
                    return self.test(tested, "value", self.value(expected))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("is_same_list", "is_same_tree") and len(node.args) == 2:
            made = node.args[1]
            if isinstance(made, ast.Call) and ast.unparse(made.func) in ("list_node", "tree_node") and self.is_value(made.args[0]):
                values = list(self.value(made.args[0]))
                while values and values[-1] is None:
                    values.pop()
                return self.test(node.args[0], "value", values or None)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("math.isclose", "isclose") and len(node.args) == 2 and self.is_value(node.args[1]):
            words = {word.arg: float(self.value(word.value)) for word in node.keywords}
            return self.test(node.args[0], "near", self.value(node.args[1]), tolerance=words.get("abs_tol", 0.0), relative=words.get("rel_tol", 1e-9))
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        call = node.operand if negated else node
        if isinstance(call, ast.Call) and self.kind(call.func) == "solution" and not any(map(self.has_result, call.args)) and \
           (self.entry or self.kinds.get(getattr(call.func, "id", "")) == "solution" or isinstance(call.func, ast.Attribute)):
            return self.test(call, "truth", negated=negated)
        raise Refused(node)

    def near(self, node, difference, tolerance):
        sides = (difference.left, difference.right)
        constants = [side for side in sides if self.is_value(side)]
        if not isinstance(difference.op, ast.Sub) or len(constants) != 1 or not isinstance(self.value(constants[0]), (int, float)):
            raise Refused(node)
        self.test(sides[sides[0] is constants[0]], "near", self.value(constants[0]), tolerance=float(tolerance), relative=0.0)

    def read(self, body):
        for i, node in enumerate(body):
            called = node.value.args if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and \
                ast.unparse(node.value.func) == "check" else None
            if isinstance(node, ast.Assert):
                self.assertion(node.test)
            elif isinstance(node, ast.FunctionDef) and node.name == "check" and len(node.args.args) == 1:
                self.check(node, body[i + 1:])
            elif isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.Name)) or called is not None:
                pass  # check(f): what it would call has been called by then
            else:
                self.statement(node)

    def check(self, node, rest):
        name, entry = node.args.args[0].arg, self.whole_entry
        for one in rest:
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and ast.unparse(one.value.func) == "check" and len(one.value.args) == 1:
                entry = ast.unparse(one.value.args[0])
        if not entry:
            raise Refused("check", 'does not say which function it checks; expected "entry_point"')
        if name != entry:
            self.run(ast.parse(f"{name} = {entry}").body[0])
        self.kinds[name], self.entry = "solution", name
        self.read(node.body)

    def whole(self, text, entry):
        self.whole_entry = entry
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in TEXTS:
                raise Refused(node, "may run a text or reach anything; " + SAY)
        self.read(tree.body)
        if not self.expected:
            raise Refused(text.strip(), "holds no assert")
        # A name that nothing inside reads, because it is what asserts expect, stays out of the sandbox.
        def sets(kind, node):
            return node.targets[0].id if kind == "x" and isinstance(node, ast.Assign) and len(node.targets) == 1 and \
                isinstance(node.targets[0], ast.Name) and self.is_value(node.value) else None
        read = {one.id for kind, node in self.steps for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        steps = [(kind, node) for kind, node in self.steps if sets(kind, node) in read | {None, self.entry}]
        return {"steps": [[kind, ast.unparse(node)] for kind, node in steps], "expected": self.expected}


def answer(line):
    asked = json.loads(line)
    try:
        return Reader(asked["entry"], asked["prelude"]).whole(asked["asserts"], asked["entry"])
    except Refused as refused:
        return {"refused": f'"{refused.text}" {refused.why}'}
    except SyntaxError as error:
        return {"refused": f'"{(error.text or "").strip()[:80]}" is no Python ({error.msg})'}
    except (RecursionError, MemoryError, OverflowError, ValueError, TypeError, ArithmeticError) as error:
        return {"refused": f"cannot be taken apart ({type(error).__name__})"}


def main():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    getattr(sys, "set_int_max_str_digits", int)(0)
    for line in sys.stdin:
        print(json.dumps(answer(line)), flush=True)


if __name__ == "__main__":
    main()
