// Cases of collection: the overlong penalty and dynamic sampling.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/str.h"
#include "objective/filter/dynamic_sampling.h"
#include "support/case_kinds.h"

namespace ucas::testing {

namespace {

void check_overlong(CaseRun& run) {
  auto limit = static_cast<int64_t>(run.number("max_len")), buffer = static_cast<int64_t>(run.number("buffer"));
  double factor = run.number("factor", 1);
  std::vector<double> released, paper;
  for (double length : flat(run.in("lengths"), "inputs.lengths")) {
    released.push_back(overlong_penalty(static_cast<int64_t>(length), limit, buffer, factor));
    paper.push_back(overlong_penalty(static_cast<int64_t>(length), limit, buffer, 1));
  }
  run.numbers_are("penalty", released);
  run.numbers_are("paper_penalty", paper);
}

void names_are(CaseRun& run, const std::string& key, const std::vector<std::string>& names,
               const std::vector<int64_t>& numbers) {
  if (!run.wants(key)) return;
  std::vector<std::string> got;
  for (int64_t number : numbers) got.push_back(names.at(static_cast<size_t>(number)));
  run.report().close(str("number of ", key), static_cast<double>(got.size()),
                     static_cast<double>(run.expected(key).size()));
  if (Json(got) != run.expected(key)) run.report().fail(str(key, ": got ", join(got, " ")));
}

SamplingAction action_of(const std::string& word) {
  for (const char* abort : {"abort", "error", "raise", "fail", "stop"}) {
    if (word.starts_with(abort)) return SamplingAction::abort;
  }
  if (word == "train") return SamplingAction::train;
  for (const char* more : {"continue", "more", "generate", "need", "exhausted", "incomplete", "drop"}) {
    if (word.starts_with(more)) return SamplingAction::more;
  }
  throw Error(ErrorKind::schema, str("expected.action ", printable(word), " is none of train, continue, abort"));
}

// gen_batches: lists of [name, metric of each response].
void check_dynamic_sampling(CaseRun& run) {
  KeepRule rule;
  rule.mixed = true;
  rule.train_short = false;
  rule.wanted = static_cast<int64_t>(run.number("train_batch"));
  rule.max_gen_batches = static_cast<int64_t>(run.number("max_num_gen_batches", 0));
  DynamicSampling sampling(rule);
  SamplingAction action = SamplingAction::more;
  std::vector<std::string> names;
  for (const Json& generation : run.in("gen_batches")) {
    if (action != SamplingAction::more) break;
    std::vector<PromptOutcome> prompts;
    for (const Json& prompt : generation) {
      names.push_back(prompt.at(0).is_string() ? prompt.at(0).get<std::string>() : prompt.at(0).dump());
      prompts.push_back({flat(prompt.at(1), "inputs.gen_batches"), 0, 0});
    }
    action = sampling.add(prompts);
  }
  bool trains = action == SamplingAction::train;
  if (run.wants("action") && action_of(run.expected("action")) != action) {
    run.report().fail(str("action: got ", trains ? "train" : action == SamplingAction::abort ? "abort" : "more"));
  }
  run.number_is("num_gen_batches", static_cast<double>(sampling.gen_batches()));
  std::vector<int64_t> kept = sampling.kept(), trained, surplus;  // passed, but not trained on
  if (trains) trained = sampling.trained();
  if (trains) surplus.assign(kept.begin() + std::min(kept.size(), trained.size()), kept.end());
  names_are(run, "kept", names, kept);
  names_are(run, "trained", names, trained);
  names_are(run, "dropped_surplus", names, surplus);
}

const AddCaseKinds kCollect{{{"overlong", check_overlong}, {"dynamic-sampling", check_dynamic_sampling}}};

}  // namespace

}  // namespace ucas::testing
