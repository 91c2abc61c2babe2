"""A metric of lighteval: `metrics=[ucas_accuracy]` in a LightevalTaskConfig whose docs have the right answers as gold."""
import numpy as np
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import SamplingMethod

from ..verifier import Verifier


class UcasAccuracy(SampleLevelComputation):
    """The share of a problem's responses that are right: accuracy for one response, mean@n for n."""

    def __init__(self, extract="strict"):
        self.extract = extract

    def compute(self, doc, model_response, **_):
        texts = model_response.text_post_processed or model_response.text
        golds = [str(gold) for gold in doc.get_golds()]
        return float(Verifier(self.extract).batch([golds] * len(texts), texts).score.mean())


ucas_accuracy = SampleLevelMetric(metric_name="ucas_accuracy", higher_is_better=True, category=SamplingMethod.GENERATIVE,
                                  sample_level_fn=UcasAccuracy(), corpus_level_fn=np.mean)
