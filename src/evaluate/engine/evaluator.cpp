#include "evaluate/engine/evaluator.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "rollout/policy.h"
#include "text/unicode/unicode.h"

namespace ucas {

namespace {

// Of the journal: an id of six digits and its comma, four bytes of text and one to escape them; a response's other
// fields.
constexpr double kBytesOfToken = 12, kBytesOfResponse = 400;

Output output_of(const Episode& sampled, const Problem& problem, bool greedy, const Tokenizer& tokenizer) {
  Output out;
  out.source = problem.source;
  out.id = problem.id;
  out.sample = greedy ? kGreedySample : sampled.sample;
  out.text = replace_invalid(response_text(tokenizer, sampled.token));
  out.ids = sampled.token;
  out.inserts = sampled.inserts;
  out.finished = sampled.finished;
  for (size_t t = 0; t < sampled.token.size(); ++t) {
    out.logprob += sampled.logprob[t];
    if (sampled.entropy.empty()) continue;  // a server's
    out.entropy += sampled.entropy[t];
    out.confidence += sampled.confidence[t];
  }
  const auto tokens = static_cast<double>(std::max<size_t>(sampled.token.size(), 1));
  out.entropy /= tokens;
  out.confidence /= tokens;
  if (sampled.entropy.empty()) out.entropy = out.confidence = kUnknown;
  return out;
}

class Generation {
 public:
  Generation(const EvalInput& input, const EvalConfig& config) : input_(input), config_(config) {
    for (const EvalSource& source : input.sources) sources_[source.name] = &source;
  }
  // Responses by problem; nothing when stopped early.
  std::optional<std::vector<Responses>> run(ResponseSource& source);
  int64_t prepare();  // what is to be done, and whether the disk has room for it; how many responses are missing
  int64_t tokens() const { return tokens_; }

 private:
  const EvalSource* source_of(size_t problem) const {
    const auto found = sources_.find(input_.problems[problem].source);
    return found == sources_.end() ? nullptr : found->second;
  }
  void take_found();
  void say_work(int64_t missing) const;
  void say_found(int64_t missing) const;
  void check_disk(int64_t missing) const;
  void add_jobs(size_t problem);
  void add_job(size_t problem, bool greedy, int64_t first, int64_t count);
  void take(const ResponseJob& job, Output output);
  std::vector<Responses> arranged();

