"""The integrations inside the real packages (verifiers in test_verifiers.py, in an environment of its own); each is skipped,
and says so, where its package is not installed. tools/test_integrations installs all of them, and UCAS_ALL_INTEGRATIONS=1 makes a missing one a failure."""
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import ucas

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
HALF = [r"it is \boxed{0.5}", r"so \boxed{\frac{1}{2}}", r"\boxed{2}", "none"]


def needs(*packages):
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if absent and os.environ.get("UCAS_ALL_INTEGRATIONS"):
        raise AssertionError(f"not installed: {', '.join(absent)}")
    return unittest.skipIf(absent, f"not installed: {', '.join(absent)}")


class TrlReward(unittest.TestCase):
    def test_reads_texts_and_conversations_and_leaves_out_rows_without_a_solution(self):
        from ucas.integrations.trl import accuracy_reward

        extra = {}
        chats = [[{"role": "assistant", "content": HALF[0]}], [{"role": "assistant", "content": [{"type": "text", "text": HALF[2]}]}]]
        rewards = accuracy_reward(prompts=["?"] * 4, completions=[*chats, HALF[1], HALF[3]], completion_ids=[[1]] * 4,
                                  trainer_state=None, log_extra=extra.__setitem__, log_metric=extra.__setitem__,
                                  solution=["1/2", r"We find \boxed{1/2}", None, "1/2"])
        self.assertEqual(rewards, [1.0, 0.0, None, 0.0])
        self.assertEqual(extra["ucas_verdict"][3], "unparseable")
        again = pickle.loads(pickle.dumps(accuracy_reward))
        self.assertEqual(again.__name__, "ucas_accuracy")
        self.assertEqual(again(completions=HALF, solution=["1/2"] * 4), [1, 1, 0, 0])


@needs("trl", "torch", "transformers", "datasets")
class Trl(unittest.TestCase):
    def train(self, folder, trainer_of, **settings):
        import datasets
        import transformers
        import trl

        transformers.set_seed(0)
        words = ["1+1=", "1+2=", r"\boxed{2}", r"\boxed{3}", r"\boxed{4-1}", " so", " x", " y"]
        maker = os.path.join(ROOT, "tests", "support", "make_checkpoint.py")
        subprocess.run([sys.executable, maker, folder, "--words", ",".join(words), "--hidden", "32", "--layers", "1", "--heads", "2",
                        "--kv-heads", "2", "--intermediate", "32", "--vocab", "10"], check=True, capture_output=True)
        rows = [{"prompt": "1+1=", "solution": "2"}, {"prompt": "1+2=", "solution": "3"}] * 8
        args = trl.GRPOConfig(output_dir=f"{folder}/out", use_cpu=True, bf16=False, per_device_train_batch_size=16, num_generations=8,
                              max_completion_length=4, max_steps=2, learning_rate=1e-2, report_to=[], save_strategy="no",
                              logging_steps=1, disable_tqdm=True, gradient_checkpointing=False, **settings)
        trainer = trainer_of(args=args, train_dataset=datasets.Dataset.from_list(rows),
                             model=transformers.AutoModelForCausalLM.from_pretrained(folder),
                             processing_class=transformers.PreTrainedTokenizerFast.from_pretrained(folder))
        seen, score = [], trainer._generate_and_score_completions

        def scored(inputs):
            seen.append(score(inputs))
            return seen[-1]

        trainer._generate_and_score_completions = scored
        before = [p.detach().clone() for p in trainer.model.parameters()]
        trainer.train()
        changed = any((a != b.detach()).any() for a, b in zip(before, trainer.model.parameters()))
        return seen, trainer, changed

    def test_a_training_with_our_reward(self):
        import trl
        from ucas.integrations.trl import accuracy_reward

        with tempfile.TemporaryDirectory() as folder:
            _, trainer, changed = self.train(folder, lambda **kw: trl.GRPOTrainer(reward_funcs=accuracy_reward, **kw))
        self.assertTrue(changed)
        rewards = [row["rewards/ucas_accuracy/mean"] for row in trainer.state.log_history if "reward" in row]
        self.assertEqual(len(rewards), 2)
        self.assertTrue(0 < rewards[0] < 1, rewards)

    def test_a_training_with_advantages_of_grpo_is_trls_own(self):
        import trl
        from ucas.integrations.trl import accuracy_reward
        from ucas.integrations.trl_trainer import UcasTrainer

        with tempfile.TemporaryDirectory() as folder:
            ours, _, _ = self.train(folder, lambda **kw: UcasTrainer(reward_funcs=accuracy_reward, method="grpo", **kw))
        with tempfile.TemporaryDirectory() as folder:
            theirs, _, _ = self.train(folder, lambda **kw: trl.GRPOTrainer(reward_funcs=accuracy_reward, **kw))
        mask = ours[0]["completion_mask"].bool()
        np.testing.assert_array_equal(ours[0]["completion_ids"], theirs[0]["completion_ids"])
        expected = theirs[0]["advantages"][:, None].expand(mask.shape)[mask]
        self.assertGreater(float(expected.abs().max()), 0.1)
        np.testing.assert_allclose(ours[0]["advantages"][mask], expected, rtol=2e-3)

    def test_a_training_with_advantages_of_ucas(self):
        from ucas.integrations.trl import accuracy_reward
        from ucas.integrations.trl_trainer import UcasTrainer

        with tempfile.TemporaryDirectory() as folder:
            seen, trainer, changed = self.train(folder, lambda **kw: UcasTrainer(reward_funcs=accuracy_reward, method="ucas", **kw))
        self.assertTrue(changed)
        advantage, mask = seen[0]["advantages"], seen[0]["completion_mask"].bool()
        self.assertEqual(advantage.shape, mask.shape)
        self.assertTrue((advantage[~mask] == 0).all())
        several = [row[m].unique().numel() > 1 for row, m in zip(advantage, mask) if m.sum() > 2]
        self.assertTrue(any(several), "tokens of a response differ by their certainty")
        self.assertTrue(any(key.startswith("ucas/") for row in trainer.state.log_history for key in row))

    def test_a_method_that_needs_more_is_refused_at_once(self):
        from ucas.integrations.trl_trainer import UcasTrainer

        with self.assertRaisesRegex(ucas.Error, "prime needs"):
            UcasTrainer(method="prime")


