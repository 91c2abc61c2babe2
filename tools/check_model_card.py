"""Does the Hugging Face Hub's own library read what `ucas export` wrote?

    pip install huggingface_hub
    tools/check_model_card.py DIR
"""
import sys

from huggingface_hub import ModelCard


def main(folder):
    data = ModelCard.load(f"{folder}/README.md").data
    print({key: value for key, value in data.to_dict().items() if key != "model-index"})
    for result in data.eval_results or []:
        print(f"{result.dataset_type} ({result.dataset_name}): {result.metric_type} = {result.metric_value}")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