  // What is there of one problem: a slot for each response asked for.
  struct Slots {
    std::vector<std::optional<Output>> greedy, samples;
  };
  const EvalInput& input_;
  const EvalConfig& config_;
  std::map<std::string, const EvalSource*> sources_;
  std::vector<Slots> slots_;
  std::vector<ResponseJob> jobs_;
  int64_t tokens_ = 0;
};

int64_t Generation::prepare() {
  slots_.resize(input_.problems.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].greedy.resize(config_.greedy ? 1 : 0);
    slots_[i].samples.resize(static_cast<size_t>(config_.samples));
  }
  take_found();
  int64_t missing = 0;
  for (size_t i = 0; i < slots_.size(); ++i) add_jobs(i);
  for (const ResponseJob& job : jobs_) missing += job.count;
  check_disk(missing);
  return missing;
}

std::optional<std::vector<Responses>> Generation::run(ResponseSource& source) {
  int64_t missing = prepare();
  say_work(missing);
  say_found(missing);
  if (missing > 0) {
    std::optional<Progress> progress;
    if (input_.show_progress) {
      progress.emplace(input_.label.empty() ? "evaluate" : str("evaluate ", input_.label), missing, "responses");
    }
    int64_t ended = 0, made = 0;  // responses; tokens, of active ones, too
    const auto say = [&] {
      if (progress) progress->update(ended, str(grouped(made), " tokens"));
    };
    const auto take_one = [&](size_t job, Output output) {
      take(jobs_[job], std::move(output));
      ++ended;
      say();
    };
    const auto token = [&] {
      if (++made % 64 == 0) say();
    };
    const bool stopped = input_.should_stop && input_.should_stop();
    if (!stopped) source.run({jobs_, config_, take_one, token, input_.should_stop});
    missing -= ended;
    if (progress) progress->finish(str(grouped(tokens_), " tokens"));
  }
  if (input_.journal) input_.journal->sync();
  if (missing > 0) return std::nullopt;
  return arranged();
}

void Generation::take_found() {
  if (!input_.journal) return;
  std::map<std::pair<std::string_view, std::string_view>, size_t> place;
  for (size_t i = 0; i < slots_.size(); ++i) place[{input_.problems[i].source, input_.problems[i].id}] = i;
  for (Output& output : input_.journal->take_found()) {
    const auto found = place.find({output.source, output.id});
    if (found == place.end()) continue;
    Slots& slots = slots_[found->second];
    auto& list = output.sample == kGreedySample ? slots.greedy : slots.samples;
    const auto at = static_cast<size_t>(output.sample == kGreedySample ? 0 : output.sample);
    if (at < list.size()) list[at] = std::move(output);
  }
}

// Before the first of them: how many responses it will be, of which problems.
void Generation::say_work(int64_t missing) const {
  if (!input_.show_progress) return;
  int64_t greedy = 0, samples = 0, longest = config_.max_tokens;
  std::vector<std::pair<std::string, int64_t>> sets;  // in order
  for (size_t i = 0; i < slots_.size(); ++i) {
    greedy += std::ssize(slots_[i].greedy);
    samples += std::ssize(slots_[i].samples);
    const std::string& source = input_.problems[i].source;
    auto set = std::ranges::find(sets, source, &std::pair<std::string, int64_t>::first);
    if (set == sets.end()) set = sets.insert(sets.end(), {source, 0});
    ++set->second;
  }
  if (missing < greedy + samples) return;  // some are there: said by say_found()
  std::vector<std::string> names;
  for (const auto& [source, count] : sets) names.push_back(str(grouped(count), " of ", source));
  log(str(input_.label, input_.label.empty() ? "" : ": ", "problems: ", join(names, ", "),
          "; responses to sample: ", grouped(greedy + samples), " (", grouped(greedy), " greedy",
          samples > 0 ? str(" and ", config_.samples, " sampled for each problem") : "", "), of at most ",
          grouped(longest), " tokens"));
}

void Generation::say_found(int64_t missing) const {
  int64_t all = 0;
  for (const Slots& slots : slots_) all += static_cast<int64_t>(slots.greedy.size() + slots.samples.size());
  if (missing == all || !input_.show_progress) return;
  log(str(input_.label, ": found ", grouped(all - missing), " of ", grouped(all), " responses",
          missing > 0 ? str(", going on with ", grouped(missing)) : ", nothing to generate"));
}

// Were every response that is missing to go on to its limit; in the end a new file is written next to it.
void Generation::check_disk(int64_t missing) const {
  if (input_.disk_free == 0 || missing == 0) return;
  double bytes = kBytesOfResponse * static_cast<double>(missing);
  int64_t longest = 0;
  for (const ResponseJob& job : jobs_) {
    const int64_t tokens = job.max_tokens > 0 ? job.max_tokens : config_.max_tokens;
    bytes += kBytesOfToken * static_cast<double>(tokens) * static_cast<double>(job.count);
    longest = std::max(longest, tokens);
  }
  bytes *= 2;
  const auto room = static_cast<double>(input_.disk_free);
  if (bytes <= room) return;
  throw Error(ErrorKind::limit,
              str("the ", grouped(missing), " responses may take ", human_bytes(bytes), " of disk, of up to ",
                  grouped(longest), " tokens each; ", human_bytes(room),
                  " are free there; make room, or ask for less (--samples, --max_tokens, --limit, another --out)"));
}

// Greedy first, then each stretch of samples that is not there yet.
void Generation::add_jobs(size_t problem) {
  const Slots& slots = slots_[problem];
  if (!slots.greedy.empty() && !slots.greedy[0]) {
    add_job(problem, true, 0, 1);
  }
  const auto n = static_cast<int64_t>(slots.samples.size());
  for (int64_t first = 0; first < n;) {
    int64_t end = first;
    while (end < n && !slots.samples[static_cast<size_t>(end)]) ++end;
    if (end > first) add_job(problem, false, first, end - first);
    first = std::max(end, first + 1);
  }
}

void Generation::add_job(size_t problem, bool greedy, int64_t first, int64_t count) {
  ResponseJob job{.problem = problem, .greedy = greedy, .first = first, .count = count};
  job.key = input_.keyed_by_position ? static_cast<uint32_t>(problem) : sample_key(input_.problems[problem]);
  if (const EvalSource* source = source_of(problem)) {
    const auto less = source->max_tokens_of.find(input_.problems[problem].id);
    job.max_tokens = less == source->max_tokens_of.end() ? source->max_tokens : less->second;
    job.stop_ids = source->stop_ids;
    if (!source->end_texts.empty()) job.end_texts = &source->end_texts;
  }
  jobs_.push_back(job);
}

void Generation::take(const ResponseJob& job, Output output) {
  Slots& slots = slots_[job.problem];
  auto& slot = job.greedy ? slots.greedy[0] : slots.samples.at(static_cast<size_t>(output.sample));
  if (input_.journal) input_.journal->append(output);
  tokens_ += output.length();
  slot = std::move(output);
}

std::vector<Responses> Generation::arranged() {
  std::vector<Responses> out(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    for (auto& output : slots_[i].greedy) out[i].greedy.push_back(std::move(*output));
    for (auto& output : slots_[i].samples) out[i].samples.push_back(std::move(*output));
  }
  return out;
}

}  // namespace

