// The code grader: takes the program out of a response, runs it in the sandbox against the problem's tests, compares
// outside. One process a response, its tests one after the other.
#include <signal.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/process/thread_pool.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "verify/code/tests.h"
#include "verify/registry.h"
#include "verify/sandbox/sandbox.h"

namespace ucas::code {

namespace {

constexpr size_t kSourceLimit = size_t{1} << 20;    // bytes of a program
constexpr int64_t kResultLimit = int64_t{1} << 20;  // bytes of results, besides twice what is expected
constexpr size_t kKeptTests = size_t{64} << 20;     // bytes of gold answers whose tests are kept

// How a program did on the tests of one run.
struct Score {
  int64_t passed = 0, first_failed = -1;
  std::string why;

  void fail(int64_t number, std::string reason) {
    if (first_failed >= 0 && number > first_failed) return;
    first_failed = number;
    why = std::move(reason);
  }
};

class CodeGrader final : public Grader {
 public:
  explicit CodeGrader(const GraderSetup& setup) : setup_(setup) {}

  std::vector<Verdict> grade(std::span<const Answer> answers) const override {
    prepare();
    std::vector<Verdict> verdicts(answers.size());
    share_out(answers.size(), 1, 0, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) verdicts[i] = grade_one(answers[i]);
    });
    return verdicts;
  }

  // Two programs are the same answer if they are the same text.
  void classify(std::span<Verdict> group) const override {
    std::map<std::string, int32_t> numbers;
    number_classes(
        group, [&](const std::string& source, int32_t next) { return numbers.emplace(source, next).first->second; });
  }

  void prepare() const override {
    const std::lock_guard lock(guard_);
    if (sandbox_ == nullptr) sandbox_ = std::make_unique<Sandbox>(setup_.code);
  }

  void check_gold(const std::vector<std::string>& gold, const std::string& where) const override {
    if (!gold.empty()) read_tests(gold.front(), where, python());
  }

  bool is_slow() const override { return true; }

  std::string circumstances() const override {
    prepare();
    return str("sandbox ", word_of(sandbox_->tier()), ", Python ", sandbox_->python_version());
  }

 private:
  Verdict grade_one(const Answer& answer) const {
    Verdict verdict;
    verdict.reason = "no code";
    const size_t from = answer.response.size() - std::min(answer.response.size(), kResponseLimit);
    const auto source = find_source(answer.response.substr(from), answer.extract.value_or(setup_.extract));
    if (!source) return verdict;
    verdict.answer = std::string(source->substr(0, kAnswerLimit));
    if (source->size() > kSourceLimit) {
      verdict.decide(VerdictKind::over_budget, "the program is too long");
      return verdict;
    }
    verdict.reason = "no tests";
    if (answer.gold == nullptr || answer.gold->empty()) return verdict;
    std::shared_ptr<const Tests> tests;
    try {
      tests = tests_of(answer.gold->front());
    } catch (const Error& error) {
      verdict.reason = printable(error.what(), 200);
      return verdict;
    }
    judge(*tests, *source, verdict);
    return verdict;
  }

  // What belongs to the sandbox is tried again, and in the end no verdict: a wrong answer is the program's alone.
  void judge(const Tests& tests, std::string_view source, Verdict& verdict) const {
    std::vector<std::string> steps;
    const size_t prelude = tests.prelude.empty() ? 0 : 1;
    for (const Step& step : tests.steps) {
      steps.push_back(tests.input ? step.code : (step.kind == Step::Kind::run ? "x" : "t") + step.code);
    }
    const std::string whole = prelude == 0 ? std::string(source) : str(tests.prelude, "\n", source);
    const std::string task = make_task(tests.input ? "input" : "steps", whole, steps);
    const int64_t results = kResultLimit + 2 * static_cast<int64_t>(tests.expected_bytes);
    Score score;
    bool loaded = true;
    int64_t seen = 0;
    const auto begin = [&] {
      score = {};
      loaded = true;
      seen = 0;
    };
    const Ended ended = sandbox_->insist(task, results, begin,
                                         [&](const Frame& frame) { return take(frame, tests, score, seen, loaded); });
    decide(ended, tests, score, loaded, verdict);
  }

