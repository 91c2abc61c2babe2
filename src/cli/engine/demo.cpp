// The main job end to end: task -> warmed-up base -> RLVR per method and seed -> evaluation -> report.
#include "base/build_info.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/demo_config.h"
#include "data/problems.h"
#include "data/register_chains.h"
#include "data/templates.h"
#include "evaluate/evaluator.h"
#include "report/report.h"
#include "report/summary.h"
#include "rollout/engine.h"
#include "train/checkpoint.h"
#include "train/sft.h"
#include "train/trainer.h"

namespace ucas {

namespace {

// For the report's head.
constexpr const char* kAbout =
    "Each problem is a chain of definitions such as a3 b*2 c-3 (a = 3, b = a * 2, c = b - 3) and asks for the last "
    "value. The base model was shown nine answers guessed at once for each one worked out letter by letter; "
    "reinforcement learning finds out that working it out pays.";

constexpr int64_t kResponseLimit = 28;  // the embedded task: at most 22 tokens and the end token

// Paths of everything the demo writes.
struct Places {
  std::string out;
  std::string task() const { return path_join(out, "task"); }
  std::string base() const { return path_join(out, "base"); }
  std::string base_model() const { return path_join(base(), "model"); }
  std::string run(const std::string& method, int64_t seed) const { return path_join(out, str(method, "-seed", seed)); }
  std::string report() const { return path_join(out, "report.html"); }
};

class Demo {
 public:
  explicit Demo(const DemoConfig& config) : config_(config), places_{config.out} {}

  int run() {
    double began = now_seconds();
    install_stop_signals();
    claim_directory();
    stage("The task: chains of register operations, to be guessed or worked out");
    make_task();
    stage("Warm-up: a Qwen2 model from scratch, by supervised fine-tuning");
    make_base();
    evaluate_into(places_.base(), places_.base_model(), "base", -1);
    std::vector<std::string> runs = {places_.base()};
    for (int64_t seed = 0; seed < config_.seeds; ++seed) {
      for (const std::string& method : config_.methods) {
        stage(str("RLVR: ", method, ", seed ", seed));
        if (int code = train(method, seed); code != kDone) return code;
        runs.push_back(places_.run(method, seed));
      }
    }
    stage("Report");
    write_report(runs, places_.report(), "ucas demo: discovering that working it out pays");
    out(str("\n", summary_table(runs), "\nreport  ", places_.report(), "\ntook    ",
            human_seconds(now_seconds() - began), "\n"));
    return kDone;
  }

 private:
  void stage(const std::string& what) {
    log(str("\n[", ++stage_, "/", 3 + config_.seeds * static_cast<int64_t>(config_.methods.size()), "] ", what));
  }

  // Results of other options must not be mixed in; more seeds or methods may be added.
  void claim_directory() {
    DemoConfig same = config_;
    same.seeds = 1;
    same.methods = {};
    same.threads = 0;
    same.out = "";
    std::string mine = str("# ucas ", version(), " demo\n", to_toml(same)), file = path_join(places_.out, "demo.toml");
    if (exists(file) && read_file(file) != mine) {
      throw Error("config",
                  str(file, ": this directory holds a demo with other options; remove it or choose another --out"));
    }
    make_directories(places_.out);
    if (!exists(file)) write_file(file, mine);
  }

  void make_task() {
    if (exists(path_join(places_.task(), "task.toml"))) return log(str("reusing ", places_.task()));
    TaskOptions options;
    options.seed = config_.sft_seed;
    options.count_test = config_.test_problems;
    int64_t vocabulary = write_register_chains(places_.task(), options);
    log(str(options.count_train, " training problems, ", options.count_dev, " dev, ", options.count_test,
            " test (disjoint by construction), ", grouped(options.count_worked + options.count_mixed),
            " demonstrations, vocabulary ", vocabulary));
  }

