// The demonstration with a pretrained model: a task in English, how much of it the base solves already, RLVR, and what
// is brevity of what is won.
#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/engine/demo.h"
#include "config/config_file.h"
#include "evaluate/engine/evaluation.h"
#include "hf/hub.h"
#include "hf/model_config.h"
#include "records/evaluation.h"
#include "records/run/environment.h"

namespace ucas {

namespace {

constexpr int64_t kRateSamples = 8;                     // as many as a group of training has
constexpr double kQuickFrom = 0.15, kQuickUntil = 0.6;  // of samples right: where RLVR learns quickest
constexpr const char* kEvaluation = "test";             // RUN/eval/test.json

class PretrainedDemo final : public Demo {
 public:
  PretrainedDemo(const PretrainedDemoConfig& config, ProgressMode progress) : Demo(config, progress), config_(config) {
    resolve_hub_names(config_);
    read_model_config(config_.model);  // a wrong path is said before the work
    for (const std::string& method : config_.methods) train_config(method, 0);
  }

 private:
  std::string title() const override {
    return str("ucas demo: ", short_path(config_.model, 1), ", ", word_of(config_.task));
  }
  std::string task_stage() const override {
    return str("The task: ", word_of(config_.task), ", difficulty ", config_.difficulty, ": ", about(config_.task));
  }
  std::string base_stage() const override { return str("The base: ", config_.model); }

  void make_task() override {
    if (exists(path_join(places_.task(), "task.toml"))) return log(str("reusing ", places_.task()));
    const TextTaskOptions options{
        .difficulty = config_.difficulty, .seed = config_.task_seed, .count_test = config_.test_problems};
    write_text_task(places_.task(), config_.task, options);
    log(str(options.count_train, " training problems, ", options.count_dev, " dev, ", options.count_test,
            " test: no form of a question and no numbers are in two of them"));
    const TextProblem first = draw_problems(config_.task, options, Split::train, 1).front();
    log(str("for instance: ", first.text, " (", first.answer, ")"));
  }

  std::vector<std::string> make_base() override {
    look_at_rate();
    describe_base(places_.base());
    evaluate(places_.base(), config_.model, "base", -1);
    if (config_.control_tokens <= config_.max_tokens) return {places_.base()};
    // How much of what is won is that answers end in time: the base with room for all that it wants to say.
    EvaluationPlan plan = evaluation("test.jsonl");
    plan.config.max_tokens = config_.control_tokens;
    plan.config.samples = 0;
    describe_base(control());
    evaluate_or_reuse(plan, config_.model, control(), control_label(), -1);
    return {places_.base(), control()};
  }

