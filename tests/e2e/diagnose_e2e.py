"""Runs driven into a fault are told from a healthy one by what they recorded: `ucas diagnose`."""
import re

from support import check, path, small_task, train_words, ucas

small_task()


def diagnosis(run, *more, expect=0):
    ucas(*train_words(path(run), "--train.stored_signals", 1, "--train.test_freq", 0, "--update.mini_batch_size", 1,
                     "--threads", 1, *more), expect=expect)
    text = ucas("diagnose", path(run)).stdout
    print(f"{run}:\n{text}")
    return text


def cause(text, title):
    """What is said of one cause: from its number to the next one's."""
    found = re.search(rf"^\d+\. {title}, (.*?)(?=^\S|\Z)", text, re.M | re.S)
    return found and found[1]


# The same prompts and seeds; a learning rate of the config, and a hundred times as much.
calm = diagnosis("calm", "--train.steps", 8)
fast = diagnosis("fast", "--train.steps", 8, "--optimizer.lr", 5e-2)
check(not cause(calm, "Unstable updates"), "a calm run is not called a wild one")
unstable = cause(fast, "Unstable updates")
check(unstable, "a learning rate a hundred times as large is found by how far the policy moves")
moved = re.search(r"actor/ppo_kl +\S+ +(\S+)", unstable)
check(abs(float(moved[1])) > 0.05, "with the figure of the step")
check("--optimizer.lr (now 0.05)" in " ".join(unstable.split()), "and the option with its value")

# A limit that cuts every answer.
text = diagnosis("cut", "--train.steps", 3, "--rollout.response_length", 4)
clip = cause(text, "Length clipping")
check(clip, "a limit of 4 tokens is found")
check(clip.startswith("since step 1, the first"), "since the first step")
shown = re.findall(r"^     step \d+, .*?: (.*)$", clip, re.M)
check(shown and all(what.startswith("4 tokens, no end") for what in shown), "by responses")
check("--rollout.response_length (now 4): raise it" in text, "what to try names the value that is set")
