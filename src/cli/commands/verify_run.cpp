#include "cli/commands/verify_run.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "config/train_config.h"
#include "evaluate/sources/responses_file.h"
#include "records/outputs.h"
#include "records/run/rollouts.h"
#include "records/run/run_directory.h"
#include "records/run_record.h"
#include "verify/registry.h"

namespace ucas {

namespace {

// A response with its verdict before and now.
struct Regraded {
  std::string id, before, now, answer, gold;
  int64_t sample = 0;
};

// An evaluation, or all steps of a training.
struct RegradedPart {
  std::string place, by;
  std::vector<std::string> remarks;
  int64_t responses = 0;
  std::vector<Regraded> flips;
  std::map<std::string, int64_t> kinds;  // "equal -> unequal"
  bool counts_differ = false;            // of right samples whose verdicts are not stored one by one
  bool same() const { return flips.empty() && !counts_differ; }

  void add(Regraded response) {
    if (response.before == response.now) return;
    ++kinds[str(response.before, " -> ", response.now)];
    flips.push_back(std::move(response));
  }
};

std::string by_words(const RegradeOptions& options) {
  return str(options.grader ? word_of(*options.grader) : "the recorded grader",
             options.extract ? str(", ", word_of(*options.extract)) : "");
}

bool overridden(const RegradeOptions& options) { return options.grader || options.extract; }

std::string verdict_text(const SampledResponse& response) {
  return name_of(response.verdict.value_or(VerdictKind::unparseable));
}

// Stored verdicts are those of the greedy responses and of the first few samples; under another grader all are graded
// under both.
RegradedPart regrade(const RunRecord& run, const EvalRecord& evaluation, const RegradeOptions& options) {
  const std::string folder = path_join(run.path, "eval");
  RegradedPart part{.place = path_join(folder, evaluation.name), .by = by_words(options)};
  Asked asked = *evaluation.asked;
  if (asked.grader_version != kGraderVersion) {
    part.remarks.push_back(str("graded then by version ", asked.grader_version, " of the grader, now by version ",
                               kGraderVersion, ": verdicts may differ for that reason alone"));
  }
  const std::vector<Problem> problems = problems_of(evaluation);
  EvalConfig config = evaluation.config;
  config.stored_responses = config.samples;
  config.bootstrap_draws = 0;  // no interval of it is read
  const Graders recorded = graders_of(asked);
  const std::vector<Responses> responses =
      by_problem(problems, read_outputs(path_join(folder, evaluation.name + ".outputs.jsonl")).outputs, config.greedy,
                 config.samples);
  std::vector<ProblemRow> before = evaluation.rows;
  if (overridden(options)) before = score(problems, responses, recorded, config).rows;
  for (AskedSet& set : asked.sets) {
    set.grader = options.grader.value_or(set.grader);
    set.extract = options.extract.value_or(set.extract);
  }
  const std::vector<ProblemRow> now = score(problems, responses, graders_of(asked), config).rows;
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string gold = join(now[i].gold, " or ");
    const auto add = [&](const SampledResponse& was, const SampledResponse& is, int64_t sample) {
      part.add({now[i].id, verdict_text(was), verdict_text(is), is.answer, gold, sample});
    };
    if (before[i].greedy && now[i].greedy) add(*before[i].greedy, *now[i].greedy, kGreedySample);
    const size_t both = std::min(before[i].responses.size(), now[i].responses.size());
    for (size_t k = 0; k < both; ++k) add(before[i].responses[k], now[i].responses[k], static_cast<int64_t>(k));
    part.responses += (now[i].greedy ? 1 : 0) + std::ssize(now[i].responses);
    if (before[i].correct != now[i].correct && both < now[i].responses.size()) {
      part.counts_differ = true;
      part.remarks.push_back(str(printable(now[i].id, 60), ": ", before[i].correct, " of ", before[i].samples,
                                 " samples were right, now ", now[i].correct));
    }
  }
  return part;
}

// The stored steps of a training, by its own settings.
RegradedPart regrade_rollouts(const RunRecord& run, const RegradeOptions& options) {
  RegradedPart part{.place = path_join(run.path, "rollouts"), .by = by_words(options)};
  const RewardConfig reward = make_train_config(read_toml(path_join(run.path, "config.toml"))).reward;
  if (reward.from_outside() && !options.grader) {
    part.remarks.push_back(str("not graded: the verdicts are those of ", reward.scorer(), "; name a --grader"));
    return part;
  }
  GraderSetup setup = reward.setup();
  setup.extract = options.extract.value_or(setup.extract);
  std::map<std::string, GraderKind> by_source;
  if (!options.grader) by_source = parse_graders(reward.graders, "reward.graders");
  const Graders graders = make_graders(options.grader.value_or(reward.grader), by_source, setup);
  for (const std::string& name : list_directory(part.place)) {
    if (parse_step_name(name) < 0 || !name.ends_with(".jsonl")) continue;
    const std::vector<StoredResponse> stored = read_rollouts(path_join(part.place, name), part.remarks);
    std::vector<Problem> problems(stored.size());
    std::vector<GradeItem> items;
    for (size_t i = 0; i < stored.size(); ++i) {
      problems[i].id = stored[i].problem, problems[i].source = stored[i].source, problems[i].gold = stored[i].gold;
      items.push_back({&problems[i], stored[i].response});
    }
    const std::vector<Verdict> verdicts = grade_all(graders, items);
    part.responses += std::ssize(stored);
    for (size_t i = 0; i < stored.size(); ++i) {
      if (!stored[i].verdict) continue;
      const bool cut = !stored[i].finished && reward.truncated == Truncated::wrong;
      const VerdictKind now = cut && verdicts[i].kind == VerdictKind::equal ? VerdictKind::unequal : verdicts[i].kind;
      part.add({str("step ", parse_step_name(name), ", ", stored[i].problem), name_of(*stored[i].verdict), name_of(now),
                verdicts[i].answer, join(stored[i].gold, " or "), stored[i].sample});
    }
  }
  return part;
}

std::string text_of(const RegradedPart& part, int64_t shown) {
  std::string text =
      str(printable(part.place, 400), ": ", many(part.responses, "response"), " graded again by ", part.by, "\n");
  for (const std::string& remark : part.remarks) text += str("  note: ", remark, "\n");
  if (part.flips.empty()) return text + (part.same() ? "  no verdict flips\n" : "  no stored verdict flips\n");
  for (const auto& [kind, count] : part.kinds) text += str("  ", kind, ": ", grouped(count), "\n");
  int64_t listed = 0;
  for (const Regraded& r : part.flips) {
    if (listed++ == shown) break;
    text += str("    ", printable(r.id, 80), r.sample < 0 ? ", greedy" : str(", sample ", r.sample), ": ", r.before,
                " -> ", r.now, r.answer.empty() ? "" : str(", read as ", printable(r.answer, 60)), ", right is ",
                printable(r.gold, 60), "\n");
  }
  const auto all = std::ssize(part.flips);
  return all > shown ? str(text, "    and ", grouped(all - shown), " more (--show N lists more)\n") : text;
}

OrderedJson json_of(const RegradedPart& part) {
  OrderedJson json = {{"place", part.place},   {"by", part.by},       {"responses", part.responses},
                      {"notes", part.remarks}, {"kinds", part.kinds}, {"flips", OrderedJson::array()}};
  for (const Regraded& r : part.flips) {
    json["flips"].push_back({{"id", r.id},
                             {"sample", r.sample},
                             {"before", r.before},
                             {"now", r.now},
                             {"answer", r.answer},
                             {"gold", r.gold}});
  }
  return json;
}

}  // namespace