  TrainConfig train_config(const std::string& method, int64_t seed) const override {
    std::vector<Setting> settings = read_config_file("demo-pretrained");
    auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "demo", true}); };
    const size_t colon = method.find(':');
    set("method.name", method.substr(0, colon));
    if (colon != std::string::npos) set("method.preset", method.substr(colon + 1));
    set("model", config_.model);
    set("data.files", path_join(places_.task(), "train.jsonl"));
    set("data.val_files", path_join(places_.task(), "dev.jsonl"));
    if (config_.shots > 0) {
      set("data.few_shot", path_join(places_.task(), "shots.jsonl"));
      set("data.shots", str(config_.shots));
    }
    set("reward.grader", grader_of(config_.task));
    set("rollout.response_length", str(config_.max_tokens));
    set("seed", str(seed));
    set("device", config_.device);
    set("dtype", word_of(config_.dtype));
    set("threads", str(config_.threads));
    set("train.steps", str(config_.steps));
    set("train.test_freq", str(std::max<int64_t>(1, (config_.steps + 1) / 2)));
    if (config_.lora > 0) {
      set("lora.rank", str(config_.lora));
      set("optimizer.lr", "2e-4");
    }
    return make_train_config(settings);
  }

  void evaluate(const std::string& run, const std::string& model, const std::string& label, int64_t step) override {
    evaluate_or_reuse(evaluation("test.jsonl"), model, run, label, step);
  }

  std::string options_text() const override {
    PretrainedDemoConfig same = config_;
    leave_out_common(same);
    return to_toml(same);
  }

  void say_more(const std::vector<std::string>& trained, const std::vector<std::string>& models) const override {
    if (trained.empty()) return;
    std::vector<std::string> missing, remarks;
    const EvalRecord before = read_evaluation(path_join(places_.base(), "eval"), kEvaluation, missing, remarks);
    const EvalRecord after = read_evaluation(path_join(trained[0], "eval"), kEvaluation, missing, remarks);
    out(before_and_after(before, after));
    out(str("\nmodel   ", models[0], "\n        transformers loads it: AutoModelForCausalLM.from_pretrained(\"",
            models[0], "\")\n"));
  }

  // One problem that the base has wrong and the trained model right.
  static std::string before_and_after(const EvalRecord& before, const EvalRecord& after) {
    for (const ProblemRow& row : before.rows) {
      if (!row.greedy || row.greedy->right()) continue;
      const auto same = std::ranges::find(after.rows, row.id, &ProblemRow::id);
      if (same == after.rows.end() || !same->greedy || !same->greedy->right()) continue;
      const auto quoted = [](const std::string& text) { return printable(std::string(trim(text)), 300); };
      return str("\n", quoted(row.problem), "\n  base     ", quoted(row.greedy->response), "\n  trained  ",
                 quoted(same->greedy->response), "\n");
    }
    return "";
  }

  EvaluationPlan evaluation(const char* file) const {
    EvaluationPlan plan;
    plan.files = {path_join(places_.task(), file)};
    plan.prompt_template = "chat";
    if (config_.shots > 0) plan.examples = {path_join(places_.task(), "shots.jsonl"), config_.shots};
    plan.keyed_by_position = true;
    plan.config.samples = config_.test_samples;
    plan.config.max_tokens = config_.max_tokens;
    plan.config.truncated = Truncated::wrong;
    plan.config.dtype = config_.dtype;
    plan.typed.extract = Extract::lenient;
    plan.grader = grader();
    plan.device = config_.device;
    plan.threads = config_.threads;
    plan.name = kEvaluation;
    return plan;
  }

  GraderKind grader() const {
    const auto known = names(GraderKind{});
    const std::string name = grader_of(config_.task);
    return static_cast<GraderKind>(std::ranges::find(known, name, [](const char* n) { return std::string(n); }) -
                                   known.begin());
  }

  std::string control() const { return path_join(places_.out, str("base-", config_.control_tokens, "-tokens")); }
  std::string control_label() const { return str("base, ", config_.control_tokens, " tokens"); }

  // So that an evaluation of the base is a row of the report, with what is to be known of it.
  void describe_base(const std::string& run) const {
    RunEnvironment environment;
    environment.label = run == control() ? control_label() : "base";
    environment.version = version_and_commit();
    environment.torch = torch_version();
    environment.device = config_.device;
    environment.started = utc_now();
    environment.model = config_.model;
    environment.data = str(word_of(config_.task), ", difficulty ", config_.difficulty);
    environment.about =
        str("The base is ", short_path(config_.model, 1), "; the task is ", word_of(config_.task),
            ", made by a program: ", about(config_.task),
            ". Held-out problems share neither the form of a question nor its numbers with those of training. Every "
            "response has ",
            config_.max_tokens, " tokens; with ", config_.control_tokens,
            " the base says all that it wants to say, so that the difference to that row is not brevity.");
    environment.parameters = read_model_config(config_.model).parameter_count();
    make_directories(run);
    write_environment(path_join(run, "env.json"), environment);
  }

  // Before anything trains: how many samples to training problems are right. Where none is, or all are, no group has
  // anything to compare.
  void look_at_rate() const {
    EvaluationPlan plan = evaluation("train.jsonl");
    plan.limit = config_.rate_problems;
    plan.config.greedy = false;
    plan.config.samples = kRateSamples;
    plan.config.ks = {1, kRateSamples};
    const EvalRecord seen = evaluate_model(plan, config_.model, path_join(places_.out, "rate"), "base");
    int64_t mixed = 0, right = 0;
    for (const ProblemRow& row : seen.rows) {
      mixed += row.correct > 0 && row.correct < row.samples;
      right += row.correct;
    }
    const double share = static_cast<double>(right) / static_cast<double>(seen.problems * kRateSamples);
    const Figure figure = seen.mean_at.empty() ? Figure{} : seen.mean_at.back().share;
    const std::string said =
        str("the base solves ", percent(share), " of ", seen.problems * kRateSamples, " samples to training problems",
            figure.bounded() ? str(" (95 % interval ", percent(figure.low), " to ", percent(figure.high), ")") : "",
            "; ", mixed, " of ", seen.problems, " groups of ", kRateSamples, " hold right and wrong ones");
    if (mixed == 0) {
      throw Error(ErrorKind::config,
                  str(said, ": there is nothing to learn from; ",
                      share < 0.5 ? "lower --difficulty, give more --shots or --max_tokens, or choose another --task"
                                  : "raise --difficulty, or choose another --task"));
    }
    log(said);
    if (share >= kQuickFrom && share <= kQuickUntil)
      return log("between 15 and 60 %: RLVR learns quickly from such a task");
    log(share < kQuickFrom
            ? "below 15 %: RLVR may need more steps; an easier task, more --shots or --max_tokens raise it"
            : "above 60 %: there is little to win; a higher --difficulty leaves more");
  }

  PretrainedDemoConfig config_;
};

}  // namespace

std::unique_ptr<Demo> make_pretrained_demo(const PretrainedDemoConfig& config, ProgressMode progress) {
  return std::make_unique<PretrainedDemo>(config, progress);
}

}  // namespace ucas
