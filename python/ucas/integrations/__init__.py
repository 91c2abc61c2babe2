"""ucas inside what you already run; each file says how it is named there, and imports that package only if it needs it.

trl                rewards for `GRPOTrainer(reward_funcs=...)`
trl_trainer        a `GRPOTrainer` whose advantages are those of any method
verl               `compute_score` of `reward.custom_reward_function`
verl_algorithms    advantage estimators and policy losses, loaded by VERL_USE_EXTERNAL_MODULES
lighteval          a sample-level metric
lm_eval            `process_results` of a task
verifiers          a reward of a task (prime-rl, too)
"""


def text_of(completion):
    """A completion as text: itself, or what the last message of a conversation says."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    if isinstance(content, list):  # parts of a multimodal message
        return "".join(part.get("text", "") for part in content)
    return content or ""
