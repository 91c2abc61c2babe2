#include "evaluate/engine/prepared_problems.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "config/policy_options.h"
#include "data/prompts/templates.h"
#include "data/rows/jsonl.h"
#include "rollout/policy.h"

namespace ucas {

namespace {

constexpr int64_t kAnyLength = int64_t{1} << 30;  // where the number of positions is unknown

// The message of a chat: the question as the template has it, and its system message, which a template without a place
// for it leaves to the problem.
ServedPrompt message_of(const Template& prompt_template, const Problem& problem) {
  ServedPrompt out{.text = render(prompt_template, problem), .system = ""};
  if (!takes_system(prompt_template)) out.system = problem.system.empty() ? prompt_template.system : problem.system;
  return out;
}

}  // namespace

PreparedProblems::PreparedProblems(const EvaluationPlan& plan, Answerer answerer, std::vector<Problem> own)
    : plan_(plan), answerer_(std::move(answerer)) {
  if (!own.empty()) {
    data = {data_stem(plan.model.path)};
    if (plan.limit > 0 && std::ssize(own) > plan.limit) own.resize(static_cast<size_t>(plan.limit));
    add_by_source(std::move(own));
  } else if (plan.suite.empty()) {
    add_files();
  } else {
    add_suite();
  }
}

CommandSettings PreparedProblems::command() const {
  CommandSettings out = plan_.typed;
  if (!plan_.prompt_template.empty()) out.default_template = plan_.prompt_template;
  out.default_max_tokens = plan_.config.max_tokens;
  return out;
}

void PreparedProblems::add_suite() {
  const Suite of_name = load_suite(plan_.suite);
  suite = of_name.name;
  data = {of_name.name};
  for (const Benchmark& benchmark : of_name.benchmarks) {
    std::vector<Problem> all = read_benchmark(benchmark, plan_.data_directory);
    if (plan_.limit > 0 && static_cast<int64_t>(all.size()) > plan_.limit) all.resize(static_cast<size_t>(plan_.limit));
    const PromptSettings prompting = prompt_settings(plan_.model, command(), benchmark, of_name);
    add(std::move(all), benchmark, prompting);
  }
}

void PreparedProblems::add_files() {
  std::vector<Problem> all;
  std::set<std::pair<std::string, std::string>> seen;
  for (const std::string& file : plan_.files) {
    data.push_back(data_stem(file));
    for (Problem& problem : read_problems({file}, plan_.problems)) {
      if (plan_.limit > 0 && std::ssize(all) >= plan_.limit) break;
      // Responses are found by source and id.
      const std::string id = problem.id;
      for (int64_t n = 2; !seen.insert({problem.source, problem.id}).second; ++n) problem.id = str(id, "#", n);
      all.push_back(std::move(problem));
    }
  }
  add_by_source(std::move(all));
}

// A set for each source, in order of their first problems.
void PreparedProblems::add_by_source(std::vector<Problem> all) {
  const PromptSettings prompting = prompt_settings(plan_.model, command(), Benchmark(), Suite());
  std::vector<std::pair<std::string, std::vector<Problem>>> sets;
  std::map<std::string, size_t> place;
  for (Problem& problem : all) {
    const auto [at, fresh] = place.try_emplace(problem.source, sets.size());
    if (fresh) sets.push_back({problem.source, {}});
    sets[at->second].second.push_back(std::move(problem));
  }
  for (auto& [source, subset] : sets) {
    Benchmark benchmark;
    benchmark.name = source;
    const auto own = plan_.graders.find(source);
    benchmark.grader = own == plan_.graders.end() ? plan_.grader : own->second;
    add(std::move(subset), benchmark, prompting);
  }
}

int64_t PreparedProblems::longest_prompt(int64_t limit) const {
  if (answerer_.positions == 0) return plan_.max_prompt_length > 0 ? plan_.max_prompt_length : kAnyLength;
  const int64_t room = answerer_.positions - limit;
  if (room < 1) {
    throw Error(ErrorKind::config, str("max_tokens = ", limit, " leaves no room for a prompt: the model has ",
                                       answerer_.positions, " positions (max_position_embeddings); lower max_tokens"));
  }
  const int64_t longest = answerer_.positions - 1;  // a response has one token at least
  return plan_.max_prompt_length > 0 ? std::min(plan_.max_prompt_length, longest) : longest;
}

std::shared_ptr<const Grader> PreparedProblems::grader_of(GraderKind kind, Extract extract) {
  std::shared_ptr<const Grader>& grader = made_[{kind, extract}];
  if (!grader) grader = make_grader(kind, {extract, plan_.code});
  return grader;
}

// The template, and where answers are looked for, with what was left to auto decided, which is said.
Template PreparedProblems::decide(PromptSettings& prompting, const Benchmark& benchmark,
                                  const std::vector<Problem>& subset) {
  PromptChoice choice{prompting.prompt_template, prompting.prompt_template, prompting.extract};
  Template prompt_template;
  if (answerer_.given) {
    prompt_template.name = "given";  // how the question was put is not known
    choice.asked_template = choice.prompt_template = "";
  } else {
    const std::string checkpoint = answerer_.tokenizer ? answerer_.tokenizer->directory() : "";
    prompting.prompt_template = choice.prompt_template = choose_template(
        prompting.prompt_template, answerer_.chat ? "" : checkpoint, answerer_.chat ? "plain" : "qwen_math");
    prompt_template = load_template(prompting.prompt_template, checkpoint, plan_.examples);
  }
  if (choice.asked_extract == ExtractOption::automatic && !answerer_.given)
    choice.boxed = asks_for_box(prompt_template, subset);
  const bool instruct = answerer_.chat && !choice.boxed;  // a server puts its own chat form around the question
  choice.extract = instruct && benchmark.grader == GraderKind::math && !said(prompting.extract)
                       ? Extract::lenient
                       : choose_extract(prompting.extract, prompt_template, subset, benchmark.grader);
  prompting.extract = option_of(choice.extract);
  if (answerer_.given) choice.asked_extract = prompting.extract;
  if (const std::string words = choice.in_words(); !words.empty() && told_.insert(words).second) {
    log(str(plan_.model.label, plan_.model.label.empty() ? "" : ": ", words));
  }
  return prompt_template;
}

void PreparedProblems::add(std::vector<Problem> subset, const Benchmark& benchmark, PromptSettings prompting) {
  const Template prompt_template = decide(prompting, benchmark, subset);
  const Extract extract = said(prompting.extract).value_or(Extract::strict);
  graders.of[benchmark.name] = grader_of(benchmark.grader, extract);
  graded_by[benchmark.name] = {benchmark.grader, extract};
  if (!graders.standard) graders.standard = graders.of[benchmark.name];
  check_golds(graders, subset);
  if (answerer_.chat && (prompt_template.chat || !prompt_template.special.empty())) {
    throw Error(ErrorKind::config,
                str("template ", prompting.prompt_template, " holds special tokens (",
                    prompt_template.chat ? "a chat template's" : join(prompt_template.special, " "),
                    "), which a chat server puts itself; choose --template boxed or plain, or --api completions"));
  }
  AskedSet as{.name = benchmark.name,
              .prompt_template = prompt_template.name,
              .template_sha256 = template_sha256(prompt_template),
              .max_tokens = prompting.max_tokens,
              .grader = benchmark.grader,
              .extract = extract};
  EvalSource source;
  source.name = benchmark.name;
  source.max_tokens = prompting.max_tokens;
  std::string hashed;  // what is asked
  if (answerer_.tokenizer) {
    const Tokenizer& tokenizer = *answerer_.tokenizer;
    Stops named = stops_of(prompt_template, prompting.stop, tokenizer);
    named.ids.insert(named.ids.end(), answerer_.eos.begin(), answerer_.eos.end());
    source.stop_ids = collect_stop_ids({}, tokenizer, named.ids);
    for (int32_t id : source.stop_ids) as.stop_texts.push_back(tokenizer.decode({&id, 1}, false));
    source.end_texts = named.texts;
    as.stop_texts.insert(as.stop_texts.end(), named.texts.begin(), named.texts.end());
    add_prompts(std::move(subset), benchmark, prompting, prompt_template, source, hashed);
  } else {
    as.stop_texts = prompt_template.stop;
    as.stop_texts.insert(as.stop_texts.end(), prompting.stop.begin(), prompting.stop.end());
    add_texts(std::move(subset), prompt_template, hashed);
  }
  source.stop_texts = as.stop_texts;
  settings.push_back({benchmark.name, answerer_.given ? prompt_template.name : prompting.prompt_template,
                      hash_of_text(hashed), source.stop_ids, prompting.max_tokens, source.end_texts});
  as.problems = std::ranges::count(problems, benchmark.name, &Problem::source);
  as.problems_sha256 = problems_sha256(problems, benchmark.name);
  asked.push_back(std::move(as));
  sources.push_back(std::move(source));
  max_tokens = std::max(max_tokens, prompting.max_tokens);
}

void PreparedProblems::add_prompts(std::vector<Problem> subset, const Benchmark& benchmark,
                                   const PromptSettings& prompting, const Template& prompt_template, EvalSource& source,
                                   std::string& hashed) {
  const int64_t longest = longest_prompt(prompting.max_tokens);
  PreparedPrompts prepared = prepare_prompts(prompt_template, subset, *answerer_.tokenizer, longest);
  if (prepared.dropped > 0) {
    count_warning(Warning::prompt, prepared.dropped);
    warn(str(benchmark.name, ": ", prepared.dropped, " of ", subset.size(), " prompts left out: empty, or longer than ",
             longest, " tokens; the figures are of the others"));
  }
  const int64_t positions = answerer_.positions > 0 ? answerer_.positions : kAnyLength;
  for (size_t i = 0; i < prepared.problem.size(); ++i) {
    Problem& problem = subset[static_cast<size_t>(prepared.problem[i])];
    hashed += str(problem.id, "\n");
    for (int32_t id : prepared.ids[i]) hashed += str(id, " ");
    hashed += "\n";
    const int64_t room = positions - static_cast<int64_t>(prepared.ids[i].size());
    if (room < prompting.max_tokens) source.max_tokens_of[problem.id] = room;
    texts.push_back(answerer_.chat ? message_of(prompt_template, problem)
                                   : ServedPrompt{.text = render(prompt_template, problem)});
    problems.push_back(std::move(problem));
    prompts.push_back(std::move(prepared.ids[i]));
  }
  if (!source.max_tokens_of.empty()) {
    count_warning(Warning::short_prompt, std::ssize(source.max_tokens_of));
    warn(str(benchmark.name, ": ", source.max_tokens_of.size(), " of ", subset.size(), " prompts leave fewer than ",
             prompting.max_tokens, " of the model's ", positions,
             " positions: their responses are cut where those end"));
  }
}

// Without a tokenizer the length of a prompt is unknown: the server says if one is too long.
void PreparedProblems::add_texts(std::vector<Problem> subset, const Template& prompt_template, std::string& hashed) {
  for (Problem& problem : subset) {
    ServedPrompt prompt;
    if (!answerer_.given)
      prompt = answerer_.chat ? message_of(prompt_template, problem)
                              : ServedPrompt{.text = render(prompt_template, problem)};
    hashed += str(problem.id, "\n", prompt.system, "\n", answerer_.given ? problem.text : prompt.text, "\n");
    texts.push_back(std::move(prompt));
    problems.push_back(std::move(problem));
  }
}

}  // namespace ucas
