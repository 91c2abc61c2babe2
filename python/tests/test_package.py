"""The installed package with nothing but numpy: what it gives, and what it must not do to the process that loads it."""
import ast
import doctest
import glob
import importlib.util
import inspect
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import ucas

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
PACKAGE = os.path.dirname(ucas.__file__)


def goldens(name):
    with open(os.path.join(ROOT, "tests", "goldens", name), encoding="utf-8") as file:
        return [json.loads(line) for line in file] if name.endswith(".jsonl") else json.load(file)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def threads():
    return len(os.listdir("/proc/self/task"))


class Documentation(unittest.TestCase):
    def test_examples_of_the_docstrings(self):
        torch = importlib.util.find_spec("torch") is not None
        modules = ["explanation", "shaping", "stats", "tokenizer", "verifier", "integrations.lm_eval",
                   "integrations.trl", "integrations.verl", *(["lm_head"] if torch else [])]
        for name in modules:
            module = importlib.import_module(f"ucas.{name}")
            failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
            with self.subTest(name):
                self.assertEqual(failed, 0)
                self.assertTrue(tried or name == "tokenizer")


class Types(unittest.TestCase):
    def names_of(self, stub):
        """Names that a stub defines, those of classes as CLASS.NAME; what begins with a capital and is no class is a type of its own."""
        with open(os.path.join(PACKAGE, stub), encoding="utf-8") as file:
            for node in ast.parse(file.read()).body:
                if isinstance(node, ast.ClassDef):
                    yield node.name
                    for inner in node.body:
                        if isinstance(inner, ast.FunctionDef):
                            yield f"{node.name}.{inner.name}"
                elif isinstance(node, ast.FunctionDef):
                    yield node.name
                elif isinstance(node, ast.AnnAssign):
                    yield node.target.id
                elif isinstance(node, ast.ImportFrom) and node.level:
                    yield from (alias.asname for alias in node.names)

    def test_the_stubs_name_what_the_module_has(self):
        self.assertTrue(os.path.exists(os.path.join(PACKAGE, "py.typed")))
        module = ucas._ucas
        there = {name for name in vars(module) if not name.startswith("_")}
        for name in ("Verdict", "Verdicts", "Tokenizer"):
            there |= {f"{name}.{key}" for key in vars(getattr(module, name)) if not key.startswith("_")}
        stubbed = {name for name in self.names_of("_ucas/__init__.pyi") if "__" not in name}
        self.assertEqual(stubbed, there)
        self.assertEqual(set(self.names_of("_ucas/stats.pyi")), {name for name in vars(module.stats) if not name.startswith("_")})
        self.assertEqual({*self.names_of("__init__.pyi")}, {*ucas.__all__, "integrations", "lm_head", "track"})

    def test_every_public_function_says_its_types_and_what_it_does(self):
        for name in ucas.__all__:
            thing = getattr(ucas, name)
            if inspect.ismodule(thing):
                things = [getattr(thing, key) for key in dir(thing) if not key.startswith("_")]
            elif inspect.isclass(thing) and thing.__module__ != "ucas._ucas":
                things = [value for key, value in vars(thing).items() if not key.startswith("_")]
            else:
                things = [thing]
            for one in (getattr(t, "fget", t) for t in things):
                if inspect.isfunction(one) and one.__module__.startswith("ucas"):
                    asked = set(inspect.signature(one).parameters) - {"self"} | {"return"}
                    self.assertEqual(asked - set(one.__annotations__), set(), one.__qualname__)
                    self.assertTrue(one.__doc__, one.__qualname__)


