#include "evaluate/engine/shared_evaluation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/text/json.h"
#include "rollout/shared_rollout.h"
#include "sharding/shared_grading.h"

namespace ucas {

namespace {

constexpr char kChoices = 'c', kResponses = 'g';  // the first character of what followers are sent
constexpr size_t kResponsesAtOnce = 4096;

// Numbers and texts as bytes: what a model wrote and what counts as right may hold any.
class Writer {
 public:
  void number(uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes += value;
  }
  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool done() const { return left_.empty(); }
  uint64_t number() {
    uint64_t value = 0;
    UCAS_CHECK(left_.size() >= sizeof value, "what rank 0 sends must be complete");
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = number();
    UCAS_CHECK(left_.size() >= size, "what rank 0 sends must be complete");
    std::string value(left_.substr(0, size));
    left_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view left_;
};

// Neighbours by each rank; every rank has all questions, rank 0 gets all scores.
std::vector<ChoiceScore> scored_by_all(Model& model, std::span<const ChoiceQuestion> questions, Ranks& ranks) {
  const RankShare own = share_of(ranks, std::ssize(questions));
  const auto mine = questions.subspan(static_cast<size_t>(own.first), static_cast<size_t>(own.last - own.first));
  const std::vector<ChoiceScore> scores =
      ranks.together("comparing choices", [&] { return score_choices(model, mine); });
  std::vector<double> numbers;
  for (const ChoiceScore& score : scores) {
    numbers.insert(numbers.end(), score.logprob.begin(), score.logprob.end());
    numbers.insert(numbers.end(), {score.entropy, score.confidence});
  }
  std::string all;
  for (const std::string& part : ranks.all_gather(
           "scores of choices", {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)})) {
    all += part;
  }
  std::vector<ChoiceScore> out;
  const char* at = all.data();
  const auto take = [&](std::span<double> into) {
    UCAS_CHECK(all.data() + all.size() - at >= static_cast<std::ptrdiff_t>(into.size_bytes()), "expected all scores");
    std::memcpy(into.data(), at, into.size_bytes());
    at += into.size_bytes();
  };
  for (const ChoiceQuestion& question : questions) {
    ChoiceScore& score = out.emplace_back();
    score.logprob.resize(question.letters.size());
    take(score.logprob);
    take({&score.entropy, 1});
    take({&score.confidence, 1});
  }
  return out;
}

// A problem where it is another one than that of the response before, and the response.
std::string responses_as_bytes(const GradedBy& graded_by, std::span<const GradeItem> items) {
  Writer out;
  out.bytes = kResponses;
  const Problem* before = nullptr;
  for (const GradeItem& item : items) {
    out.number(item.problem != before);
    if (item.problem != before) {
      const auto& [kind, extract] = graded_by.at(item.problem->source);
      out.number(static_cast<uint64_t>(kind));
      out.number(static_cast<uint64_t>(extract));
      out.text(item.problem->source);
      out.text(item.problem->id);
      out.number(item.problem->gold.size());
      for (const std::string& gold : item.problem->gold) out.text(gold);
    }
    before = item.problem;
    out.text(item.response);
  }
  return out.bytes;
}

// Of a follower: its graders, made when they are first needed.
class Follower {
 public:
  Follower(const FollowedEvaluation& with, Ranks& ranks) : with_(with), ranks_(ranks) {}

  void work(const std::string& told) {
    if (told[0] == kChoices) {
      compare(std::string_view(told).substr(1));
    } else {
      UCAS_CHECK(told[0] == kResponses, "expected work of a known kind");
      grade(std::string_view(told).substr(1));
    }
  }

 private:
  void compare(std::string_view told) {
    const Json said = parse_json(std::string(told), "what rank 0 sends");
    std::vector<std::vector<int32_t>> ids;
    for (const Json& question : said)
      for (const Json& list : question) ids.push_back(list.get<std::vector<int32_t>>());
    std::vector<ChoiceQuestion> questions;
    for (size_t i = 0; i + 1 < ids.size(); i += 2) questions.push_back({ids[i], ids[i + 1]});
    scored_by_all(with_.model(), questions, ranks_);
  }

  void grade(std::string_view told) {
    Reader in(told);
    std::vector<std::unique_ptr<Problem>> problems;
    std::vector<std::string> responses;
    std::vector<const Problem*> of;
    ranks_.together("reading responses", [&] {
      while (!in.done()) {
        if (in.number() != 0) problems.push_back(read_problem(in));
        UCAS_CHECK(!problems.empty(), "a response belongs to a problem");
        of.push_back(problems.back().get());
        responses.push_back(in.text());
      }
    });
    std::vector<GradeItem> items;
    for (size_t i = 0; i < responses.size(); ++i) items.push_back({of[i], responses[i]});
    grade_shared(graders_, items, ranks_);
  }

  std::unique_ptr<Problem> read_problem(Reader& in) {
    const auto kind = static_cast<GraderKind>(in.number());
    const auto extract = static_cast<Extract>(in.number());
    auto problem = std::make_unique<Problem>();
    problem->source = in.text();
    problem->id = in.text();
    for (uint64_t golds = in.number(); golds > 0; --golds) problem->gold.push_back(in.text());
    std::shared_ptr<const Grader>& grader = made_[{kind, extract}];
    if (!grader) {
      grader = with_.make_grader(kind, extract);
      grader->prepare();
    }
    graders_.of[problem->source] = grader;
    return problem;
  }

  const FollowedEvaluation& with_;
  Ranks& ranks_;
  std::map<std::pair<GraderKind, Extract>, std::shared_ptr<const Grader>> made_;
  Graders graders_;
};

}  // namespace

std::vector<ChoiceScore> score_choices_shared(Model& model, std::span<const ChoiceQuestion> questions, Ranks& ranks) {
  Json said = Json::array();
  for (const ChoiceQuestion& question : questions) {
    said.push_back({std::vector<int32_t>(question.prompt.begin(), question.prompt.end()),
                    std::vector<int32_t>(question.letters.begin(), question.letters.end())});
  }
  tell_followers(ranks, kChoices + said.dump());
  return scored_by_all(model, questions, ranks);
}

std::vector<Verdict> grade_for_all(const Graders& graders, const GradedBy& graded_by, std::span<const GradeItem> items,
                                   Ranks& ranks) {
  std::vector<Verdict> verdicts;
  for (size_t first = 0; first < items.size(); first += kResponsesAtOnce) {
    const auto part = items.subspan(first, std::min(kResponsesAtOnce, items.size() - first));
    tell_followers(ranks, responses_as_bytes(graded_by, part));
    ranks.together("reading responses", [] {});
    std::vector<Verdict> graded = grade_shared(graders, part, ranks);
    std::ranges::move(graded, std::back_inserter(verdicts));
  }
  return verdicts;
}

void follow_evaluation(const FollowedEvaluation& with, Ranks& ranks) {
  Follower follower(with, ranks);
  follow_rollout(with.own, ranks, with.should_stop, [&](const std::string& work) { follower.work(work); });
}

}  // namespace ucas
