#include "report/causes/stored.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <unordered_set>

#include "base/files/file.h"
#include "base/str.h"
#include "records/run/run_directory.h"
#include "stats/spread.h"

namespace ucas {

namespace {

constexpr size_t kFewestWords = 24, kWords = 4, kFewestTail = 60, kLongestPiece = 60, kTimes = 6;
constexpr size_t kShownText = 160, kMostWitnesses = 3, kMostProblems = 5, kMostTokens = 5, kLastSteps = 10;
constexpr double kLongOfUsual = 1.5;

// At least half of the groups of four words stood there before.
bool words_repeat(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.size() < kFewestWords) return false;
  std::unordered_set<std::string> seen;
  size_t again = 0;
  for (size_t i = 0; i + kWords <= words.size(); ++i) {
    std::string four;
    for (size_t k = 0; k < kWords; ++k) four += words[i + k] + " ";
    again += seen.insert(four).second ? 0 : 1;
  }
  return 2 * again >= words.size() - kWords + 1;
}

// The end is one piece of at most kLongestPiece bytes, at least kTimes times and kFewestTail bytes.
bool end_repeats(std::string_view text) {
  for (size_t piece = 1; piece <= kLongestPiece; ++piece) {
    const size_t tail = std::max(kFewestTail, kTimes * piece);
    if (text.size() < tail) return false;
    const std::string_view end = text.substr(text.size() - tail);
    if (end.substr(piece) == end.substr(0, tail - piece)) return true;
  }
  return false;
}

std::string ending_of(const std::string& text) {
  if (text.size() <= kShownText) return printable(text, kShownText);
  size_t from = text.size() - kShownText;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;  // inside a character
  return "..." + printable(text.substr(from), kShownText);
}

// Median of the tokens of what was stored before it began, or of all.
double usual_length(const std::vector<StoredResponse>& stored, double since) {
  std::vector<double> tokens;
  for (const bool early : {true, false}) {
    for (const StoredResponse& r : stored) {
      if (!early || static_cast<double>(r.step) < since) tokens.push_back(static_cast<double>(r.tokens));
    }
    if (!tokens.empty()) break;
  }
  std::ranges::sort(tokens);
  return tokens.empty() ? 0 : tokens[tokens.size() / 2];
}

bool shows(ShownBy sign, const StoredResponse& r, double usual) {
  switch (sign) {
    case ShownBy::cut:
      return !r.finished;
    case ShownBy::unreadable:
      return r.verdict == VerdictKind::unparseable;
    case ShownBy::costly:
      return r.verdict == VerdictKind::over_budget;
    case ShownBy::wrong:
      return r.verdict && r.verdict != VerdictKind::equal;
    case ShownBy::repeated:
      return repeats_itself(r.response);
    case ShownBy::paid_wrong:
      return r.verdict && r.verdict != VerdictKind::equal && r.score > 0;
    case ShownBy::long_ones:
      return static_cast<double>(r.tokens) > kLongOfUsual * usual;
    case ShownBy::right:
      return r.verdict == VerdictKind::equal;
    case ShownBy::none:
      return false;
  }
  return false;
}

std::string words_of(const StoredResponse& r) {
  std::string text = r.tokens >= 0 ? str(r.tokens, " tokens") : "";
  if (!r.finished) text += text.empty() ? "no end" : ", no end";
  if (r.verdict) text += str(text.empty() ? "" : ", ", name_of(*r.verdict));
  if (!r.answer.empty()) text += str(", read as ", printable(r.answer, 40));
  if (!r.gold.empty()) text += str(", right is ", printable(r.gold[0], 40));
  if (!std::isnan(r.reward)) text += str(", paid ", fixed(r.reward, 2));
  if (!r.reason.empty() && r.verdict != VerdictKind::equal) text += str(", ", printable(r.reason, 60));
  return text;
}

}  // namespace

bool repeats_itself(const std::string& text) { return words_repeat(text) || end_repeats(text); }

std::vector<StoredResponse> read_stored(const std::string& run, std::vector<std::string>& remarks) {
  const std::string folder = path_join(run, "rollouts");
  std::vector<int64_t> steps;
  if (is_directory(folder)) {
    for (const std::string& name : list_directory(folder)) {
      if (const int64_t step = parse_step_name(name); step >= 0 && name.ends_with(".jsonl")) steps.push_back(step);
    }
  }
  std::ranges::sort(steps);
  std::vector<StoredResponse> all;
  const size_t spread = steps.size() > kMostStoredSteps ? kMostStoredSteps - kLastSteps : steps.size();
  std::set<size_t> chosen;
  for (size_t i = 0; i < spread; ++i) chosen.insert(i * steps.size() / spread);
  for (size_t i = steps.size() - std::min(steps.size(), kLastSteps); i < steps.size(); ++i) chosen.insert(i);
  for (size_t i : chosen) {
    const std::string file = path_join(folder, step_name(steps[i]) + ".jsonl");
    for (StoredResponse& r : read_rollouts(file, remarks)) {
      r.step = steps[i];
      all.push_back(std::move(r));
    }
  }
  return all;
}