class VerlReward(unittest.TestCase):
    def test_the_same_keys_for_every_sample(self):
        from ucas.integrations.verl import compute_score

        scores = [compute_score(data_source="math", solution_str=text, ground_truth="1/2", extra_info={}) for text in HALF]
        self.assertEqual([one["score"] for one in scores], [1.0, 1.0, 0.0, 0.0])
        self.assertEqual(len({tuple(one) for one in scores}), 1)
        self.assertEqual(compute_score("math", HALF[0], np.array(["2", "1/2"], object))["score"], 1.0)


@needs("verl", "torch", "tensordict")
class Verl(unittest.TestCase):
    def setUp(self):
        from verl.trainer.ppo import core_algos

        import ucas.integrations.verl_algorithms  # noqa: F401

        self.core = core_algos

    def test_grpo_is_verls_own(self):
        import torch

        torch.manual_seed(0)
        mask = (torch.arange(6) < torch.randint(1, 7, (8, 1))).long()
        rewards = torch.zeros(8, 6)
        rewards[:, 0] = torch.tensor([1, 0, 0, 1, 1, 0, 0, 0.0])
        index = np.array(["a", "b"] * 4, object)
        given = {"token_level_rewards": rewards, "response_mask": mask, "index": index, "config": None}
        ours, _ = self.core.get_adv_estimator_fn("ucas_grpo")(**given)
        theirs, _ = self.core.get_adv_estimator_fn("grpo")(**given)
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(ucas.Error, "confidence"):
            self.core.get_adv_estimator_fn("ucas_ucas")(**given)

    def test_losses_and_gradients_are_verls_own(self):
        import torch

        class Config(dict):
            clip_ratio, clip_ratio_low, clip_ratio_high, global_batch_info = 0.2, 0.2, 0.2, {}

        torch.manual_seed(0)
        old, A = -torch.rand(4, 6), torch.randn(4, 6)
        mask = torch.ones(4, 6)
        for ours, theirs in (("ucas_grpo", "vanilla"),):
            found = []
            for name in (ours, theirs):
                new = (old + 0.3 * torch.sin(torch.arange(24.0)).view(4, 6)).requires_grad_()
                loss, _ = self.core.get_policy_loss_fn(name)(old_log_prob=old, log_prob=new, advantages=A, response_mask=mask,
                                                             loss_agg_mode="token-mean", config=Config(), rollout_is_weights=None)
                loss.backward()
                found.append((loss.detach(), new.grad))
            torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)


