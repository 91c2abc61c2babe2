#include "rollout/environment/environment.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "rollout/policy.h"
#include "text/stop_texts.h"

namespace ucas {

namespace {

EnvironmentRow row_of(EnvironmentKind kind) {
#define UCAS_ENVIRONMENT_ROW(kind, name) \
  case EnvironmentKind::kind:            \
    return row_of_##kind();
  switch (kind) {
    UCAS_ENVIRONMENTS(UCAS_ENVIRONMENT_ROW)
    case EnvironmentKind::none:
      break;
  }
#undef UCAS_ENVIRONMENT_ROW
  UCAS_CHECK(false, "an environment was chosen");
  return {};
}

class EnvironmentRollouter final : public Rollouter {
 public:
  EnvironmentRollouter(Rollouter& own, const EnvironmentConfig& config, const Tokenizer& tokenizer)
      : own_(own),
        tokenizer_(tokenizer),
        row_(row_of(config.kind)),
        turn_ends_(tokenizer, row_.turn_ends),
        max_turns_(config.max_turns) {
    const std::string problem = why_not_said();
    if (problem.empty()) return;
    throw Error(ErrorKind::config,
                str("environment = \"", word_of(config.kind), "\": the tokenizer of ", printable(tokenizer.directory()),
                    " cannot encode what it says: ", problem, "; take a model with a byte-level tokenizer"));
  }

  std::vector<Episode> run(const RolloutRequest& request) override {
    UCAS_CHECK(!request.feed.more && !request.environment, "an environment's episodes are known from the start");
    sessions_.clear();
    RolloutRequest mine = request;
    mine.environment = [&](const Episode& episode) { return reply(request, episode); };
    mine.sink.on_response = [&](const Episode& episode) {
      sessions_.erase({episode.job, episode.sample});
      if (request.sink.on_response) request.sink.on_response(episode);
    };
    return own_.run(mine);
  }

 private:
  using Kind = EnvironmentReply::Kind;
  struct Session {
    std::unique_ptr<Environment> environment;
    int64_t turns = 0;  // of the model, that have ended
  };

  std::string why_not_said() const {
    try {
      const std::string read = tokenizer_.decode(encoded(row_.says));
      return read == row_.says ? "" : str("\"", row_.says, "\" comes back as \"", printable(read), "\"");
    } catch (const Error& error) {
      return error.what();
    }
  }
  // Special tokens in a message are its characters.
  std::vector<int32_t> encoded(const std::string& message) const {
    return tokenizer_.encode(message, Tokenizer::Special::as_text, Tokenizer::Place::later);
  }

  EnvironmentReply reply(const RolloutRequest& request, const Episode& episode) {
    const auto begin = static_cast<size_t>(episode.inserts.empty() ? 0 : episode.inserts.back().at);
    const std::span<const int32_t> turn = std::span(episode.token).subspan(begin);
    if (!episode.finished && !turn_ends_.end(turn)) return {};
    Session& session = sessions_[{episode.job, episode.sample}];
    if (!session.environment) {
      const Problem* asked = request.jobs[static_cast<size_t>(episode.job)].asked;
      UCAS_CHECK(asked != nullptr, "an environment is reset to a problem");
      session.environment = row_.make();
      session.environment->reset(*asked);
    }
    std::optional<std::string> message = session.environment->step(response_text(tokenizer_, turn));
    if (!message) return {.kind = Kind::done};
    if (++session.turns == max_turns_) return {.kind = Kind::cut};
    return {.kind = Kind::insert, .token = encoded(*message), .text = std::move(*message)};
  }

  Rollouter& own_;
  const Tokenizer& tokenizer_;
  const EnvironmentRow row_;
  const StopTexts turn_ends_;
  const int64_t max_turns_;
  std::map<std::pair<int64_t, uint32_t>, Session> sessions_;  // by job and sample
};

}  // namespace

std::unique_ptr<Rollouter> with_environment(Rollouter& own, const EnvironmentConfig& config,
                                            const Tokenizer& tokenizer) {
  return std::make_unique<EnvironmentRollouter>(own, config, tokenizer);
}

}  // namespace ucas