uint32_t sample_key(const Problem& problem) {
  const std::string hash = hash_of_text(str(problem.source, "\n", problem.id));
  return static_cast<uint32_t>(std::stoull(hash.substr(0, 8), nullptr, 16));
}

void RolloutSource::run(const ResponseRequest& request) {
  UCAS_CHECK(input_.problems.size() == input_.prompts.size(), "expected one prompt per problem");
  std::vector<PromptJob> jobs;
  for (const ResponseJob& asked : request.jobs) {
    jobs.push_back({.prompt = input_.prompts[asked.problem],
                    .problem = asked.key,
                    .samples = asked.count,
                    .first_sample = static_cast<uint32_t>(asked.first),
                    .greedy = asked.greedy,
                    .max_tokens = asked.max_tokens,
                    .stop_ids = asked.stop_ids,
                    .asked = &input_.problems[asked.problem]});
  }
  const EvalConfig& config = request.config;
  RolloutRequest rollout;
  rollout.jobs = jobs;
  rollout.sampling = {.temperature = config.temperature,
                      .top_p = config.top_p,
                      .top_k = config.top_k,
                      .min_p = config.min_p,
                      .max_tokens = config.max_tokens};
  rollout.seed = static_cast<uint64_t>(config.seed);
  rollout.step = kEvaluationStep;
  rollout.limits.stop_ids = input_.stop_ids;
  rollout.limits.ends = ends_of(request.jobs);
  rollout.limits.should_stop = request.should_stop;
  rollout.sink.keep = false;
  rollout.sink.on_response = [&](const Episode& sampled) {
    const auto job = static_cast<size_t>(sampled.job);
    const ResponseJob& asked = request.jobs[job];
    request.ended(job, output_of(sampled, input_.problems[asked.problem], asked.greedy, tokenizer_));
  };
  rollout.sink.on_token = [&](int64_t, uint32_t, int32_t) { request.token(); };
  rollout_.run(rollout);
}

// Sources may end their responses at texts of their own; texts that all share are in the input.
std::function<bool(const Episode&)> RolloutSource::ends_of(std::span<const ResponseJob> jobs) const {
  std::map<const std::vector<std::string>*, std::function<bool(const Episode&)>> by_texts;
  for (const ResponseJob& job : jobs) {
    if (job.end_texts != nullptr && !by_texts.contains(job.end_texts)) {
      by_texts[job.end_texts] = ends_at(tokenizer_, *job.end_texts);
    }
  }
  if (by_texts.empty()) return input_.ends;
  return [jobs, by_texts = std::move(by_texts), general = input_.ends](const Episode& sampled) {
    const auto own = by_texts.find(jobs[static_cast<size_t>(sampled.job)].end_texts);
    return (own != by_texts.end() && own->second(sampled)) || (general && general(sampled));
  };
}

void check_room(const EvalInput& input, const EvalConfig& config) { Generation(input, config).prepare(); }

EvalRecord evaluate(ResponseSource& source, const Graders& graders, const EvalInput& input, const EvalConfig& config) {
  if (!config.greedy && config.samples == 0) {
    throw Error(ErrorKind::config, "greedy = false and samples = 0: nothing to evaluate; ask for one of them");
  }
  const double began = now_seconds();
  Generation generation(input, config);
  const std::optional<std::vector<Responses>> responses = generation.run(source);
  EvalRecord result;
  if (responses && input.scored) {
    if (input.journal) input.journal->finish(input.problems);
    std::vector<Verdict> verdicts =
        input.judge ? input.judge(*responses) : grade_all(graders, items_to_grade(input.problems, *responses));
    result = score(input.problems, *responses, graders, config, std::move(verdicts));
  }
  result.complete = responses.has_value();
  result.label = input.label;
  result.model = input.model;
  result.suite = input.suite;
  result.step = input.step;
  result.data = join(input.data, ", ");
  result.config = config;
  result.tokens = generation.tokens();
  result.seconds = now_seconds() - began;
  return result;
}

EvalRecord evaluate(Rollouter& rollout, const Tokenizer& tokenizer, const Graders& graders, const EvalInput& input,
                    const EvalConfig& config) {
  RolloutSource source(rollout, tokenizer, input);
  return evaluate(source, graders, input, config);
}

}  // namespace ucas
