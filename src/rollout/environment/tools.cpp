// Tools, or an environment, of the user's own: a Python (python/ucas/tools.py) that is asked turn by turn, outside of
// the sandbox. It parses the model's calls; here is what it says, and when.
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/line_child.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "data/prompts/templates.h"
#include "rollout/environment/environment.h"

namespace ucas {

namespace {

constexpr int64_t kPatience = 10;  // seconds of the clock for one of rollout.tool_seconds

std::string name_of(const EnvironmentConfig& config) { return "rollout." + config.name(); }

// reward.py's text goes along: tools are loaded as a reward is.
std::vector<std::string> words_of(const EnvironmentConfig& config, const std::string& task) {
  std::vector<std::string> words = {std::string(embedded("python/ucas/reward.py").value()), task};
  words.insert(words.end(), config.tools.begin(), config.tools.end());
  return words;
}

// {"turn_ends": [..], "names": [..], "tools": JSON of all}; asked once for each list of names.
JsonObject described(const EnvironmentConfig& config) {
  static std::map<std::vector<std::string>, std::string> known;
  std::string& text = known[config.tools];
  if (text.empty()) text = run_python("tools", words_of(config, "describe"), name_of(config));
  return JsonObject::parse(text, name_of(config), ErrorKind::python);
}

// What all episodes share.
struct Tools {
  std::string name;
  LineChild child;
  UserTurns turn;
  int64_t episodes = 0;
  std::vector<int64_t> ended;  // that the Python may forget
};

class Own final : public Environment {
 public:
  explicit Own(std::shared_ptr<Tools> tools) : tools_(std::move(tools)), number_(tools_->episodes++) {}
  ~Own() override { tools_->ended.push_back(number_); }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;

  void reset(const Problem& problem) override {
    asked_ = {{"id", 0}, {"episode", number_}};
    asked_["problem"] = {
        {"id", problem.id}, {"source", problem.source}, {"problem", problem.text}, {"answer", problem.gold}};
  }

  std::optional<MarkedText> step(std::string_view text) override {
    asked_["turn"] = text;
    asked_["ended"] = std::exchange(tools_->ended, {});
    const std::string line = tools_->child.ask(json_text(asked_) + "\n", 1);
    asked_.erase("problem");
    const JsonObject reply = JsonObject::parse(line, tools_->name, ErrorKind::python);
    if (!reply.has("text")) return std::nullopt;
    const std::string said = reply.text("text");
    if (said.empty()) return MarkedText();
    return reply.truth("chat") ? tools_->turn(said) : MarkedText(said, MarkedText::kData);
  }

 private:
  std::shared_ptr<Tools> tools_;
  int64_t number_;
  OrderedJson asked_;
};

}  // namespace

void show_tools(const EnvironmentConfig& config, Template& prompt_template) {
  if (config.tools.empty()) return;
  if (config.kind != EnvironmentKind::none) {
    throw Error(ErrorKind::config, str(name_of(config), " with environment = \"", word_of(config.kind),
                                       "\": one of them answers; leave out the other"));
  }
  const JsonObject described_tools = described(config);
  const std::vector<std::string> names = described_tools.texts("names");
  if (names.empty()) return;
  if (prompt_template.chat) prompt_template.set.push_back("tools = " + described_tools.text("tools"));
  const std::string text = str(prompt_template.text, prompt_template.system, prompt_template.user);
  if (prompt_template.chat && text.find("tools") != std::string::npos) return;
  for (const std::string& name : names) {
    if (text.find(name) != std::string::npos) continue;
    warn(str(name_of(config), ": the template ", prompt_template.name, " does not name ", name,
             ", and takes no `tools`; let data.template or the problems describe it"));
  }
}

EnvironmentRow row_of_tools(const EnvironmentSetup& setup) {
  const EnvironmentConfig& config = setup.config;
  LineChildOptions options{.name = name_of(config),
                           .seconds = static_cast<double>(kPatience * config.tool_seconds),
                           .seconds_option = str(kPatience, " * rollout.tool_seconds"),
                           .kind = ErrorKind::python,
                           .consequence = "; the episode is not answered"};
  auto tools = std::shared_ptr<Tools>(new Tools{
      name_of(config), LineChild(python_words("tools", words_of(config, str(config.tool_chars))), std::move(options)),
      UserTurns(setup.tokenizer)});
  return {.turn_ends = described(config).texts("turn_ends"), .says = any_ascii(), .make = [tools] {
            return std::unique_ptr<Environment>(std::make_unique<Own>(tools));
          }};
}

}  // namespace ucas
