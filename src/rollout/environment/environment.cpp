#include "rollout/environment/environment.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "data/prompts/templates.h"
#include "rollout/policy.h"
#include "text/stop_texts.h"
#include "verify/text/arithmetic.h"

namespace ucas {

namespace {

constexpr std::string_view kTurn = "UCAS-TURN";

EnvironmentRow row_of(const EnvironmentSetup& setup) {
  if (!setup.config.tools.empty()) return row_of_tools(setup);
#define UCAS_ENVIRONMENT_ROW(kind, name) \
  case EnvironmentKind::kind:            \
    return row_of_##kind(setup);
  switch (setup.config.kind) {
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
  EnvironmentRollouter(Rollouter& own, const EnvironmentSetup& setup, const Tokenizer& tokenizer)
      : own_(own),
        tokenizer_(tokenizer),
        row_(row_of(setup)),
        turn_ends_(tokenizer, row_.turn_ends),
        max_turns_(setup.config.max_turns) {
    const std::string problem = why_not_said();
    if (problem.empty()) return;
    throw Error(ErrorKind::config,
                str(setup.config.name(), ": the tokenizer of ", printable(tokenizer.directory()),
                    " cannot encode what it says: ", problem, "; take a model with a byte-level tokenizer"));
  }

  std::vector<Episode> run(const RolloutRequest& request) override {
    UCAS_CHECK(!request.environment, "one environment");
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
      const std::string read = tokenizer_.decode(encoded({row_.says, MarkedText::kData}));
      return read == row_.says ? "" : str("\"", row_.says, "\" comes back as \"", printable(read), "\"");
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::vector<int32_t> encoded(const MarkedText& message) const {
    return tokenizer_.encode(message, Tokenizer::Place::later);
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
    std::optional<MarkedText> message = session.environment->step(response_text(tokenizer_, turn));
    if (!message) return {.kind = Kind::done};
    if (message->text.empty()) return {};
    if (++session.turns == max_turns_) return {.kind = Kind::cut};
    // The template ends a turn, which the model has ended by itself.
    const std::string last = tokenizer_.token_text(turn.back());
    if (episode.finished && message->text.starts_with(last)) *message = message->from(last.size());
    return {.kind = Kind::insert, .token = encoded(*message), .text = std::move(message->text)};
  }

  Rollouter& own_;
  const Tokenizer& tokenizer_;
  const EnvironmentRow row_;
  const StopTexts turn_ends_;
  const int64_t max_turns_;
  std::map<std::pair<int64_t, uint32_t>, Session> sessions_;  // by job and sample
};

// calculator: the model writes <calc>12*34</calc>, the environment <result>408</result>. + - * / and parentheses over
// whole numbers, evaluated by exact fractions: 7/2 is <result>7/2</result>. What is none is <result>error:
// ...</result>.
constexpr std::string_view kOpen = "<calc>", kClose = "</calc>";
constexpr size_t kLongest = 512;  // bytes of an expression

std::string value_of(std::string_view expression) {
  if (expression.size() > kLongest) return "error: too long";
  const std::optional<std::string> symbols = arithmetic::symbols_of(expression);
  if (!symbols) return "error: not an arithmetic expression";
  arithmetic::Evaluation evaluation(*symbols);
  const std::optional<arithmetic::Fraction> value = evaluation.run();
  if (!value) return str("error: ", evaluation.problem());
  return value->below == 1 ? str(value->above) : str(value->above, "/", value->below);
}

class Calculator final : public Environment {
 public:
  void reset(const Problem& /*problem*/) override {}
  std::optional<MarkedText> step(std::string_view text) override {
    const size_t close = text.rfind(kClose);
    if (close == std::string_view::npos) return std::nullopt;
    const size_t open = text.substr(0, close).rfind(kOpen), begin = open + kOpen.size();
    const std::string value =
        open == std::string_view::npos ? "error: no <calc>" : value_of(text.substr(begin, close - begin));
    return MarkedText(str("<result>", value, "</result>"), MarkedText::kData);
  }
};

}  // namespace

std::unique_ptr<Rollouter> with_environment(Rollouter& own, const EnvironmentConfig& config,
                                            const code::CodeOptions& code, const Tokenizer& tokenizer) {
  return std::make_unique<EnvironmentRollouter>(own, EnvironmentSetup{config, code, &tokenizer}, tokenizer);
}

std::string any_ascii() {
  std::string all = "\n";
  for (char c = ' '; c <= '~'; ++c) all += c;
  return all;
}

UserTurns::UserTurns(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer == nullptr || !has_chat_template(tokenizer->directory())) return;
  try {
    chat_ = std::make_shared<const Template>(load_template("chat", tokenizer->directory()));
    (*this)("0");
  } catch (const Error& error) {
    chat_.reset();
    warn(str("tool calls are answered without the chat template: ", error.what()));
  }
}

MarkedText UserTurns::operator()(const std::string& said) const {
  if (!chat_) return {str("\n", said, "\n"), MarkedText::kData};
  Problem problem;
  problem.earlier = {{"user", "?"}, {"assistant", std::string(kTurn)}};
  const MarkedText all = render_chat(*chat_, problem, said, *tokenizer_);
  const size_t at = all.text.rfind(kTurn);
  if (at == std::string::npos) throw Error(ErrorKind::config, "the chat template leaves out a turn");
  return all.from(at + kTurn.size());
}

EnvironmentRow row_of_calculator(const EnvironmentSetup& /*setup*/) {
  return {.turn_ends = {std::string(kClose)},
          .says = "<result>0123456789-/error: abcdefghijklmnopqrstuvwxyz<calc></result>",
          .make = [] { return std::unique_ptr<Environment>(std::make_unique<Calculator>()); }};
}

}  // namespace ucas
