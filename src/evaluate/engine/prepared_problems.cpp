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
    const PromptSettings prompting = prompt_settings(command(), benchmark, of_name);
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
  const PromptSettings prompting = prompt_settings(command(), Benchmark(), Suite());
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
  const bool given = answerer_.tokenizer == nullptr;
  if (given) {
    prompt_template.name = "given";  // how the question was put is not known
    choice.asked_template = choice.prompt_template = "";
  } else {
    const std::string checkpoint = answerer_.tokenizer->directory();
    prompting.prompt_template = choice.prompt_template =
        choose_template(prompting.prompt_template, checkpoint, "qwen_math");
    prompt_template = load_template(prompting.prompt_template, checkpoint, plan_.examples);
    show_tools(plan_.environment, prompt_template);
  }
  if (choice.asked_extract == ExtractOption::automatic && !given) choice.boxed = asks_for_box(prompt_template, subset);
  choice.extract = choose_extract(prompting.extract, prompt_template, subset, benchmark.grader);
  prompting.extract = option_of(choice.extract);
  if (given) choice.asked_extract = prompting.extract;
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
    for (Problem& problem : subset) {
      hashed += str(problem.id, "\n\n", problem.text, "\n");
      problems.push_back(std::move(problem));
    }
  }
  settings.push_back({benchmark.name, answerer_.tokenizer == nullptr ? prompt_template.name : prompting.prompt_template,
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
  const int64_t positions = answerer_.positions;
  for (size_t i = 0; i < prepared.problem.size(); ++i) {
    Problem& problem = subset[static_cast<size_t>(prepared.problem[i])];
    hashed += str(problem.id, "\n");
    for (int32_t id : prepared.ids[i]) hashed += str(id, " ");
    hashed += "\n";
    const int64_t room = positions - static_cast<int64_t>(prepared.ids[i].size());
    if (room < prompting.max_tokens) source.max_tokens_of[problem.id] = room;
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

}  // namespace ucas