int verify_run(const std::string& path, const RegradeOptions& options) {
  const RunRecord run = read_run(path);
  std::vector<RegradedPart> parts;
  for (const EvalRecord& evaluation : run.evaluations) {
    const std::string outputs = path_join(run.path, str("eval/", evaluation.name, ".outputs.jsonl"));
    if (evaluation.asked && exists(outputs)) parts.push_back(regrade(run, evaluation, options));
  }
  const std::string rollouts = path_join(run.path, "rollouts");
  if (exists(path_join(run.path, "config.toml")) && is_directory(rollouts) && !list_directory(rollouts).empty()) {
    parts.push_back(regrade_rollouts(run, options));
  }
  if (parts.empty()) {
    throw Error(ErrorKind::path, str(printable(path, 400),
                                     ": no stored responses: expected eval/NAME.outputs.jsonl of `ucas evaluate "
                                     "--out`, or rollouts/ of a training"));
  }
  bool same = true;
  OrderedJson json = {{"run", path}, {"parts", OrderedJson::array()}};
  for (const RegradedPart& part : parts) {
    same = same && part.same();
    json["parts"].push_back(json_of(part));
    if (!options.json) out(text_of(part, options.shown));
  }
  if (options.json) out(json_text(json, 2) + "\n");
  return same || overridden(options) ? kDone : kDiffers;
}

}  // namespace ucas
