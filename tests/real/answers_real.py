"""Log-probabilities and greedy answers of the real model against those of transformers (tests/goldens/real/answers.json): in f32 the
same tokens and figures; in bf16 another token only where two were close, and figures that are no further from f32 than rounding takes them."""
from real import check, clean, golden, greedy, lines, model, path, ucas, write_lines

from prompts import LONGEST, PROMPTS  # noqa: E402

CLOSE = 0.6  # logits: where two are closer in f32, bf16 may take the other
rows = golden("answers.json")


def scored(folder, dtype):
    """Per token: log-prob by ucas less that of transformers in f32."""
    data = write_lines(path("rows.jsonl"), [{"prompt_ids": r["prompt_ids"], "response_ids": r["f32"]["ids"]} for r in rows])
    ucas("score", "--model", folder, data, "--dtype", dtype, "--out", path(f"scores-{dtype}.jsonl"))
    return [x - y for row, made in zip(rows, lines(path(f"scores-{dtype}.jsonl")), strict=True)
            for x, y in zip(made["logprob"], row["f32"]["logprob"], strict=True)]


differences = scored(model(), "f32")
check(max(map(abs, differences)) < 1e-4, f"f32: log-probs of {len(differences)} tokens within {max(map(abs, differences)):.1e} of transformers")
wide = scored(model(), "bf16")
mean = sum(map(abs, wide)) / len(wide)
check(mean < 0.03 and max(map(abs, wide)) < 1, f"bf16: mean {mean:.4f}, largest {max(map(abs, wide)):.3f} from transformers in f32")

answers = greedy(model(), PROMPTS, "f32", LONGEST)
check([a["prompt_ids"] for a in answers] == [r["prompt_ids"] for r in rows], f"chat template: {len(rows)} prompts have the same ids")
same = sum(a["response_ids"] == r["f32"]["ids"] for a, r in zip(answers, rows))
check(same == len(rows), f"f32: {same} of {len(rows)} greedy answers are those of transformers, token for token")
alone = greedy(model(), PROMPTS[:4], "f32", LONGEST, "--max_slots", 1)
check([a["response_ids"] for a in alone] == [a["response_ids"] for a in answers[:4]], "one at a time they are the same")

narrow = greedy(model(), PROMPTS, "bf16", LONGEST)
for answer, row in zip(narrow, rows):
    ours, theirs = answer["response_ids"], row["f32"]["ids"]
    at = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if x != y), None)
    if at is not None:
        check(row["f32"]["lead"][at] < CLOSE, f"bf16 leaves f32 where two tokens are within {row['f32']['lead'][at]:.3f}: {row['prompt']}")
of = {name: sum(a == r["f32"]["ids"] for a, r in zip(answer, rows))
      for name, answer in (("ucas", [a["response_ids"] for a in narrow]), ("transformers", [r["bf16"]["ids"] for r in rows]))}
check(of["ucas"] >= min(of["transformers"], 6), f"bf16: {of['ucas']} of {len(rows)} answers are those of f32, by transformers' bf16 {of['transformers']}")
clean()
