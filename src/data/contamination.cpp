#include "data/contamination.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "base/str.h"
#include "text/unicode.h"

namespace ucas {

namespace {

using WordRun = std::span<const std::string>;

uint64_t hash_of_words(WordRun words) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::string& word : words) XXH3_64bits_update(&state, word.c_str(), word.size() + 1);
  return XXH3_64bits_digest(&state);
}

// Chinese, Japanese, Thai: a letter is a word.
bool stands_alone(uint32_t code) {
  return (code >= 0x0E00 && code < 0x0E80) || (code >= 0x2E80 && code < 0xAC00) || (code >= 0xF900 && code < 0xFB00) ||
         code >= 0x20000;
}

// Where a run of words begins: which evaluated problem, and at which word.
struct Begin {
  uint32_t problem, at;
};

// Of a run that very many problems have (a standing phrase), only so many are followed.
constexpr size_t kMostBegins = 256;

class Search {
 public:
  Search(const std::vector<Problem>& evaluated, int64_t run)
      : run_(static_cast<size_t>(run)), found_(evaluated.size()) {
    for (size_t i = 0; i < evaluated.size(); ++i) {
      words_.push_back(words_of_problem(evaluated[i].text));
      const WordRun words = words_.back();
      if (words.empty()) continue;
      const auto problem = static_cast<uint32_t>(i);
      whole_[hash_of_words(words)].push_back({problem, 0});
      for (size_t at = 0; at + run_ <= words.size(); ++at) {
        auto& begins = begins_[hash_of_words(words.subspan(at, run_))];
        if (begins.size() < kMostBegins) begins.push_back({problem, static_cast<uint32_t>(at)});
      }
    }
  }

  void look_at(const Problem& problem, size_t index) {
    const std::vector<std::string> own = words_of_problem(problem.text);
    const WordRun words = own;
    if (words.empty()) return;
    best_.clear();
    if (const auto same = whole_.find(hash_of_words(words)); same != whole_.end()) {
      for (const Begin& begin : same->second) note(begin, words.size(), true);
    }
    for (size_t at = 0; at + run_ <= words.size(); ++at) {
      const auto here = begins_.find(hash_of_words(words.subspan(at, run_)));
      if (here == begins_.end()) continue;
      for (const Begin& begin : here->second) note(begin, length_of_run(words, at, begin), false);
    }
    for (const auto& [problem_index, best] : best_) take(problem_index, best, index);
  }

  std::vector<Overlap> all() {
    std::vector<Overlap> out;
    for (Overlap& overlap : found_) {
      if (overlap.shared > 0) out.push_back(std::move(overlap));
    }
    return out;
  }

 private:
  struct Best {
    size_t at = 0, length = 0;
    bool whole = false;
  };

  size_t length_of_run(WordRun words, size_t at, const Begin& begin) const {
    const std::vector<std::string>& other = words_[begin.problem];
    size_t length = 0;
    while (at + length < words.size() && begin.at + length < other.size() &&
           words[at + length] == other[begin.at + length]) {
      ++length;
    }
    return length;
  }
  void note(const Begin& begin, size_t length, bool whole) {
    Best& best = best_[begin.problem];
    best.whole = best.whole || whole || length == words_[begin.problem].size();
    if (length > best.length) {
      best.length = length;
      best.at = begin.at;
    }
  }
  void take(uint32_t problem, const Best& best, size_t trained) {
    if (best.length == 0) return;
    Overlap& overlap = found_[problem];
    const bool first = overlap.shared == 0;
    if (!first) ++overlap.others;
    overlap.whole = overlap.whole || best.whole;
    if (!first && static_cast<int64_t>(best.length) <= overlap.shared) return;
    overlap.evaluated = problem;
    overlap.trained = trained;
    overlap.shared = static_cast<int64_t>(best.length);
    overlap.words = std::ssize(words_[problem]);
    const auto begin = words_[problem].begin() + static_cast<int64_t>(best.at);
    overlap.text = join({begin, begin + overlap.shared}, " ");
  }

  const size_t run_;
  std::vector<std::vector<std::string>> words_;  // of each evaluated problem
  std::unordered_map<uint64_t, std::vector<Begin>> begins_, whole_;
  std::unordered_map<uint32_t, Best> best_;  // of the training problem at hand
  std::vector<Overlap> found_;
};

}  // namespace

std::vector<std::string> words_of_problem(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    const bool part = (char_class(c.code) & (kLetter | kNumber)) != 0, alone = part && stands_alone(c.code);
    if (part && (!in_word || alone)) words.emplace_back();
    if (part) {
      std::string piece = text.substr(at, c.length);
      if (c.code >= 'A' && c.code <= 'Z') piece[0] = static_cast<char>(piece[0] + 'a' - 'A');
      words.back() += piece;
    }
    in_word = part && !alone;
    at += c.length;
  }
  return words;
}

std::vector<Overlap> find_overlaps(const std::vector<Problem>& trained, const std::vector<Problem>& evaluated,
                                   int64_t run) {
  Search search(evaluated, run);
  for (size_t i = 0; i < trained.size(); ++i) search.look_at(trained[i], i);
  return search.all();
}

}  // namespace ucas
