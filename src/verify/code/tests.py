# Takes tests that are Python apart: what the sandbox runs, and what is expected, which never goes there. A line of JSON
# in, {"asserts", "entry", "prelude", "helpers"}, a line out: {"steps": [["x" | "t", code]], "expected": [..]} or {"refused": why}.
# It sees tests alone, never a program of a model, and runs nothing: an expected value is worked out node by node.
# An object of the program's own may answer a comparison, an operator or a search as it likes, and learns what it is
# compared with. So results are called for, converted and indexed in the sandbox; all else is refused, by its name.
import ast
import builtins
import copy
import json
import math
import operator
import random
import resource
import signal
import string
import sys

CONVERTS = set("abs all any bool dict enumerate float int iter len list map max min next reversed round set sorted str sum tuple zip "
               "floor ceil trunc fabs Counter deque deepcopy repr".split())  # whatever it is given
SETTINGS = {"round", "int", "sorted"}  # whose further arguments say how
KNOWN = set(dir(builtins)) | CONVERTS | set("math itertools functools operator collections copy json re string random heapq bisect datetime cmath np "
                                            "ListNode TreeNode list_node tree_node OrderedDict defaultdict namedtuple Fraction Decimal gcd sqrt inf "
                                            "permutations combinations product islice chain".split())
TEXTS = set("eval exec compile __import__ globals locals vars getattr setattr delattr open input breakpoint".split())  # run or reach anything
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
             ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.USub: operator.neg, ast.UAdd: operator.pos}
COMPARES = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
            ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
WORKED_OUT = {f.__name__: f for f in (set, tuple, list, dict, float, int, str, bool, sorted, len, sum, min, max, round, abs, range, chr, ord)} | {"frozenset": set}
METHODS = {"join", "upper", "lower", "strip", "split", "replace", "count", "index"}  # of texts and lists; they change nothing
DRAWS = {"randint", "choice", "randrange", "uniform"}
MOST_ROUNDS = 1000  # of a loop of asserts
SAY = "expected assert CALL == LITERAL, which is compared outside"


class Refused(Exception):
    def __init__(self, node, why="cannot be taken apart; " + SAY):
        self.why = f'"{(node if isinstance(node, str) else ast.unparse(node)).strip()[:80]}" {why}'


def plain(value):
    """As harness.py writes it: complex numbers as ('complex', real, imaginary)."""
    if isinstance(value, complex):
        return ("complex", value.real, value.imag)
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple, set)) else value