class Verifying(unittest.TestCase):
    def test_agrees_with_the_goldens_of_equality(self):
        rows = goldens("verify/equality.jsonl")
        self.assertGreater(len(rows), 100)
        verdicts = ucas.Verifier("bare").batch([row["gold"] for row in rows], [row["answer"] for row in rows])
        wrong = [row for row, right in zip(rows, verdicts.right) if right != row["equal"]]
        self.assertEqual(wrong, [])

    def test_any_number_of_threads_gives_the_same(self):
        gold = [str(i % 7) for i in range(500)]
        answers = [rf"\boxed{{{i % 5}}}" for i in range(500)]
        one, four = (ucas.Verifier(threads=n).batch(gold, answers) for n in (1, 4))
        np.testing.assert_array_equal(one.score, four.score)
        self.assertEqual(one.kind, four.kind)
        self.assertEqual(one.right.dtype, bool)

    def test_no_text_makes_it_raise(self):
        for text in ("", "\0", "\ud800", r"\boxed{" * 10000, r"\boxed{9^{9^{9^{9}}}}", b"\xff\xfe"):
            self.assertFalse(ucas.verify("1", text), text[:20])

    def test_says_what_is_wrong_with_a_call(self):
        with self.assertRaisesRegex(ucas.Error, "grader .mth.*math"):
            ucas.Verifier(grader="mth")
        with self.assertRaisesRegex(ucas.Error, "as many"):
            ucas.Verifier().batch(["1", "2"], ["1"])
        with self.assertRaisesRegex(ucas.Error, "a list of texts"):
            ucas.Verifier().batch(["1"], "1")
        with self.assertRaisesRegex(ucas.Error, "gold"):
            ucas.verify({"a": 1}, "1")

    def test_travels_by_pickle(self):
        grade = pickle.loads(pickle.dumps(ucas.Verifier("lenient", threads=2)))
        self.assertEqual((grade.extract, grade.threads), ("lenient", 2))
        self.assertTrue(grade.batch(["12"], ["The answer is 12."])[0])


