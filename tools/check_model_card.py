"""Does the Hugging Face Hub's own library read what `ucas export` wrote?

    pip install huggingface_hub pyyaml
    tools/check_model_card.py DIR
"""
import glob
import sys

import yaml
from huggingface_hub import ModelCard


def main(folder):
    data = ModelCard.load(f"{folder}/README.md").data
    print({key: value for key, value in data.to_dict().items() if key != "model-index"})
    for result in data.eval_results or []:
        print(f"{result.dataset_type} ({result.dataset_name}): {result.metric_type} = {result.metric_value}")
    for path in sorted(glob.glob(f"{folder}/.eval_results/*.yaml")):
        with open(path, encoding="utf-8") as file:
            entries = yaml.safe_load(file)
        for entry in entries:
            assert set(entry) <= {"dataset", "value", "date", "source", "notes"}, entry
            assert set(entry["dataset"]) <= {"id", "task_id", "revision"} and entry["dataset"]["id"].count("/") == 1, entry
            assert isinstance(entry["value"], float), entry
        print(f"{path}: {entries}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
