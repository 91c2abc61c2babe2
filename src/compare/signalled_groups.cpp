#include "compare/signalled_groups.h"

#include <algorithm>

#include "base/error.h"
#include "base/str.h"
#include "objective/advantage/group_advantage.h"
#include "verify/registry.h"

namespace ucas {

namespace {

double& value_of(SignalledResponse& o, Signal signal) { return o.signal[static_cast<size_t>(signal)]; }

// Which share of the group gave the same answer; one that could not be read agrees with itself alone.
void add_self_consistency(std::vector<SignalledResponse>& group, const std::vector<Verdict>& verdicts) {
  std::vector<int32_t> answers;
  for (const Verdict& verdict : verdicts) answers.push_back(verdict.answer_class);
  const std::vector<double> shares = agreement(answers);
  for (size_t i = 0; i < group.size(); ++i) value_of(group[i], Signal::self_consistency) = shares[i];
}

SignalledResponse signalled(const SampledResponse& sampled, int64_t words) {
  SignalledResponse o;
  o.opening = opening_of(sampled.response, words);
  o.right = sampled.right();
  o.signal = {sampled.confidence, sampled.logprob / static_cast<double>(sampled.tokens), -sampled.entropy, kUnknown,
              static_cast<double>(sampled.tokens)};
  return o;
}

double mean_or_unknown(const std::vector<float>& values, const Response& o) {
  return values.empty() ? kUnknown : mean(Batch::tokens(values, o));
}

// The text of a response without the tokens that end it.
std::string text_of_step(const StepData& data, const Response& o) {
  std::string text;
  for (int64_t t = o.first; t < o.first + o.length; ++t) {
    const int32_t id = data.batch.token[static_cast<size_t>(t)];
    if (std::ranges::count(data.batch.stop_ids, id) == 0) text += data.piece[static_cast<size_t>(t)];
  }
  return text;
}

// A row of the method's trace, [B]; nullptr if it has none of that name.
const std::vector<float>* traced(const StepData& data, const char* name) {
  for (const StepData::Signal& signal : data.trace) {
    if (!signal.per_token && signal.name == name) return &signal.values;
  }
  return nullptr;
}

SignalledResponse signalled(const StepData& data, const Response& o_i, int64_t words) {
  SignalledResponse o;
  o.opening = opening_of(text_of_step(data, o_i), words);
  o.right = o_i.verdict.kind == VerdictKind::equal;
  o.signal = {mean_or_unknown(data.batch.confidence, o_i), mean_or_unknown(data.batch.old_logprob, o_i),
              -mean_or_unknown(data.batch.entropy, o_i), kUnknown, static_cast<double>(o_i.length)};
  o.A_final = mean_or_unknown(data.advantage, o_i);
  return o;
}

}  // namespace

std::string opening_of(const std::string& text, int64_t words) {
  std::vector<std::string> first;
  std::string word;
  for (const char c : text + " ") {
    if (std::string_view(" \t\r\n\v\f").find(c) == std::string_view::npos) {
      word += c;
    } else if (!word.empty()) {
      first.push_back(std::move(word));
      word.clear();
      if (std::ssize(first) == words) break;
    }
  }
  return join(first, " ");
}

std::vector<SignalledGroup> signalled_groups(std::span<const ProblemRow> rows, int64_t words) {
  std::vector<SignalledGroup> groups;
  for (const ProblemRow& row : rows) {
    SignalledGroup group;
    group.problem = str(row.source, "\n", row.id);
    std::vector<Verdict> verdicts;
    for (const SampledResponse& sampled : row.responses) {
      if (sampled.tokens <= 0) continue;  // no token, or their number is not recorded: nothing to take a mean of
      group.responses.push_back(signalled(sampled, words));
      verdicts.emplace_back();
      verdicts.back().kind = sampled.verdict.value_or(VerdictKind::unparseable);
      verdicts.back().answer = sampled.answer;
    }
    if (group.responses.size() < 2) continue;
    make_grader(GraderKind::math)->classify(verdicts);
    add_self_consistency(group.responses, verdicts);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<SignalledGroup> signalled_groups(const StepData& data, int64_t words) {
  UCAS_CHECK(data.piece.size() == data.batch.token.size(), "each token needs its text");
  const std::vector<float>*A = traced(data, "A"), *A_mod = traced(data, "A_mod");
  const Batch batch = with_answer_classes(data);
  std::vector<SignalledGroup> groups;
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const Group& from = batch.groups[g];
    const auto responses = batch.of(from);
    const std::vector<double> plain = group_advantage(responses, GroupAdvantageConfig{});
    SignalledGroup group;
    group.problem = data.problem[g];
    group.step = data.step;
    std::vector<Verdict> verdicts;
    for (size_t i = 0; i < responses.size(); ++i) {
      if (responses[i].length == 0) continue;
      const auto row = static_cast<size_t>(from.first) + i;
      SignalledResponse& o = group.responses.emplace_back(signalled(data, responses[i], words));
      // UCAS may leave out the deviation (norm_by_std): its own A is what its W weighs.
      o.A = A != nullptr && A_mod != nullptr ? (*A)[row] : plain[i];
      if (A_mod != nullptr) o.A_mod = (*A_mod)[row];
      verdicts.push_back(responses[i].verdict);
    }
    if (group.responses.size() < 2) continue;
    add_self_consistency(group.responses, verdicts);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace ucas