class Shaping(unittest.TestCase):
    def test_ucas_is_algorithm_1_written_with_numpy(self):
        draw = np.random.default_rng(0)
        B, T = 8, 6
        length = draw.integers(1, T + 1, B)
        mask = np.arange(T) < length[:, None]
        C, logit = draw.normal(15, 2, (B, T)).astype(np.float32), draw.normal(20, 5, (B, T)).astype(np.float32)
        reward, group = np.array([1, 0, 0, 1, 1, 0, 1, 0.0]), np.array([4, 9, 4, 9, 4, 9, 9, 4])
        settings = {"alpha": 0.3, "beta": 0.02}
        found = ucas.advantages("ucas", settings=settings, reward=reward, group=group, mask=mask, confidence=C, logit=logit)
        keys = {row["key"]: row["value"] for row in ucas.method("ucas", settings=settings)["settings"]}
        self.assertEqual(keys["ddof"], "1")
        expected = np.zeros((B, T))
        for g in (4, 9):
            rows = np.flatnonzero(group == g)
            R, mean = reward[rows], np.array([C[i, mask[i]].mean() for i in rows])
            A = (R - R.mean()) / (R.std(ddof=1) + 1e-6)
            C_hat = (mean - mean.mean()) / (mean.std(ddof=1) + 1e-6)
            W = np.where(A > 0, np.exp(-0.3 * C_hat), np.exp(0.3 * C_hat))
            np.testing.assert_allclose(found.recorded["W"][rows], W, rtol=1e-4)
            for i, a in zip(rows, W * A):
                l = logit[i, mask[i]]
                shaped = a - 0.02 * (l - l.min()) / (l.max() - l.min() + 1e-6)
                expected[i, mask[i]] = np.maximum(0, shaped) if a >= 0 else shaped
        np.testing.assert_allclose(found.advantage, expected, atol=2e-5)

    def test_order_and_layout_of_the_batch_do_not_matter(self):
        draw = np.random.default_rng(1)
        reward, group, length = draw.integers(0, 2, 12) * 1.0, np.repeat([0, 1, 2], 4), draw.integers(1, 9, 12)
        mask = np.arange(8) < length[:, None]
        signals = {name: draw.normal(5, 1, mask.shape) for name in ("confidence", "logit", "entropy", "old_logprob")}
        whole = ucas.advantages("ucas", reward=reward, group=group, mask=mask, **signals)
        order = draw.permutation(12)
        moved = ucas.advantages("ucas", reward=reward[order], group=group[order], mask=mask[order],
                                **{name: values[order] for name, values in signals.items()})
        np.testing.assert_array_equal(whole.advantage[order], moved.advantage)
        packed = ucas.advantages("ucas", reward=reward, group=group, length=length,
                                 **{name: values[mask] for name, values in signals.items()})
        np.testing.assert_array_equal(whole.advantage[mask], packed.advantage)

    def test_masked_responses_are_in_no_moment_and_learn_nothing(self):
        given = {"reward": [1.0, 0, 0, 1], "group": [0, 0, 1, 1], "mask": np.ones((4, 2))}
        A = ucas.advantages("reinforce_pp", **given, trained=[1, 1, 0, 1]).advantage
        np.testing.assert_array_equal(A[2], 0)
        self.assertAlmostEqual(float(A[[0, 1, 3]].mean()), 0, places=6)
        self.assertNotAlmostEqual(float(ucas.advantages("reinforce_pp", **given).advantage[[0, 1, 3]].mean()), 0, places=3)

    def test_every_method_gives_numbers_or_names_what_it_lacks(self):
        draw = np.random.default_rng(2)
        B, T = 8, 5
        full = {name: draw.normal(-1, 0.2, (B, T)) for name in
                ("old_logprob", "ref_logprob", "entropy", "confidence", "logit", "margin", "min_p_logprob", "value", "prm_logratio",
                 "teacher_logprob")}
        full |= {"reward": np.array([1, 0, 1, 0, 0, 0, 1, 1.0]), "group": np.repeat([0, 1], 4), "mask": np.ones((B, T)),
                 "token": draw.integers(0, 9, (B, T)), "answer_class": np.array([0, 1, 0, 2, 1, 1, 0, 0]),
                 "tail_confidence": draw.normal(0, 1, B), "stop_ids": [8]}
        self.assertGreaterEqual(len(ucas.methods()), 15)
        for name in ucas.methods():
            shaped = ucas.advantages(name, batch=full)
            self.assertTrue(np.isfinite(shaped.advantage).all(), name)
            needs = ucas.method(name)["needs"]
            for word in needs:
                with self.assertRaisesRegex(ucas.Error, word, msg=f"{name} without {word}"):
                    ucas.advantages(name, batch={key: value for key, value in full.items() if key != word})

    def test_parts_of_a_reward_are_normalised_one_by_one(self):
        right, form, group = np.array([1, 0, 0, 0, 1, 0.0]), np.array([0, 0.5, 0.5, 0, 0, 0.25]), np.array([0, 1, 0, 1, 0, 1])
        S = np.zeros(6)
        for part, weight in ((right, 1), (form, 0.5)):
            for g in (0, 1):
                rows = group == g
                S[rows] += weight * (part[rows] - part[rows].mean()) / (part[rows].std(ddof=1) + 1e-4)
        found = ucas.advantages("gdpo", reward=right + form / 2, group=group, length=[1] * 6,
                                terms={"right": right, "form": form}, term_weights={"form": 0.5})
        np.testing.assert_allclose(found.advantage, S / (S.std(ddof=1) + 1e-4), rtol=1e-5)
        with self.assertRaisesRegex(ucas.Error, "form"):
            ucas.advantages("gdpo", reward=right, length=[1] * 6, terms={"form": form[:3]})

    def test_derivatives_of_the_loss_are_its_differences(self):
        draw = np.random.default_rng(3)
        n, step = 40, 1e-3
        old = draw.normal(-2, 0.5, n)
        new, A = old + draw.normal(0, 0.05, n), draw.normal(0, 1, n)

        def loss(logprob):
            return ucas.token_loss("grpo", logprob=logprob, old_logprob=old, advantage=A, length=[20, 20])

        differences = (loss(new + step)["loss"].astype(float) - loss(new - step)["loss"]) / (2 * step)
        np.testing.assert_allclose(loss(new)["d_logprob"], differences, atol=2e-3)

    def test_a_loss_may_read_the_sampler_s_log_probs(self):
        tokens = {"logprob": np.log([0.6]), "old_logprob": np.log([0.55]), "advantage": [1.0], "length": [1]}
        np.testing.assert_allclose(ucas.token_loss("dppo", **tokens)["d_logprob"], -0.6 / 0.55, rtol=1e-5)
        self.assertEqual(ucas.token_loss("dppo", rollout_logprob=np.log([0.4]), **tokens)["d_logprob"][0], 0)

    def test_says_what_is_wrong_with_a_batch(self):
        good = {"reward": [1, 0], "group": [0, 0], "length": [2, 1]}
        for change, words in (({"rewrad": [1]}, "unknown rewrad"), ({"reward": [1, np.nan]}, "finite"), ({"length": [2]}, "length"),
                              ({"confidence": [1.0]}, "confidence"), ({"group": [0]}, "group"), ({"mask": np.ones((2, 2))}, "one of mask")):
            with self.assertRaisesRegex(ucas.Error, words):
                ucas.advantages("grpo", batch={**good, **change})
        with self.assertRaisesRegex(ucas.Error, "grpo"):
            ucas.advantages("gpro", batch=good)
        with self.assertRaisesRegex(ucas.Error, "beta"):
            ucas.advantages("ucas", settings={"beat": 1}, batch=good)


