"""What a model wrote runs in the sandbox or nowhere. So this lists all that starts a program, and all of Python beside the program that
evaluates a text, with what each may see of a model's text: who adds one says it here, and in SECURITY.md where that is more than nothing."""
import re

from tree import files, report, text

STARTS = re.compile(r"\b(?:start_child|run_python|posix_spawnp?|popen|system|v?fork|exec[vl]p?e?)\(")
EVALUATES = re.compile(r"(?<![\w.])(?:eval|exec|compile|__import__|parse_expr|sympify)\(|\bsubprocess\b|\bos\.(?:system|exec|popen|posix_spawn|fork)|\bpickle\b"
                       r"|exec_module|import_module|\bfrom_string\(")
NAMED = {
    "src/base/process/python_child.cpp": "the Python of the user: which script is said below, by name",
    "src/base/process/python_child.h": "its interface",
    "src/cli/launch.cpp": "ranks, which are this program",
    "src/hf/hub.cpp": "reasoning.py rows: makes problems, before there is a model's text",
    "src/base/process/line_child.cpp": "OUTSIDE, the user's own code: reward.command and reward.python get responses as texts; reasoning.py's scorers "
                                            "hand them into the sandbox; method.python gets tokens; rollout.tools gets turns, and arguments that they name; chat_template.py below",
    "src/rollout/environment/tools.cpp": "tools.py describe: loads the user's functions, before there is a model's text",
    "src/train/collect/scorer.cpp": "reward.py check: loads the user's function and binds it to rows of the data, before there is a model's text",
    "src/verify/code/tests.cpp": "tests.py: takes tests apart, sees nothing else and runs nothing",
    "src/verify/sandbox/launcher/keep.cpp": "what python_child.cpp starts",
    "src/verify/sandbox/launcher/main.cpp": "the sandbox itself",
    "src/verify/sandbox/sandbox.cpp": "the launcher of the sandbox, and an interpreter that is asked for its version",
    "python/ucas/__init__.py": "imports its own modules",
    "python/ucas/_program.py": "becomes the program",
    "python/ucas/advantage.py": "loads the user's function by reward.py's text",
    "python/ucas/chat_template.py": "a checkpoint's template, in jinja2's sandbox: gets conversations, of which a model's turns may be part, as data",
    "python/ucas/reasoning.py": "scores answers inside the sandbox alone: what evaluates them starts with `os.getpid() != 1`",
    "python/ucas/reward.py": "imports the user's function",
    "python/ucas/tools.py": "loads the user's functions by reward.py's text; evaluates nothing of a call, which JSON reads",
    "python/ucas/training.py": "starts the program",
}


def main():
    looked_at = [f for f in files(".cpp", ".h", under="src") if not f.endswith("_test.cpp")] + files(".py", under="python/ucas")
    found = {path for path in looked_at if any((EVALUATES if path.endswith(".py") else STARTS).search(line.split("//")[0] if path.endswith((".cpp", ".h")) else
                                                                                                       line.split("#")[0]) for line in text(path).split("\n"))}
    problems = [f"{path}: starts or evaluates something: say in tests/guards/outside.py what it may see of a model's text" for path in sorted(found - set(NAMED))]
    problems += [f"{path}: needs no place on this guard's list any more" for path in sorted(set(NAMED) - found)]
    script = text("python/ucas/reasoning.py")
    body = re.search(r"\ndef inside\(.*?(?=\n\n\n)", script, re.DOTALL).group(0)
    for word, times in (("score_answer", 1), ("_apart(", 2)):  # once more where it is defined
        if word not in body or script.count(word) != times:
            problems.append(f"python/ucas/reasoning.py: {word} stands elsewhere than in inside()")
    if "os.getpid() != 1" not in body:
        problems.append("python/ucas/reasoning.py: inside() does not look where it is")
    report("outside", problems, len(looked_at))


main()