  void make_base() {
    if (exists(path_join(places_.base_model(), "config.json"))) return log(str("reusing ", places_.base_model()));
    use_threads(config_.threads);
    Tokenizer tokenizer = Tokenizer::load(path_join(places_.task(), "tokenizer"));
    Qwen2Config shape;  // hidden 64, 2 layers, 4 query and 2 key/value heads, tied: 0.1 M parameters
    shape.vocab_size = tokenizer.vocab_size();
    shape.max_position_embeddings = 128;
    shape.eos_token_id = tokenizer.eos_ids();
    std::unique_ptr<Model> model =
        make_model(shape, static_cast<uint64_t>(config_.sft_seed), parse_device(config_.device));
    SftConfig sft;
    sft.data = {path_join(places_.task(), "sft_worked.jsonl"), path_join(places_.task(), "sft_mixed.jsonl")};
    sft.steps = {config_.sft_worked_steps, config_.sft_mixed_steps};
    if (config_.sft_worked_steps == 0) {
      sft.data.erase(sft.data.begin());
      sft.steps.erase(sft.steps.begin());
    }
    sft.batch_size = 112;
    sft.seed = config_.sft_seed;
    sft.optimizer.lr = 5e-3;
    sft.optimizer.beta1 = 0.9;
    sft.optimizer.beta2 = 0.98;
    sft.optimizer.weight_decay = 0.01;
    sft.optimizer.decay = Decay::matrices;
    sft.optimizer.grad_clip = 1;
    sft.optimizer.warmup_steps = 40;
    sft.optimizer.schedule = Schedule::cosine;
    sft.optimizer.min_lr_ratio = 0.05;
    run_sft(*model, tokenizer, sft, places_.base_model());
    write_base_environment(shape);
  }

  void write_base_environment(const Qwen2Config& shape) {
    write_file(path_join(places_.base(), "env.json"),
               str("{\"label\": \"base\", \"version\": \"", version(), "\", \"torch\": \"", torch_version(),
                   "\", \"started\": \"", utc_now(), "\", \"device\": \"", config_.device,
                   "\", \"data\": \"embedded register chains\", \"about\": \"", kAbout,
                   "\", \"parameters\": ", shape.parameter_count(), "}\n"));
  }

  int train(const std::string& method, int64_t seed) {
    std::string path = places_.run(method, seed),
                final_model = path_join(path, str("checkpoints/", step_name(config_.steps)));
    if (!exists(path_join(final_model, "manifest.json"))) {
      Training training = exists(path_join(path, "config.toml")) ? resume_training(path, {})
                                                                 : open_training(train_config(method, seed), path);
      if (int code = Trainer(training).run(); code != kDone) return code;
    } else {
      log(str("reusing ", path));
    }
    evaluate_into(path, final_model, method, config_.steps);
    return kDone;
  }

  TrainConfig train_config(const std::string& method, int64_t seed) {
    std::vector<Setting> settings = read_config_file(method + "-tiny");
    auto set = [&](const char* key, const std::string& value) { settings.push_back({key, value, "demo", true}); };
    set("model", places_.base_model());
    set("data.files", path_join(places_.task(), "train.jsonl"));
    set("data.val_files", path_join(places_.task(), "dev.jsonl"));
    set("seed", str(seed));
    set("device", config_.device);
    set("threads", str(config_.threads));
    set("train.steps", str(config_.steps));
    return make_train_config(settings);
  }

  void evaluate_into(const std::string& run, const std::string& model_directory, const std::string& label,
                     int64_t step) {
    if (exists(path_join(run, "eval/test.json"))) return;
    use_threads(config_.threads);
    Policy policy = open_policy(model_directory, parse_device(config_.device));
    std::unique_ptr<Rollout> rollout = make_engine(*policy.model);
    std::unique_ptr<Verifier> verifier = make_math_verifier(Extract::strict);
    std::vector<std::string> files = {path_join(places_.task(), "test.jsonl")};
    std::vector<Problem> problems = read_problems(files);
    PreparedPrompts prompts = prepare_prompts(load_template("plain"), problems, policy.tokenizer, 32);
    EvalInput input;
    input.problems = problems;
    input.prompts = prompts.ids;
    input.stop_ids = collect_stop_ids(policy.model->config(), policy.tokenizer);
    input.label = label;
    input.model = model_directory;
    input.step = step;
    input.data = files;
    input.should_stop = stop_requested;
    EvalConfig eval;
    eval.samples = config_.test_samples;
    eval.max_tokens = kResponseLimit;
    eval.truncated = EvalConfig::Truncated::wrong;
    EvalResult result = evaluate(*rollout, policy.tokenizer, *verifier, input, eval);
    if (!result.complete)
      throw Error("interrupted", "stopped during the evaluation; run the same command to go on", kInterrupted);
    write_result(result, path_join(run, "eval"), "test");
    log(str("test: greedy ", percent(result.overall.greedy->value), ", sampled ",
            percent(result.overall.mean.back().estimate.value), ", ", fixed(result.overall.length, 1), " tokens"));
  }

  DemoConfig config_;
  Places places_;
  int64_t stage_ = 0;
};

}  // namespace

int run_demo(const Words& words) {
  CommandLine line = parse_command_line(words, {});
  if (!line.positionals.empty()) throw Error("usage", str("demo takes options only, got ", line.positionals[0]));
  DemoConfig config;
  ucas::apply(config, line.settings);
  return Demo(config).run();
}

}  // namespace ucas