  // Each test counts once and in order, whatever the program writes to the pipe.
  static bool take(const Frame& frame, const Tests& tests, Score& score, int64_t& seen, bool& loaded) {
    if (frame.kind == 'c') {
      loaded = false;
      score.fail(0, printable(frame.payload, 200));
      return true;
    }
    if (frame.kind != 'v' && frame.kind != 'o' && frame.kind != 'e') return true;
    if (frame.number != seen || seen >= static_cast<int64_t>(tests.expected.size())) {
      score.fail(std::min(frame.number, seen), "results that are none");
      return false;
    }
    const Expected& expected = tests.expected[static_cast<size_t>(seen++)];
    bool passed = false;
    std::string why = "another result";
    if (frame.kind == 'e') {
      why = printable(frame.payload, 200);
    } else if (tests.input) {
      passed = frame.kind == 'o' && meets(frame.payload, expected);
    } else if (const auto value = frame.kind == 'v' ? parse_value(frame.payload) : std::nullopt) {
      passed = meets(*value, expected);
    }
    if (passed) {
      ++score.passed;
    } else {
      score.fail(frame.number, why);
    }
    return true;
  }

  void decide(const Ended& ended, const Tests& tests, const Score& score, bool loaded, Verdict& verdict) const {
    const auto all = static_cast<int64_t>(tests.expected.size());
    const std::string share = str(score.passed, " of ", all, " tests");
    if (score.passed == all && score.first_failed < 0) {
      verdict.decide(VerdictKind::equal, share);
    } else if (ended.how == Ended::How::out_of_time) {
      verdict.decide(VerdictKind::over_budget, str(share, " in ", setup_.code.wall_seconds, " s"));
    } else if (ended.how == Ended::How::too_much) {
      verdict.decide(VerdictKind::over_budget, str(share, ", too much output"));
    } else if (!loaded) {
      verdict.decide(VerdictKind::unequal, score.why);
    } else if (score.first_failed >= 0) {
      verdict.decide(VerdictKind::unequal, str(share, "; test ", score.first_failed + 1, ": ", score.why));
    } else if (ended.how == Ended::How::killed) {
      // The limit on CPU time kills; what dies of something else is no slow program on a slow machine.
      const bool time = ended.code == SIGKILL && ended.seconds >= static_cast<double>(setup_.code.cpu()) - 0.5;
      verdict.decide(time ? VerdictKind::over_budget : VerdictKind::unequal,
                     str(share, time ? ", out of CPU time" : str(", killed by signal ", ended.code)));
    } else {
      verdict.decide(VerdictKind::unequal, str(share, ", ended early"));
    }
    verdict.score = all == 0 ? 0.0f : static_cast<float>(score.passed) / static_cast<float>(all);
  }

  std::string python() const {
    const std::lock_guard lock(guard_);
    if (python_.empty()) {
      python_ = sandbox_ ? sandbox_->python() : Sandbox::untried(setup_.code, SandboxChoice::none).python();
    }
    return python_;
  }

  // Tests are read once for the responses of a group.
  std::shared_ptr<const Tests> tests_of(const std::string& gold) const {
    {
      const std::lock_guard lock(guard_);
      if (const auto found = tests_.find(gold); found != tests_.end()) return found->second;
    }
    auto tests = std::make_shared<const Tests>(read_tests(gold, "gold", python()));
    const std::lock_guard lock(guard_);
    kept_ += gold.size();
    if (kept_ > kKeptTests) {
      tests_.clear();
      kept_ = gold.size();
    }
    tests_.emplace(gold, tests);
    return tests;
  }

  GraderSetup setup_;
  // What is found out once; no verdict depends on it.
  mutable std::mutex guard_;
  mutable std::unique_ptr<Sandbox> sandbox_;
  mutable std::string python_;
  mutable std::map<std::string, std::shared_ptr<const Tests>> tests_;
  mutable size_t kept_ = 0;
};

}  // namespace

}  // namespace ucas::code

namespace ucas {

std::unique_ptr<Grader> make_code_grader(const GraderSetup& setup) { return std::make_unique<code::CodeGrader>(setup); }

}  // namespace ucas
