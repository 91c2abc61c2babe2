#include "evaluate/engine/asked.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/lapses.h"
#include "base/log.h"
#include "base/str.h"
#include "config/prompt_choice.h"
#include "data/jsonl.h"
#include "data/templates.h"
#include "rollout/policy.h"

namespace ucas {

namespace {

constexpr int64_t kAnyLength = int64_t{1} << 30;  // where nobody says how many positions there are

// The message of a chat: the question as the template has it, and its system message, which a template without a place
// for it leaves to the problem.
ServedPrompt message_of(const Template& form, const Problem& problem) {
  ServedPrompt out{.text = render(form, problem), .system = ""};
  if (!takes_system(form)) out.system = problem.system.empty() ? form.system : problem.system;
  return out;
}

}  // namespace

Asked::Asked(const EvaluationPlan& plan, Answerer answerer, std::vector<Problem> own)
    : plan_(plan), answerer_(std::move(answerer)) {
  if (!own.empty()) {
    add_own(std::move(own));
  } else if (plan.suite.empty()) {
    add_files();
  } else {
    add_suite();
  }
}

CommandSettings Asked::command() const {
  CommandSettings out = plan_.typed;
  if (!plan_.prompt_template.empty()) out.default_template = plan_.prompt_template;
  out.default_max_tokens = plan_.config.max_tokens;
  return out;
}

void Asked::add_suite() {
  const Suite of_name = load_suite(plan_.suite);
  suite = of_name.name;
  data = {of_name.name};
  for (const Benchmark& benchmark : of_name.benchmarks) {
    std::vector<Problem> all = read_benchmark(benchmark, plan_.data_directory);
    if (plan_.limit > 0 && static_cast<int64_t>(all.size()) > plan_.limit) all.resize(static_cast<size_t>(plan_.limit));
    const PutToModel put = put_to_model(plan_.model, command(), benchmark, of_name);
    add(std::move(all), benchmark, put, {benchmark_file(benchmark, plan_.data_directory)});
  }
}

void Asked::add_files() {
  const PutToModel put = put_to_model(plan_.model, command(), Benchmark(), Suite());
  std::vector<std::string> order;  // of the sources
  std::map<std::string, std::vector<Problem>> by_source;
  std::map<std::string, std::vector<std::string>> files;  // that hold problems of a source
  std::set<std::pair<std::string, std::string>> seen;
  int64_t left = plan_.limit > 0 ? plan_.limit : INT64_MAX;
  for (const std::string& file : plan_.files) {
    data.push_back(data_stem(file));
    for (Problem& problem : read_problems({file}, plan_.problems)) {
      if (left-- <= 0) break;
      // Responses are found by source and id.
      const std::string id = problem.id;
      for (int64_t n = 2; !seen.insert({problem.source, problem.id}).second; ++n) problem.id = str(id, "#", n);
      if (!by_source.contains(problem.source)) order.push_back(problem.source);
      auto& mine = files[problem.source];
      if (mine.empty() || mine.back() != file) mine.push_back(file);
      by_source[problem.source].push_back(std::move(problem));
    }
  }
  for (const std::string& source : order) {
    Benchmark benchmark;
    benchmark.name = source;
    const auto own = plan_.graders.find(source);
    benchmark.grader = own == plan_.graders.end() ? plan_.grader : own->second;
    add(std::move(by_source[source]), benchmark, put, files[source]);
  }
}

void Asked::add_own(std::vector<Problem> own) {
  const PutToModel put = put_to_model(plan_.model, command(), Benchmark(), Suite());
  data = {data_stem(plan_.model.path)};
  std::vector<std::string> order;
  std::map<std::string, std::vector<Problem>> by_source;
  for (Problem& problem : own) {
    if (!by_source.contains(problem.source)) order.push_back(problem.source);
    by_source[problem.source].push_back(std::move(problem));
  }
  for (const std::string& source : order) {
    Benchmark benchmark;
    benchmark.name = source;
    benchmark.grader = plan_.grader;
    std::vector<Problem>& mine = by_source[source];
    if (plan_.limit > 0 && std::ssize(mine) > plan_.limit) mine.resize(static_cast<size_t>(plan_.limit));
    add(std::move(mine), benchmark, put, {});
  }
}

int64_t Asked::longest_prompt(int64_t limit) const {
  if (answerer_.positions == 0) return plan_.max_prompt_length > 0 ? plan_.max_prompt_length : kAnyLength;
  const int64_t room = answerer_.positions - limit;
  if (room < 1) {
    throw Error("config", str("max_tokens = ", limit, " leaves no room for a prompt: the model has ",
                              answerer_.positions, " positions (max_position_embeddings); lower max_tokens"));
  }
  const int64_t longest = answerer_.positions - 1;  // a response has one token at least
  return plan_.max_prompt_length > 0 ? std::min(plan_.max_prompt_length, longest) : longest;
}

std::shared_ptr<const Grader> Asked::grader_of(GraderKind kind, Extract extract) {
  std::shared_ptr<const Grader>& grader = made_[{kind, extract}];
  if (!grader) grader = make_grader(kind, {extract, plan_.code});
  return grader;
}

// The template, and where answers are looked for, with what was left to auto decided, which is said.
Template Asked::decide(PutToModel& put, const Benchmark& benchmark, const std::vector<Problem>& asked) {
  PromptChoice choice{put.prompt_template, put.prompt_template, put.extract};
  Template form;
  if (answerer_.given) {
    form.name = "given";  // how the question was put is not known
    choice.asked_template = choice.prompt_template = "";
  } else {
    const std::string checkpoint = answerer_.tokenizer ? answerer_.tokenizer->directory() : "";
    put.prompt_template = choice.prompt_template =
        choose_template(put.prompt_template, answerer_.chat ? "" : checkpoint, answerer_.chat ? "plain" : "qwen_math");
    form = load_template(put.prompt_template, checkpoint,
                         benchmark.grader == GraderKind::choice ? FewShot{} : plan_.examples);
  }
  if (choice.asked_extract == ExtractOption::automatic && !answerer_.given) choice.boxed = asks_for_box(form, asked);
  const bool instruct = answerer_.chat && !choice.boxed;  // a server puts its own chat form around the question
  choice.extract = instruct && benchmark.grader == GraderKind::math && !said(put.extract)
                       ? Extract::lenient
                       : choose_extract(put.extract, form, asked, benchmark.grader);
  put.extract = option_of(choice.extract);
  if (answerer_.given) choice.asked_extract = put.extract;
  if (const std::string words = choice.in_words(); !words.empty() && told_.insert(words).second) {
    log(str(plan_.model.label, plan_.model.label.empty() ? "" : ": ", words));
  }
  return form;
}

void Asked::add(std::vector<Problem> asked, const Benchmark& benchmark, PutToModel put,
                const std::vector<std::string>& files) {
  const bool choices = benchmark.grader == GraderKind::choice;
  const Template form = decide(put, benchmark, asked);
  const Extract extract = said(put.extract).value_or(Extract::strict);
  graders.of[benchmark.name] = grader_of(benchmark.grader, extract);
  graded_by[benchmark.name] = {benchmark.grader, extract};
  if (!graders.standard) graders.standard = graders.of[benchmark.name];
  check_golds(graders, asked);
  if (choices && plan_.model.by != AnsweredBy::checkpoint) {
    throw Error("config", str(benchmark.name,
                              ": grader = \"choice\" compares log-probs of the choices, which only a "
                              "checkpoint that runs here gives; choose another set for ",
                              printable(plan_.model.label)));
  }
  if (answerer_.chat && (form.chat || !form.special.empty())) {
    throw Error("config",
                str("template ", put.prompt_template, " holds special tokens (",
                    form.chat ? "a chat template's" : join(form.special, " "),
                    "), which a chat server puts itself; choose --template boxed or plain, or --api completions"));
  }
  CardBenchmark as;
  as.form = form;
  EvalSource source;
  source.name = benchmark.name;
  source.max_tokens = put.max_tokens;
  source.choices = choices;
  std::string hashed;  // what is asked
  if (answerer_.tokenizer) {
    const Tokenizer& tokenizer = *answerer_.tokenizer;
    std::vector<int32_t> stops = stop_ids(form, tokenizer);
    const Stops named = read_stops(put.stop, tokenizer);
    for (const auto& more : {named.ids, answerer_.eos}) stops.insert(stops.end(), more.begin(), more.end());
    source.stop_ids = collect_stop_ids({}, tokenizer, stops);
    for (int32_t id : source.stop_ids) as.stop_texts.push_back(tokenizer.decode({&id, 1}, false));
    as.end_texts = source.end_texts = named.texts;
    as.stop_texts.insert(as.stop_texts.end(), named.texts.begin(), named.texts.end());
    add_prompts(std::move(asked), benchmark, put, form, source, hashed);
  } else {
    as.stop_texts = form.stop;
    as.stop_texts.insert(as.stop_texts.end(), put.stop.begin(), put.stop.end());
    add_texts(std::move(asked), form, hashed);
  }
  source.stop_texts = as.stop_texts;
  settings.push_back({benchmark.name, answerer_.given ? form.name : put.prompt_template, hash_of_text(hashed),
                      source.stop_ids, put.max_tokens, choices, source.end_texts});
  as.name = benchmark.name;
  as.title = benchmark.title;
  as.files = files;
  as.columns = benchmark.columns;
  as.stop_ids = source.stop_ids;
  as.max_tokens = put.max_tokens;
  as.max_tokens_of = source.max_tokens_of;
  as.grader = word_of(benchmark.grader);
  as.extract = extract;
  card.push_back(std::move(as));
  sources.push_back(std::move(source));
  max_tokens = std::max(max_tokens, put.max_tokens);
}

void Asked::add_prompts(std::vector<Problem> asked, const Benchmark& benchmark, const PutToModel& put,
                        const Template& form, EvalSource& source, std::string& hashed) {
  const int64_t longest = longest_prompt(source.choices ? 1 : put.max_tokens);
  PreparedPrompts prepared = prepare_prompts(form, asked, *answerer_.tokenizer, longest);
  if (prepared.dropped > 0) {
    note(Lapse::prompt, prepared.dropped);
    warn(str(benchmark.name, ": ", prepared.dropped, " of ", asked.size(), " prompts left out: empty, or longer than ",
             longest, " tokens; the figures are of the others"));
  }
  const int64_t positions = answerer_.positions > 0 ? answerer_.positions : kAnyLength;
  for (size_t i = 0; i < prepared.problem.size(); ++i) {
    Problem& problem = asked[static_cast<size_t>(prepared.problem[i])];
    hashed += str(problem.id, "\n");
    for (int32_t id : prepared.ids[i]) hashed += str(id, " ");
    hashed += "\n";
    const int64_t room = positions - static_cast<int64_t>(prepared.ids[i].size());
    if (!source.choices && room < put.max_tokens) source.max_tokens_of[problem.id] = room;
    texts.push_back(answerer_.chat ? message_of(form, problem) : ServedPrompt{.text = render(form, problem)});
    problems.push_back(std::move(problem));
    prompts.push_back(std::move(prepared.ids[i]));
  }
  if (!source.max_tokens_of.empty()) {
    note(Lapse::short_prompt, std::ssize(source.max_tokens_of));
    warn(str(benchmark.name, ": ", source.max_tokens_of.size(), " of ", asked.size(), " prompts leave fewer than ",
             put.max_tokens, " of the model's ", positions, " positions: their responses are cut where those end"));
  }
}

// Without a tokenizer nobody here knows how long a prompt is: the server says if one is too long.
void Asked::add_texts(std::vector<Problem> asked, const Template& form, std::string& hashed) {
  for (Problem& problem : asked) {
    ServedPrompt prompt;
    if (!answerer_.given)
      prompt = answerer_.chat ? message_of(form, problem) : ServedPrompt{.text = render(form, problem)};
    hashed += str(problem.id, "\n", prompt.system, "\n", answerer_.given ? problem.text : prompt.text, "\n");
    texts.push_back(std::move(prompt));
    problems.push_back(std::move(problem));
  }
}

}  // namespace ucas