@needs("lighteval", "torch")
class Lighteval(unittest.TestCase):
    def test_a_metric_of_a_sample(self):
        from lighteval.models.model_output import ModelResponse
        from lighteval.tasks.requests import Doc

        from ucas.integrations.lighteval import ucas_accuracy

        found = ucas_accuracy.compute_sample(doc=Doc(query="?", choices=["1/2"], gold_index=0), model_response=ModelResponse(text=HALF))
        self.assertEqual(found, {"ucas_accuracy": 0.5})
        self.assertEqual(ucas_accuracy.get_corpus_aggregations()["ucas_accuracy"]([1.0, 0.0]), 0.5)


@needs("lm_eval")
class LmEval(unittest.TestCase):
    def test_a_task_of_the_harness(self):
        import lm_eval
        from lm_eval.api.model import LM

        from ucas.integrations.lm_eval import process_results

        class Says(LM):
            def generate_until(self, requests, disable_tqdm=False):
                return [HALF[int(request.doc["i"])] for request in requests]

            def loglikelihood(self, requests, disable_tqdm=False):
                raise NotImplementedError

            loglikelihood_rolling = loglikelihood

        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/rows.jsonl", "w", encoding="utf-8") as file:
                file.writelines(json.dumps({"i": i, "question": "?", "answer": "1/2"}) + "\n" for i in range(4))
            task = {"task": "halves", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": f"{folder}/rows.jsonl"}},
                    "test_split": "test", "output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}",
                    "process_results": process_results,
                    "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": better}
                                    for name, better in (("ucas_accuracy", True), ("ucas_unparseable", False))]}
            found = lm_eval.simple_evaluate(model=Says(), tasks=[task], bootstrap_iters=0)["results"]["halves"]
        self.assertEqual(found["ucas_accuracy,none"], 0.5)
        self.assertEqual(found["ucas_unparseable,none"], 0.25)


@needs("torch")
class LmHead(unittest.TestCase):
    def test_statistics_and_gradients_are_those_of_a_materialised_head(self):
        import torch

        from ucas.lm_head import lm_head_stats

        torch.manual_seed(0)
        for T, D, V, dtype, temperature in ((7, 24, 301, torch.float32, 1.0), (70, 64, 5000, torch.float32, 0.7),
                                            (33, 40, 777, torch.bfloat16, 1.0)):
            h, w = torch.randn(T, D, requires_grad=True), (0.3 * torch.randn(V, D)).to(dtype).requires_grad_()
            y, weights = torch.randint(V, (T,)), torch.randn(3, T)
            ours = lm_head_stats(h, w, y, temperature)
            gradients = torch.autograd.grad(sum((a * x).sum() for a, x in zip(weights, ours[:3])), (h, w))
            raw = h @ w.float().T
            logp = torch.log_softmax(raw / temperature, -1)
            own = logp[range(T), y]
            theirs = (own, -(logp.exp() * logp).sum(-1), -logp.mean(-1), raw[range(T), y], own - logp.max(-1).values)
            expected = torch.autograd.grad(sum((a * x).sum() for a, x in zip(weights, theirs[:3])), (h, w))
            for name, a, b in zip(ours._fields, ours, theirs):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
            for a, b in zip(gradients, expected):
                self.assertEqual(a.dtype, b.dtype)
                torch.testing.assert_close(a, b, rtol=2e-2 if dtype == torch.bfloat16 else 1e-3, atol=1e-4)

    def test_logits_are_never_stored(self):
        import torch

        from ucas.lm_head import lm_head_stats

        def megabytes(key):
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024

        T, D, V = 2048, 16, 100000  # of whose logits one copy is 781 MB
        h, w, y = torch.randn(T, D, requires_grad=True), torch.randn(V, D, requires_grad=True), torch.randint(V, (T,))
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the highest is what there is now
        before = megabytes("VmRSS")
        stats = lm_head_stats(h, w, y)
        (stats.logprob + 0.01 * stats.entropy).sum().backward()
        self.assertLess(megabytes("VmHWM") - before, 60)

    def test_refuses_what_does_not_fit(self):
        import torch

        from ucas.lm_head import lm_head_stats

        h, w = torch.randn(3, 8), torch.randn(20, 8)
        for weight, target, words in ((w[:, :4], [1, 2, 3], "shape|expected hidden"), (w, [1, 2, 20], "vocabulary"), (w, [1, 2], "target")):
            with self.assertRaisesRegex(ucas.Error, words):
                lm_head_stats(h, weight, torch.tensor(target))


if __name__ == "__main__":
    unittest.main()
