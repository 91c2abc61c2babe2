#include "report/model_card.h"

#include "base/str.h"
#include "base/text/json.h"
#include "report/escape.h"
#include "results/table.h"

namespace ucas {

namespace {

constexpr size_t kLongestName = 500;

// A model card names no paths of the training machine.
std::string without_folders(const std::string& value) {
  std::vector<std::string> parts = split(value, ',');
  for (std::string& part : parts) {
    const std::string path(trim(part));
    part = path.starts_with('/') ? short_path(path, 2) : path;
  }
  return join(parts, ", ");
}

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
             yaml_entry("pipeline_tag", "text-generation"), yaml_list("tags", tags),
             yaml_list("datasets", card.datasets), "---\n");
}

}  // namespace

std::string yaml_text(const std::string& text) { return json_text(visible_text(text, kLongestName)); }

std::string model_card(const ModelCard& card, const RunRecord& run) {
  const std::string title = run.environment("method"), base = run.setting("model");
  std::string text = str(front_matter(card, run), "\n# ", markdown_text(card.name), "\n\n");
  text += str("Step ", card.step, " of a training by reinforcement learning with verifiable rewards",
              title.empty() ? "" : ", " + markdown_text(title), ", from ",
              markdown_text(card.base_model.empty() ? short_path(base, 2) : card.base_model), ", with ucas ",
              markdown_text(run.environment("version")), ".\n\n## Training\n\n");
  Table settings{.head = {"setting", "value"}, .align = "ll"};
  for (const auto& [key, value] : run.config) settings.add({key, without_folders(value)});
  return text + settings.markdown();
}

}  // namespace ucas
