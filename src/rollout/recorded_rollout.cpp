#include "rollout/recorded_rollout.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/str.h"

namespace ucas {

namespace {

class SampledWriter {
 public:
  template <class T>
  void part(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void part(const std::vector<T>& values) {
    part(values.size());
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string text;
};

class SampledReader {
 public:
  SampledReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}
  bool at_end() const { return at_ == text_.size(); }
  template <class T>
  void part(T& value) {
    copy(&value, sizeof value);
  }
  template <class T>
  void part(std::vector<T>& values) {
    size_t count = 0;
    part(count);
    if (count > (text_.size() - at_) / sizeof(T)) refuse();
    values.resize(count);
    copy(values.data(), count * sizeof(T));
  }

 private:
  void copy(void* to, size_t bytes) {
    if (bytes > text_.size() - at_) refuse();
    if (bytes > 0) std::memcpy(to, text_.data() + at_, bytes);
    at_ += bytes;
  }
  [[noreturn]] void refuse() const {
    throw Error(ErrorKind::truncated,
                str(where_, ": responses that are not whole, at byte ", at_, " of ", text_.size()));
  }
  const std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

template <class S, class Visitor>
void each_part(S& sampled, Visitor& visitor) {
  visitor.part(sampled.job);
  visitor.part(sampled.sample);
  visitor.part(sampled.finished);
  visitor.part(sampled.token);
  visitor.part(sampled.logprob);
  visitor.part(sampled.whole_logprob);
  visitor.part(sampled.entropy);
  visitor.part(sampled.confidence);
  visitor.part(sampled.logit);
}

}  // namespace

std::string sampled_bytes(const std::vector<Episode>& responses) {
  SampledWriter writer;
  for (const Episode& s : responses) each_part(s, writer);
  return std::move(writer.text);
}

std::vector<Episode> read_sampled(std::string_view bytes, const std::string& where) {
  std::vector<Episode> responses;
  for (SampledReader reader(bytes, where); !reader.at_end();) each_part(responses.emplace_back(), reader);
  return responses;
}

std::vector<Episode> RecordingRollout::run(const RolloutRequest& request) {
  std::vector<Episode> sampled = own_.run(request);
  const std::string run = sampled_bytes(sampled);
  const uint64_t size = run.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += run;
  return sampled;
}

std::vector<Episode> ReplayedRollout::run(const RolloutRequest& request) {
  uint64_t size = 0;
  if (bytes_.size() - at_ < sizeof size) refuse();
  std::memcpy(&size, bytes_.data() + at_, sizeof size);
  at_ += sizeof size;
  if (size > bytes_.size() - at_) refuse();
  std::vector<Episode> sampled = read_sampled(std::string_view(bytes_).substr(at_, size), where_);
  at_ += size;
  for (const Episode& s : sampled) {
    if (s.job < 0 || s.job >= static_cast<int64_t>(request.jobs.size()) || s.logprob.size() != s.token.size()) refuse();
    if (request.sink.on_response) request.sink.on_response(s);
  }
  return sampled;
}

void ReplayedRollout::refuse() const {
  throw Error(ErrorKind::truncated,
              str(where_, ": not the responses of the run's next step; go on from an earlier checkpoint"));
}

}  // namespace ucas
