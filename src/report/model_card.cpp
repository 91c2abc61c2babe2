#include "report/model_card.h"

#include <algorithm>

#include "base/str.h"
#include "base/text/json.h"
#include "report/escape.h"
#include "results/table.h"

namespace ucas {

namespace {

constexpr size_t kLongestName = 500;

struct Score {
  std::string name;
  Figure share;
};

// The figures of one source that travel, the one that stands for all first: of several k the largest.
std::vector<Score> scores_of(const EvalNumbers& n) {
  std::vector<Score> scores;
  for (const char* kind : {"greedy", "mean@", "pass@", "maj@"}) {
    std::string last;
    for (const std::string& name : shares_of(n)) last = name.starts_with(kind) ? name : last;
    if (!last.empty()) scores.push_back({metric_title(last), figure_named(n, last)});
  }
  return scores;
}

// A model card names no paths of the training machine.
std::string without_folders(const std::string& value) {
  std::vector<std::string> parts = split(value, ',');
  for (std::string& part : parts) {
    const std::string path(trim(part));
    part = path.starts_with('/') ? short_path(path, 2) : path;
  }
  return join(parts, ", ");
}

std::string in_percent(double share) { return fixed(100 * share, 2); }

// How the responses were asked for.
std::string asked_for(const EvalRecord& e, const std::string& source, const Score& score) {
  std::vector<std::string> words;
  if (score.name.starts_with("greedy")) {
    words.emplace_back("greedy");
  } else if (e.asked) {
    words.push_back(str("samples ", e.config.samples, ", temperature ", e.config.temperature, ", top_p ",
                        e.config.top_p, ", top_k ", e.config.top_k));
  }
  for (const AskedSet& set : e.asked ? e.asked->sets : std::vector<AskedSet>{}) {
    if (set.name != source) continue;
    words.push_back(str("at most ", set.max_tokens, " tokens"));
    words.push_back(str("prompt template ", name_and_hash(set.prompt_template, set.template_sha256)));
  }
  return join(words, ", ");
}

// A set of problems as people call it.
std::string called(const EvalRecord& e, const std::string& source) { return source.empty() ? e.name : source; }

std::string yaml_list(const char* key, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = str(key, ":\n");
  for (const std::string& item : items) text += str("- ", yaml_text(item), "\n");
  return text;
}

std::string yaml_entry(const char* key, const std::string& value) {
  return value.empty() ? "" : str(key, ": ", yaml_text(value), "\n");
}

std::string front_matter(const ModelCard& card, const RunRecord& run) {
  std::vector<std::string> tags = {"ucas", "reinforcement-learning", "rlvr"};
  if (!run.method.empty()) tags.push_back(run.method);
  return str("---\n", yaml_entry("base_model", card.base_model),
             yaml_entry("base_model_relation", card.base_model.empty() ? ""
                                               : card.adapter          ? "adapter"
                                                                       : "finetune"),
             yaml_entry("library_name", card.adapter ? "peft" : "transformers"),
             yaml_entry("pipeline_tag", "text-generation"), yaml_entry("license", card.license),
             yaml_list("tags", tags), yaml_list("datasets", card.datasets), "---\n");
}

std::string results_table(const ModelCard& card) {
  Table table{.head = {"problems", "number", "figure", "%", "interval", "asked for"}, .align = "lrlrll"};
  for (const EvaluatedWeights& e : card.evaluations) {
    for (const auto& [source, numbers] : e.figures.by_source) {
      for (const Score& score : scores_of(numbers)) {
        const Figure& f = score.share;
        table.add({called(e.figures, source), Cell::count(numbers.problems), score.name, in_percent(f.value),
                   f.bounded() ? str(in_percent(f.low), " to ", in_percent(f.high)) : "",
                   asked_for(e.figures, source, score)});
      }
    }
  }
  return table.rows.empty() ? "No evaluation of these weights was at hand.\n" : table.markdown();
}

}  // namespace

std::string yaml_text(const std::string& text) { return json_text(visible_text(text, kLongestName)); }

std::string model_card(const ModelCard& card, const RunRecord& run) {
  const std::string title = run.environment("method"), base = run.setting("model");
  std::string text = str(front_matter(card, run), "\n# ", markdown_text(card.name), "\n\n");
  text += str("Step ", card.step, " of a training by reinforcement learning with verifiable rewards",
              title.empty() ? "" : ", " + markdown_text(title), ", from ",
              markdown_text(card.base_model.empty() ? short_path(base, 2) : card.base_model), ", with ucas ",
              markdown_text(run.environment("version")), ".\n\n## Results\n\n", results_table(card));
  if (!card.evaluations.empty()) {
    text += "\nIn percent. A run card names, by their SHA-256, the weights, problems and responses of a figure.\n";
  }
  text += "\n## Training\n\n";
  Table settings{.head = {"setting", "value"}, .align = "ll"};
  for (const auto& [key, value] : run.config) settings.add({key, without_folders(value)});
  return text + settings.markdown();
}

}  // namespace ucas
