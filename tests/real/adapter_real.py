"""A low-rank adapter that ucas trains on the real model, and what `ucas merge` makes of it: peft and transformers answer as ucas does from both."""
import json
import os
import subprocess

from real import check, clean, greedy, lines, model, path, peers, ucas, write_lines

from prompts import PROMPTS, TUNED, word_problem  # noqa: E402

ASKED, LENGTH = [PROMPTS[2], word_problem(3)[0], PROMPTS[10]], 24
ANSWER = """
import json, sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
base, adapter, merged, prompts = sys.argv[1:]
prompts = json.load(open(prompts))
def answers(model):
    return [model.generate(torch.tensor([ids]), max_new_tokens=%d, do_sample=False, pad_token_id=2)[0, len(ids):].tolist() for ids in prompts]
load = lambda folder: AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
print(json.dumps({"peft": answers(PeftModel.from_pretrained(load(base), adapter)), "merged": answers(load(merged))}))
""" % LENGTH

data = write_lines(path("rows.jsonl"), TUNED)
ucas("sft", "--model", model(), "--data", data, "--batch_size", len(TUNED), "--steps", 3, "--optimizer.lr", "2e-3", "--lora.rank", 8, "--lora.alpha", 16,
     "--save_freq", 0, "--out", path("adapter"))
losses = [row["loss"] for row in lines(path("adapter", "sft.jsonl"))]
check(losses[-1] < losses[0], f"the adapter learns: loss {', '.join(f'{loss:.3f}' for loss in losses)}")
ucas("export", path("adapter"), "--out", path("merged"))
ours = {name: greedy(folder, ASKED, "f32", LENGTH) for name, folder in (("base", model()), ("adapter", path("adapter")), ("merged", path("merged")))}
ids = {name: [row["response_ids"] for row in rows] for name, rows in ours.items()}
check(ids["adapter"] == ids["merged"], "adapter and merged checkpoint answer alike")
check(ids["adapter"] != ids["base"], f"and not as the base: {ours['adapter'][1]['response']!r}, {ours['base'][1]['response']!r} before")
python = peers()
if python is None:
    print("left out: the same by peft and transformers, which cannot be had here")
else:
    with open(path("prompts.json"), "w") as file:
        json.dump([row["prompt_ids"] for row in ours["adapter"]], file)
    made = subprocess.run([python, "-c", ANSWER, model(), path("adapter"), path("merged"), path("prompts.json")], capture_output=True, text=True,
                          env={**os.environ, "HF_HUB_OFFLINE": "1"})
    check(made.returncode == 0, f"the peers end with {made.returncode}\n{made.stderr[-2000:]}" if made.returncode else "peft loads the adapter, transformers the merged one")
    theirs = json.loads(made.stdout.strip().splitlines()[-1])
    check(theirs["peft"] == ids["adapter"], f"peft gives the same {sum(map(len, ids['adapter']))} tokens from the adapter")
    check(theirs["merged"] == ids["merged"], "and transformers from the merged checkpoint")
clean()
