#include "train/shared_rollout.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"

namespace ucas {

namespace {

// Numbers as they lie in memory: all ranks are the same program.
class RankBytes {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string text;
};

class RankReader {
 public:
  explicit RankReader(const std::string& text) : text_(text) {}
  bool at_end() const { return at_ == text_.size(); }
  template <class T>
  void take(T& value) {
    copy(&value, sizeof value);
  }
  template <class T>
  void take(std::vector<T>& values) {
    size_t count = 0;
    take(count);
    UCAS_CHECK(count <= (text_.size() - at_) / sizeof(T), "what a rank sends is whole");
    values.resize(count);
    copy(values.data(), count * sizeof(T));
  }

 private:
  void copy(void* to, size_t bytes) {
    UCAS_CHECK(bytes <= text_.size() - at_, "what a rank sends is whole");
    if (bytes > 0) std::memcpy(to, text_.data() + at_, bytes);
    at_ += bytes;
  }
  const std::string& text_;
  size_t at_ = 0;
};

template <class S, class Each>
void each_part(S& sampled, Each each) {
  each(sampled.job);
  each(sampled.sample);
  each(sampled.finished);
  each(sampled.token);
  each(sampled.logprob);
  each(sampled.whole_logprob);
  each(sampled.entropy);
  each(sampled.confidence);
  each(sampled.logit);
}

class SharedRollout final : public Rollout {
 public:
  SharedRollout(Rollout& own, Ranks& ranks) : own_(own), ranks_(ranks) {}

  std::vector<Sampled> run(const RolloutRequest& request) override {
    RolloutRequest mine = request;
    std::vector<PromptJob> jobs;
    const auto count = static_cast<int64_t>(request.jobs.size());
    for (int64_t job = ranks_.rank(); job < count; job += ranks_.size()) jobs.push_back(request.jobs[job]);
    mine.jobs = jobs;
    mine.keep = true;
    mine.on_response = nullptr;
    if (request.on_token) {  // of what is sampled here
      mine.on_token = [&](int64_t job, uint32_t sample, int32_t token) {
        request.on_token(job * ranks_.size() + ranks_.rank(), sample, token);
      };
    }
    RankBytes bytes;
    if (!jobs.empty()) {
      for (Sampled& s : own_.run(mine)) {
        s.job = s.job * ranks_.size() + ranks_.rank();
        each_part(s, [&](const auto& part) { bytes.put(part); });
      }
    }
    std::vector<Sampled> all;
    for (const std::string& text : ranks_.gather(bytes.text)) {
      for (RankReader reader(text); !reader.at_end();) {
        each_part(all.emplace_back(), [&](auto& part) { reader.take(part); });
      }
    }
    std::ranges::sort(
        all, [](const Sampled& a, const Sampled& b) { return a.job != b.job ? a.job < b.job : a.sample < b.sample; });
    if (request.on_response) {
      for (const Sampled& s : all) request.on_response(s);
    }
    if (!request.keep) all.clear();
    return all;
  }

 private:
  Rollout& own_;
  Ranks& ranks_;
};

}  // namespace

std::unique_ptr<Rollout> share_rollout(Rollout& own, Ranks& ranks) {
  return std::make_unique<SharedRollout>(own, ranks);
}

}  // namespace ucas