class Statistics(unittest.TestCase):
    def test_agree_with_the_goldens(self):
        data = goldens("stats.json")
        for row in data["pass_at_k"]:
            self.assertAlmostEqual(ucas.stats.pass_at_k(row["n"], row["c"], row["k"]), row["value"], places=12)
        self.assertGreater(len(data["pass_at_k"]), 10)

    def test_refuse_what_means_nothing(self):
        for call in (lambda: ucas.stats.pass_at_k(4, 5, 1), lambda: ucas.stats.share(3, 2), lambda: ucas.stats.mean([]),
                     lambda: ucas.stats.mcnemar([1], [1, 0]), lambda: ucas.stats.share(1, 2, level=1)):
            self.assertRaises(ucas.Error, call)

    def test_the_same_digits_every_time(self):
        x = np.random.default_rng(0).random(50)
        once, again = ucas.stats.bootstrap_mean(x), ucas.stats.bootstrap_mean(x)  # whose p is nan, unequal to itself
        self.assertEqual((once.value, once.low, once.high), (again.value, again.low, again.high))
        self.assertNotEqual(ucas.stats.bootstrap_mean(x), ucas.stats.bootstrap_mean(x, seed=1))


class Tokenizing(unittest.TestCase):
    def test_text_to_ids_and_back(self):
        for folder in sorted(glob.glob(os.path.join(ROOT, "tests/goldens/tokenizer/*-like"))):
            tokenizer = ucas.Tokenizer(folder)
            # The vocabulary of SmolLM2 lacks the digit 8 in this form, as the real one lacks some bytes.
            text = "Let x = 12.5, so 3x+1 = 38.5.\n" if "smollm2" not in folder else "Let x = 12.5.\n"
            ids = tokenizer.encode(text)
            self.assertEqual(ids.dtype, np.int32)
            self.assertEqual(tokenizer.decode(ids).strip(), text.strip(), folder)
            again = pickle.loads(pickle.dumps(tokenizer))
            for one in again.encode_batch([text] * 40, threads=2):
                np.testing.assert_array_equal(one, ids)

    def test_says_which_file_is_missing(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(ucas.Error, "tokenizer.json"):
            ucas.Tokenizer(folder)


class Process(unittest.TestCase):
    def test_a_failed_check_is_an_exception(self):
        with self.assertRaisesRegex(ucas.Bug, "module.cpp:[0-9]+: asked for"):
            ucas._ucas.fail_a_check()
        self.assertTrue(ucas.verify("1", "1"))

    def test_importing_loads_nothing_and_starts_nothing(self):
        done = run("import sys, ucas\n"
                   "assert 'numpy' not in sys.modules and 'ucas._ucas' not in sys.modules\n"
                   "ucas.verify('1', '1'), ucas.advantages, ucas.stats\n"
                   "assert 'torch' not in sys.modules and 'pandas' not in sys.modules")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_no_thread_outlives_a_batch_and_a_fork_may_follow(self):
        before = threads()
        grade = ucas.Verifier(threads=4)
        gold, answers = ["1/2"] * 400, [r"\boxed{0.5}"] * 400
        self.assertTrue(grade.batch(gold, answers).right.all())
        self.assertEqual(threads(), before)
        child = os.fork()
        if child == 0:
            os._exit(0 if grade.batch(gold, answers).right.all() else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_interpreter_is_free_during_a_batch(self):
        grade = ucas.Verifier(threads=1)
        gold, answers = [r"\sqrt{2}+\sqrt{3}"] * 4000, [rf"\boxed{{\sqrt{{5+2\sqrt{{6}}}}+{i % 2}}}" for i in range(4000)]
        ticks, done = 0, threading.Event()
        worker = threading.Thread(target=lambda: (grade.batch(gold, answers), done.set()))
        worker.start()
        while not done.is_set():
            time.sleep(0.001)
            ticks += 1
        worker.join()
        self.assertGreater(ticks, 5)

    def test_only_its_own_names_are_seen_by_other_libraries(self):
        modules = glob.glob(os.path.join(PACKAGE, "_ucas*.so"))
        self.assertEqual(len(modules), 1)
        if sys.version_info >= (3, 12):
            self.assertTrue(modules[0].endswith("_ucas.abi3.so"), modules[0])

        def exported(path):
            listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
            return [line.split()[2] for line in listed.splitlines() if line.split()[1] not in "A"]

        self.assertEqual(exported(modules[0]), ["PyInit__ucas"])
        names = exported(os.path.join(PACKAGE, "libucas.so"))
        self.assertGreater(len(names), 100)
        self.assertEqual([name for name in names if "4ucas" not in name], [])

    def test_the_program_is_inside(self):
        program = os.path.join(os.path.dirname(sys.executable), "ucas")
        done = subprocess.run([program, "verify", "--gold", "1/2", "--answer", "0.5"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("equal", done.stdout)

    def test_programs_are_graded_in_the_sandbox_that_is_inside(self):
        program = os.path.join(os.path.dirname(sys.executable), "ucas")
        good, bad = "def f(x):\n    return x + 1", "def f(x):\n    return x"
        reads = "def f(x):\n    open('/etc/passwd').read()\n    return x + 1"
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/rows.jsonl", "w", encoding="utf-8") as file:
                file.writelines(json.dumps({"gold": "assert f(1) == 2", "prediction": f"```python\n{code}\n```"}) + "\n"
                                for code in (good, bad, reads))
            done = subprocess.run([program, "verify", f"{folder}/rows.jsonl", "--kind", "code", "--out", f"{folder}/out.jsonl"],
                                  capture_output=True, text=True)
            if done.returncode == 78:
                self.skipTest(f"no sandbox on this machine: {done.stderr}")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(f"{folder}/out.jsonl", encoding="utf-8") as file:
                verdicts = [json.loads(line)["verdict"] for line in file]
        self.assertEqual(verdicts, ["equal", "unequal", "unequal"])

    def test_licences_of_what_is_inside(self):
        folder = glob.glob(os.path.join(os.path.dirname(PACKAGE), "ucas-*.dist-info", "licenses"))
        names = " ".join(name for place in folder for _, _, files in os.walk(place) for name in files)
        for word in ("LICENSE", "gmp", "mpfr", "flint", "LGPL", "onig", "ssl", "cpp-httplib", "brotli", "nlohmann-json", "tomlplusplus",
                     "mustache", "xxhash", "libc6", "libstdc++", "nanobind", "robin_map"):
            self.assertIn(word, names)


if __name__ == "__main__":
    unittest.main()