void add_stored_columns(StepTable& table, const std::vector<StoredResponse>& stored) {
  std::map<int64_t, std::map<std::string, std::vector<const StoredResponse*>>> steps;
  for (const StoredResponse& r : stored) steps[r.step][r.problem].push_back(&r);
  if (steps.empty()) return;
  std::vector<double> repeated(table.step.size(), kUnknown), identical = repeated;
  for (size_t i = 0; i < table.step.size(); ++i) {
    const auto found = steps.find(static_cast<int64_t>(table.step[i]));
    if (found == steps.end()) continue;
    double responses = 0, again = 0, groups = 0, same = 0;
    for (const auto& [problem, of_it] : found->second) {
      responses += static_cast<double>(of_it.size());
      again += static_cast<double>(std::ranges::count_if(of_it, [](auto* r) { return repeats_itself(r->response); }));
      if (of_it.size() < 2) continue;
      ++groups;
      same += std::ranges::all_of(of_it, [&](auto* r) { return r->response == of_it[0]->response; }) ? 1 : 0;
    }
    repeated[i] = again / responses;
    if (groups > 0) identical[i] = same / groups;
  }
  table.column["stored/repeated"] = std::move(repeated);
  table.column["stored/identical"] = std::move(identical);
}

Shown shown_by(const CauseKind& kind, const std::vector<StoredResponse>& stored, double since) {
  Shown shown;
  if (kind.responses == ShownBy::none) return shown;
  const double usual = usual_length(stored, since);
  std::map<std::string, ProblemCount> counts;
  for (const StoredResponse& r : stored) {
    if (static_cast<double>(r.step) < since) continue;
    ProblemCount& count = counts[r.problem];
    count.problem = r.problem;
    ++count.stored;
    if (!shows(kind.responses, r, usual)) continue;
    ++count.shown;
    shown.responses.push_back({r.step, r.sample, r.tokens, r.problem, words_of(r), ending_of(r.response)});
  }
  std::ranges::reverse(shown.responses);
  // One of each problem first.
  std::set<std::string> told;
  std::ranges::stable_partition(shown.responses, [&](const Witness& w) { return told.insert(w.problem).second; });
  if (shown.responses.size() > kMostWitnesses) shown.responses.resize(kMostWitnesses);
  for (const auto& [problem, count] : counts) {
    if (count.shown > 0) shown.problems.push_back(count);
  }
  std::ranges::stable_sort(shown.problems, std::ranges::greater{}, &ProblemCount::shown);
  if (shown.problems.size() > kMostProblems) shown.problems.resize(kMostProblems);
  return shown;
}

namespace {

struct ScoredToken {
  double score;
  size_t at;
};

// Larger is worse.
double score_of(ShownIn sign, const StepData& d, size_t i) {
  switch (sign) {
    case ShownIn::sure:
      return -static_cast<double>(d.batch.entropy[i]);
    case ShownIn::unsure:
      return static_cast<double>(d.batch.entropy[i]);
    case ShownIn::differing:
      return std::fabs(d.batch.sampler_logprob()[i] - d.batch.old_logprob[i]);
    case ShownIn::moved:  // a token without an advantage moved with the others, and moved nothing
      return d.advantage[i] == 0 ? -1 : std::fabs(std::log(std::max(static_cast<double>(d.ratio[i]), 1e-30)));
    case ShownIn::none:
      break;
  }
  return -1;
}

std::string token_words(ShownIn sign, const StepData& d, size_t i) {
  const auto three = [](double value) { return fixed(value, 3); };
  switch (sign) {
    case ShownIn::sure:
    case ShownIn::unsure:
      return str("H ", three(d.batch.entropy[i]));
    case ShownIn::differing:
      return str("log-prob ", three(d.batch.sampler_logprob()[i]), " sampled, ", three(d.batch.old_logprob[i]),
                 " trained");
    case ShownIn::moved:
      return str("ratio ", d.ratio[i], ", advantage ", three(d.advantage[i]));
    case ShownIn::none:
      return "";
  }
  return "";
}

bool has_signal(ShownIn sign, const StepData& d) {
  const size_t n = d.batch.token.size();
  if (n == 0 || sign == ShownIn::none) return false;
  if (sign == ShownIn::moved) return d.ratio.size() == n && d.advantage.size() == n;
  if (sign == ShownIn::differing) return d.batch.sampler_logprob().size() == n && d.batch.old_logprob.size() == n;
  return d.batch.entropy.size() == n;
}

}  // namespace

std::vector<WitnessedToken> tokens_of(ShownIn sign, const StepData& data) {
  std::vector<WitnessedToken> tokens;
  if (!has_signal(sign, data)) return tokens;
  std::vector<ScoredToken> scored;
  for (size_t i = 0; i < data.batch.token.size(); ++i) scored.push_back({score_of(sign, data, i), i});
  const size_t count = std::min(kMostTokens, scored.size());
  const auto worse = [](const ScoredToken& a, const ScoredToken& b) {
    return a.score != b.score ? a.score > b.score : a.at < b.at;
  };
  std::ranges::partial_sort(scored, scored.begin() + static_cast<std::ptrdiff_t>(count), worse);
  for (const ScoredToken& token : std::span(scored).first(count)) {
    if (sign == ShownIn::moved && token.score < 0) break;
    const auto at = static_cast<int64_t>(token.at);
    const auto response = std::ranges::find_if(
        data.batch.responses, [&](const Response& o) { return at >= o.first && at < o.first + o.length; });
    if (response == data.batch.responses.end()) continue;
    const auto group = static_cast<size_t>(response->group);
    tokens.push_back(
        {data.step, response->sample, at - response->first, group < data.problem.size() ? data.problem[group] : "",
         token.at < data.piece.size() ? printable(data.piece[token.at], 40) : "", token_words(sign, data, token.at)});
  }
  return tokens;
}

}  // namespace ucas