class Reader:
    def __init__(self, entry, prelude, helpers):
        self.whole_entry, self.entry = entry, entry.split("(")[0]
        self.kinds, self.known = {"candidate": "solution"}, {}  # of names: solution, instance, result, input; values of constants
        self.steps, self.expected, self.hows = [], [], []
        self.worked, self.random, self.made = {}, random.Random(0), False  # made: of what is drawn, or of a helper's
        self.helpers = {node.name: node for node in ast.parse(helpers).body if isinstance(node, ast.FunctionDef) and node.name != self.entry}
        try:
            for node in ast.parse(prelude).body:
                self.names(node)
        except SyntaxError:
            pass  # of LeetCode's, the half of a class

    def value(self, node):
        """What is expected, or Refused. Worked out once, for what is drawn stays."""
        if id(node) not in self.worked:
            self.worked[id(node)] = (self.work(node), node)
        return self.worked[id(node)][0]

    def work(self, node):
        if isinstance(node, ast.Constant) and node.value is not ...:
            return node.value
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)](map(self.work, node.elts))
        if isinstance(node, ast.Dict) and None not in node.keys:
            return {self.work(key): self.work(item) for key, item in zip(node.keys, node.values)}
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](self.work(node.operand))
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return (set if isinstance(node, ast.SetComp) else list)(self.each(node.generators, node.elt))
        if isinstance(node, ast.Compare) and all(type(op) in COMPARES for op in node.ops):
            sides = list(map(self.work, [node.left, *node.comparators]))
            return all(COMPARES[type(op)](a, b) for op, a, b in zip(node.ops, sides, sides[1:]))
        if isinstance(node, ast.BoolOp):
            sides = list(map(self.work, node.values))
            return all(sides) if isinstance(node.op, ast.And) else any(sides)
        if isinstance(node, ast.IfExp):
            return self.work(node.body if self.work(node.test) else node.orelse)
        if isinstance(node, ast.Subscript):
            parts = [getattr(node.slice, part, None) for part in ("lower", "upper", "step")]
            at = slice(*(part and self.work(part) for part in parts)) if isinstance(node.slice, ast.Slice) else self.work(node.slice)
            return self.work(node.value)[at]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            a, b = self.work(node.left), self.work(node.right)
            sizes = [len(v) if hasattr(v, "__len__") else abs(v) for v in (a, b)]
            large = {ast.Pow: sizes[1] > 4096 or sizes[0] > 1 << 64, ast.LShift: sizes[1] > 4096, ast.Mod: isinstance(a, (str, bytes)),
                     ast.Mult: hasattr(a, "__len__") != hasattr(b, "__len__") and sizes[0] * sizes[1] > 1 << 20}
            if not large.get(type(node.op)):
                return OPERATORS[type(node.op)](a, b)
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id]
        if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in ("inf", "math.inf", "math.nan", "math.pi", "math.e"):
            return getattr(math, ast.unparse(node).removeprefix("math."))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORKED_OUT and node.func.id not in self.kinds and \
           all(word.arg == "reverse" for word in node.keywords):
            return WORKED_OUT[node.func.id](*map(self.work, node.args), **{word.arg: self.work(word.value) for word in node.keywords})
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "string":
            return str(getattr(string, node.attr))
        return self.work_call(node)

    def work_call(self, node):
        function = node.func if isinstance(node, ast.Call) and not node.keywords else None
        name = getattr(function, "attr", getattr(function, "id", ""))
        called = ast.unparse(function) if function else ""
        if called in (name, "random." + name) and name in DRAWS and self.kinds.get(called.split(".")[0]) == "input":
            self.made = True
            return getattr(self.random, name)(*map(self.work, node.args))
        if called == "sys.getsizeof":
            return sys.getsizeof(self.work(node.args[0]))
        if isinstance(function, ast.Attribute) and name in METHODS and not self.has_result(function.value):
            of = self.work(function.value)
            if isinstance(of, (str, list, tuple)):
                return getattr(of, name)(*map(self.work, node.args))
        if isinstance(function, ast.Name) and name in self.helpers and name not in self.kinds:
            return self.work_helper(self.helpers[name], list(map(self.work, node.args)))
        raise Refused(node)

    def work_helper(self, helper, given):
        """Of a function defined next to the solution's, of assignments alone."""
        kept, self.known, self.made = self.known, dict(zip((one.arg for one in helper.args.args), given, strict=True)), True
        try:
            for node in helper.body:
                if isinstance(node, ast.Return):
                    return self.work(node.value)
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    self.known[node.targets[0].id] = self.work(node.value)
                elif not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                    break
        finally:
            self.known = kept
        raise Refused(helper)

    def each(self, loops, node):
        """The values of a comprehension."""
        kept = dict(self.known)
        for item in self.work(loops[0].iter) if loops else [None]:
            if loops:
                self.let(loops[0].target, item)
            if not loops:
                yield self.work(node)
            elif all(map(self.work, loops[0].ifs)):
                yield from self.each(loops[1:], node)
        self.known = kept

    def let(self, target, value):
        if isinstance(target, ast.Name):
            self.known[target.id] = value
        elif isinstance(target, ast.Tuple):
            for one, item in zip(target.elts, value, strict=True):
                self.let(one, item)
        else:
            raise Refused(target)

    def is_value(self, node):
        try:
            ascii(self.value(node))
            return True
        except (Refused, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            return False

    def kind(self, function):
        """solution | instance | result | input | converts | method (of a result)"""
        if isinstance(function, ast.Name):
            name = function.id
            if name in self.kinds or name in KNOWN:
                return self.kinds.get(name, "converts" if name in CONVERTS else "input")
            return "solution" if not self.entry or name == self.entry or name[:1].isupper() else "input"
        if not isinstance(function, ast.Attribute) or function.attr.startswith("__"):
            return "method"
        of = function.value
        made = of.func if isinstance(of, ast.Call) else of  # Solution().f, s.f
        if isinstance(made, ast.Name) and (self.kind(made) == "solution" and (made is of or made.id[:1].isupper()) or self.kind(of) == "instance"):
            return "solution"
        if isinstance(of, ast.Constant) and function.attr in ("join", "format") or isinstance(of, ast.Name) and function.attr in CONVERTS and \
                self.kind(of) == "input":
            return "converts"
        return "method" if self.has_result(of) else "input"

    def has_result(self, node, made=True):
        """Does what the program gives stand there? `made`: or an object of a class of its own, made of inputs."""
        bound = {getattr(one, "arg", getattr(one, "id", None)) for one in ast.walk(node)
                 if isinstance(one, ast.arg) or isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        return any(isinstance(one, ast.Call) and not isinstance(one.func, (ast.Name, ast.Attribute)) or isinstance(one, ast.Name) and
                   one.id not in bound and (made or not one.id[:1].isupper() and self.kinds.get(one.id) != "instance") and
                   self.kind(one) in ("solution", "result", "instance") for one in ast.walk(node))

    def measures(self, node):
        """Refuses what is more than a result that is called for, converted or indexed. hows: what says how."""
        if isinstance(node, ast.Name) and self.kinds.get(node.id) in ("result", "instance"):
            return
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            for item in node.elts:
                self.measures(item)
        elif isinstance(node, ast.UnaryOp):
            self.measures(node.operand)
        elif isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            self.measures(node.value)
        elif isinstance(node, ast.Subscript) and not self.has_result(node.slice):
            self.how(node.slice)
            self.measures(node.value)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            for loop in node.generators:
                if self.has_result(loop.iter):
                    self.measures(loop.iter)
                self.bind(loop.target, "result" if self.has_result(loop.iter) else "input")
                if any(map(self.has_result, loop.ifs)):
                    raise Refused(node, "decides inside, by a result; " + SAY)
            self.measures(node.elt)
        elif isinstance(node, ast.Call):
            self.measures_call(node)
        else:
            raise Refused(node, f"holds {type(node).__name__} around a result, where an object of the program's own decides how it ends; {SAY}")

    def measures_call(self, node):
        kind, arguments = self.kind(node.func), [*node.args, *(word.value for word in node.keywords)]
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if kind == "converts" and name in SETTINGS and node.args:
            for how in arguments[1:]:
                if not self.is_value(how) and not self.is_key(how):
                    raise Refused(node)
                self.how(how)
            return self.measures(node.args[0])
        if kind == "converts" and name == "map" and len(arguments) == 2 and self.kind(node.args[0]) in ("converts", "solution"):
            return self.measures(node.args[1]) if self.kind(node.args[0]) == "converts" or self.has_result(node.args[1]) else None
        if kind == "method" and not arguments and isinstance(node.func, ast.Attribute) and not node.func.attr.startswith("__"):
            return self.measures(node.func.value)
        if kind not in ("solution", "converts"):
            raise Refused(node, f"calls {name or 'what it has made'} with a result, which may compare it; {SAY}")
        results = [argument for argument in arguments if self.has_result(argument, made=kind != "solution")]
        if len(results) < len(arguments) and (results or kind == "converts"):
            raise Refused(node, "puts a value beside a result; " + SAY)
        for result in results:
            self.measures(result)

    def how(self, node):
        self.hows += [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]

    def is_key(self, node):
        """lambda v: (v[0], -len(v))"""
        parts = (ast.Lambda, ast.arguments, ast.arg, ast.Name, ast.Load, ast.Subscript, ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Call)
        return isinstance(node, ast.Name) and self.kind(node) == "converts" or isinstance(node, ast.Lambda) and all(
            isinstance(one, parts) and (not isinstance(one, ast.Call) or self.kind(one.func) == "converts") for one in ast.walk(node))

    def bind(self, target, kind):
        for one in ast.walk(target):
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                self.kinds[one.id] = kind
                self.known.pop(one.id, None)

    def names(self, node):
        """Those that a statement without a result makes: they are the tests' own. What calls the program in a function of the tests is refused."""
        self.bind(node, "input")
        for one in getattr(node, "names", []):
            self.kinds[one.asname or one.name.split(".")[0]] = "converts" if one.name in CONVERTS and not one.asname else "input"
        name = getattr(node, "name", None) or (node.targets[0].id if isinstance(getattr(node, "value", None), ast.Lambda) else None)
        if name:
            self.kinds[name] = "converts" if all(self.is_plain(one, name) for one in ast.walk(node)) else "input"

    def is_plain(self, one, name):
        """Of a function of the tests that may be given a result: it walks and collects, and holds no value."""
        if isinstance(one, ast.Compare):
            return all(isinstance(op, (ast.Is, ast.IsNot)) for op in one.ops) and all(isinstance(c, ast.Constant) and c.value is None for c in one.comparators)
        if isinstance(one, ast.Constant):
            return one.value in (None, True, False, "")
        if isinstance(one, ast.Call):
            return getattr(one.func, "attr", None) in ("append", "pop") or getattr(one.func, "id", None) in {name} | CONVERTS - {"max", "min"}
        return isinstance(one, (ast.FunctionDef, ast.arguments, ast.arg, ast.Assign, ast.Expr, ast.Return, ast.While, ast.If, ast.For, ast.IfExp, ast.Lambda, ast.Name,
                                ast.Attribute, ast.List, ast.Subscript, ast.BinOp, ast.Add, ast.Not, ast.UnaryOp, ast.expr_context, ast.Is, ast.IsNot)) and \
            not getattr(one, "attr", "").startswith("__")

    def statement(self, node):
        value = getattr(node, "value", None)
        if any(isinstance(one, ast.Assert) for one in ast.walk(node)):
            raise Refused(node, "has asserts inside; expected each on a line of its own, or a loop over values")
        self.made = False
        known = isinstance(node, ast.Assign) and len(node.targets) == 1 and not self.has_result(value) and self.is_value(value)
        if self.made and known:
            value = ast.parse(repr(self.value(value)), mode="eval").body
            node = ast.Assign(node.targets, value, lineno=node.lineno)
        for one in ast.walk(node.targets[0] if known and isinstance(self.value(value), (str, int, float)) else node):  # what is named may be changed
            if isinstance(one, ast.Name):
                self.known.pop(one.id, None)
        self.steps.append(("x", node))
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)) or isinstance(value, ast.Lambda):
            self.names(node)
            if self.has_result(node):
                raise Refused(node, "calls the program; " + SAY)
        elif not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)) or value is None:
            raise Refused(node, f"decides inside the sandbox ({type(node).__name__.lower()}), where the program's own objects answer; {SAY}")
        elif isinstance(node, ast.AugAssign) or not self.has_result(value):
            targets = getattr(node, "targets", [getattr(node, "target", value)])
            if self.has_result(value) or any(self.kinds.get(one.id) in ("result", "instance") and not isinstance(target, (ast.Name, ast.Tuple)) or
                                             isinstance(node, ast.AugAssign) and self.kinds.get(one.id) in ("result", "instance")
                                             for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
                raise Refused(node, "puts a value beside a result; " + SAY)
            self.names(node)
            if known and isinstance(targets[0], (ast.Name, ast.Tuple)):
                self.let(targets[0], self.value(value))
        else:
            self.keep_result(node, value)

    def keep_result(self, node, value):
        targets = getattr(node, "targets", [node.target] if isinstance(node, ast.AnnAssign) else [])
        kind = "result"
        if isinstance(value, (ast.Name, ast.Attribute)) and self.kind(value) == "solution":
            kind = "solution"
        else:
            self.measures(value)
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
                kind = "instance"
            for argument in getattr(value, "args", []):  # what a function was given it may have written its result to
                if isinstance(argument, ast.Name):
                    self.bind(ast.Name(argument.id, ast.Store()), "result")
        for target in targets:
            if not isinstance(target, (ast.Name, ast.Tuple, ast.List)):
                raise Refused(node, "puts a result beside a value; " + SAY)
            self.bind(target, kind if isinstance(target, ast.Name) else "result")

    def test(self, node, form, value=None, **more):
        self.hows = []
        if not self.entry and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not self.has_result(node):
            self.kinds.setdefault(node.func.id, "solution")  # a solution called sum
        if not self.has_result(node):
            raise Refused(node, "does not call the program")
        self.measures(node)
        if form != "truth" and any(type(how) is type(value) and how == value and how not in (0, 1) for how in self.hows):
            raise Refused(node, "hands the program a value that says what is expected; " + SAY)
        self.steps.append(("t", node))
        self.expected.append({"form": form, "value": ascii(plain(value)), **more})

    def assertion(self, node):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Constant) and node.value:
            return  # assert True, "..": tests nothing
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, op, right = node.left, node.ops[0], node.comparators[0]
            if self.whole_entry and isinstance(left, ast.Call) and ast.unparse(left).replace(self.entry, self.whole_entry) == ast.unparse(right):
                return  # the solution against itself
            if isinstance(op, (ast.Lt, ast.LtE)) and isinstance(left, ast.Call) and ast.unparse(left.func) in ("abs", "math.fabs") and \
               isinstance(left.args[0], ast.BinOp) and isinstance(left.args[0].op, ast.Sub):
                a, b = left.args[0].left, left.args[0].right
                expected, tested = (b, a) if self.is_value(b) else (a, b)
                return self.test(tested, "near", float(self.value(expected)), tolerance=float(self.value(right)), relative=0.0)
            expected, tested = (right, left) if self.is_value(right) else (left, right)
            if isinstance(op, ast.Eq) or isinstance(op, ast.Is) and isinstance(self.value(expected), (bool, type(None))):
                return self.test(tested, "value", self.value(expected))
        elif called in ("is_same_list", "is_same_tree") and isinstance(node.args[1], ast.Call) and ast.unparse(node.args[1].func) in ("list_node", "tree_node"):
            values = list(self.value(node.args[1].args[0]))
            while values and values[-1] is None:
                values.pop()
            return self.test(node.args[0], "value", values or None)
        elif called in ("math.isclose", "isclose"):
            words = {word.arg: float(self.value(word.value)) for word in node.keywords}
            return self.test(node.args[0], "near", float(self.value(node.args[1])), tolerance=words.get("abs_tol", 0.0), relative=words.get("rel_tol", 1e-9))
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        call = node.operand if negated else node
        if isinstance(call, ast.Call) and self.kind(call.func) == "solution" and not any(map(self.has_result, call.args)):
            return self.test(call, "truth", negated=negated)
        raise Refused(node)

    def read(self, body):
        for i, node in enumerate(body):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assert):
                self.assertion(node.test)
            elif isinstance(node, ast.For) and any(isinstance(one, ast.Assert) for one in ast.walk(node)) and not node.orelse and self.is_value(node.iter):
                for item in list(self.value(node.iter))[:MOST_ROUNDS]:
                    self.statement(ast.parse(f"{ast.unparse(node.target)} = {item!r}").body[0])
                    self.read(copy.deepcopy(node.body))
            elif isinstance(node, ast.FunctionDef) and node.name == "check" and len(node.args.args) == 1:
                calls = [one.value for one in body[i + 1:] if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
                name, entry = node.args.args[0].arg, [ast.unparse(one.args[0]) for one in calls if ast.unparse(one.func) == "check" and one.args]
                entry = entry[-1] if entry else self.whole_entry
                if not entry:
                    raise Refused("check", 'does not say which function it checks; expected "entry_point"')
                if name != entry:
                    self.steps.append(("x", ast.parse(f"{name} = {entry}").body[0]))
                self.kinds[name], self.entry = "solution", name
                self.read(node.body)
            elif not isinstance(node, ast.Pass) and not (isinstance(node, ast.Expr) and (
                    isinstance(value, (ast.Constant, ast.Name)) or isinstance(value, ast.Call) and ast.unparse(value.func) == "check")):
                self.statement(node)  # check(f): what it would call has been called by then

    def whole(self, text):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in TEXTS:
                raise Refused(node, "may run a text or reach anything; " + SAY)
        self.read(tree.body)
        if not self.expected:
            raise Refused(text, "holds no assert")
        # A name that nothing inside reads, because it is what asserts expect, stays out of the sandbox.
        read = {one.id for _, node in self.steps for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)} | {self.entry}
        steps = [(kind, node) for kind, node in self.steps if kind == "t" or not isinstance(node, ast.Assign) or not self.is_value(node.value) or
                 not isinstance(node.targets[0], ast.Name) or node.targets[0].id in read]
        return {"steps": [[kind, ast.unparse(node)] for kind, node in steps], "expected": self.expected}


def answer(line):
    asked = json.loads(line)
    try:
        return Reader(asked["entry"], asked["prelude"], asked.get("helpers", "")).whole(asked["asserts"])
    except Refused as refused:
        return {"refused": refused.why}
    except SyntaxError as error:
        return {"refused": f'"{(error.text or "").strip()[:80]}" is no Python ({error.msg})'}
    except Exception as error:  # of a form that the above did not expect, or too large or too deep
        return {"refused": f"cannot be taken apart ({type(error).__name__})"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    getattr(sys, "set_int_max_str_digits", int)(0)
    for line in sys.stdin:
        signal.alarm(60)  # seconds for the tests of a problem
        print(json.dumps(answer(line)), flush=True)
        signal.alarm(0)
