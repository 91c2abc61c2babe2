"""Runs driven into a fault are told from a healthy one by what they recorded: `ucas diagnose`."""
import json

from support import check, path, small_task, train_words, ucas

small_task()


def causes(run, *more, expect=0):
    ucas(*train_words(path(run), "--train.stored_signals", 1, "--train.test_freq", 0, "--update.mini_batch_size", 1,
                     "--threads", 1, *more), expect=expect)
    return json.loads(ucas("diagnose", path(run), "--json").stdout)


def found(diagnosis):
    return [cause["cause"] for cause in diagnosis["causes"] if not cause["note"]]


# The same prompts and seeds; a learning rate of the config, and a hundred times as much.
calm = causes("calm", "--train.steps", 8)
fast = causes("fast", "--train.steps", 8, "--optimizer.lr", 5e-2)
print("calm:", found(calm), calm["trends"])
print("fast:", found(fast), fast["trends"])
check("Unstable updates" not in found(calm), "a calm run is not called a wild one")
check("Unstable updates" in found(fast), "a learning rate a hundred times as large is found by how far the policy moves")
cause = next(c for c in fast["causes"] if c["cause"] == "Unstable updates")
moved = next(e for e in cause["evidence"] if e["metric"] == "actor/ppo_kl")
check(abs(moved["after"]) > 0.05, "with the figure of the step")
check(any(t["option"] == "optimizer.lr" and float(t["now"]) == 5e-2 for t in cause["try"]), "and the option with its value")

# A limit that cuts every answer.
cut = causes("cut", "--train.steps", 3, "--rollout.response_length", 4)
check("Length clipping" in found(cut), f"a limit of 4 tokens is found: {found(cut)}")
clip = next(c for c in cut["causes"] if c["cause"] == "Length clipping")
check(clip["since"] == 1 and clip["from_the_start"], "since the first step")
check(all("no end" in r["what"] and r["tokens"] == 4 for r in clip["responses"]) and clip["responses"], "by responses")
text = ucas("diagnose", path("cut")).stdout
check("--rollout.response_length (now 4): raise it" in text, "what to try names the value that is set")
