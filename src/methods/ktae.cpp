// KTAE: the group advantage of a response plus, for each of its tokens, the key-token value K of that token id: how
// strongly the id goes with right answers among the responses to the same prompt.
//
// Per group and token id v, over whole responses (right: R_i > 0):
//   a, b  right / wrong responses that contain v;  c, d  those that do not
//   F     exp(-2 p), p from Fisher's exact test of (a b; c d); 0 where p = 1: how sure the association is
//   IG    information gain (bits) of "contains v" about "is right": how much it tells
//   TF    saturated, length-normalised frequency of v (BM25's) in all right / all wrong tokens
//   D     arcsine difference of the shares of responses plus h3 times that of the frequencies: in which direction
//   K     sigmoid of (h1 F + h2 IG) D, centred
//   A_it = A_i + K(o_it)
//
// The default preset is the authors' released code, `paper` the article's summary: its p is the probability of the one
// table, K is sigmoid - 1/2 without division by h1 + h2, and no id is exempt. Departures from the release: its test
// runs in float32, where p = 1 and ties are missed; its one exempt id (151643, end and padding) is here every id that
// ends a response; its asin terms lack Cohen's factor 2, as here.
#include "methods/ktae.h"

#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/str.h"
#include "methods/group_advantage.h"
#include "methods/registry.h"

namespace ucas {

namespace {

enum class FisherTest { two_sided, single_table };
enum class Form { released, paper };

struct Config {
  double h1 = 1, h2 = 1, h3 = 1;  // weights of F, of IG, of the frequencies in D
  double top = 1;                 // released: K lies in (-top, top)
  double k1 = 2, b = 0.5;         // saturation and length normalisation of TF
  FisherTest fisher = FisherTest::two_sided;
  Form form = Form::released;
  bool exempt_ends = true;           // K = 0 for the tokens that end a response
  std::vector<int64_t> zero_tokens;  // their ids; empty: those of the batch
  GroupAdvantageConfig group;

  void fields(Fields& f) {
    f.field("h1", h1, Range{0, 100}, "weight of Fisher's test in K");
    f.field("h2", h2, Range{0, 100}, "weight of the information gain in K");
    f.field("h3", h3, Range{0, 100}, "weight of the token frequencies in the direction D");
    f.field("top", top, Range{0, 100}, "bound of K in the released form");
    f.field("k1", k1, Range{0, 100}, "saturation of the token frequencies");
    f.field("b", b, Range{0, 1}, "how far frequencies are normalised by length");
    f.choice("fisher", fisher, {"two_sided", "single_table"},
             "p of Fisher's test, or the probability of the one table");
    f.choice("form", form, {"released", "paper"},
             "K = top (2 sigmoid(x / (h1 + h2)) - 1), or sigmoid(x) - 1/2; x = (h1 F + h2 IG) D");
    f.field("exempt_ends", exempt_ends, "K = 0 for the tokens that end a response");
    f.field("zero_tokens", zero_tokens, Range{0, 2147483647}, "ids of those tokens; empty: the model's stop ids");
    group.fields(f);
  }
};

// What one group says of one token id.
struct Occurrence {
  int64_t a = 0, b = 0;                        // right, wrong responses that contain it
  int64_t right_tokens = 0, wrong_tokens = 0;  // how often it occurs in them
  int64_t last_row = -1;                       // response that was counted last
};

struct Side {  // the right, or the wrong, responses of a group
  int64_t rows = 0, tokens = 0;
};

double binary_entropy(double share) {  // bits
  double sum = 0;
  for (double p : {share, 1 - share}) sum -= p > 0 ? p * std::log2(p) : 0;
  return sum;
}

// H2(right) - sum over {contains v, does not} of weight H2(right given that).
double information_gain(const ContingencyTable& t) {
  double n = static_cast<double>(t.a + t.b + t.c + t.d);
  double gain = binary_entropy(static_cast<double>(t.a + t.c) / n);
  for (auto [right, wrong] : {std::pair{t.a, t.b}, {t.c, t.d}}) {
    double rows = static_cast<double>(right + wrong);
    if (rows > 0) gain -= rows / n * binary_entropy(static_cast<double>(right) / rows);
  }
  return gain;
}

double fisher_factor(double p) { return p >= 1 - 1e-6 ? 0 : std::exp(-2 * p); }

// TF = tf (k1 + 1) / (tf + k1 (1 - b + b len / avg)), tf = count / len; 0 where there are no tokens.
double term_frequency(int64_t count, int64_t length, double average, const Config& c) {
  if (length == 0 || count == 0) return 0;
  double len = static_cast<double>(length), tf = static_cast<double>(count) / len;
  return tf * (c.k1 + 1) / (tf + c.k1 * (1 - c.b + c.b * len / average));
}

KeyToken key_token(const Occurrence& v, const Side& right, const Side& wrong, const Config& c) {
  KeyToken key;
  ContingencyTable t = key.table = {v.a, v.b, right.rows - v.a, wrong.rows - v.b};
  key.p = c.fisher == FisherTest::two_sided ? fisher_two_sided(t) : table_probability(t);
  key.F = fisher_factor(key.p);
  key.IG = information_gain(t);
  double average = static_cast<double>(right.tokens + wrong.tokens) / 2;
  key.TF_right = term_frequency(v.right_tokens, right.tokens, average, c);
  key.TF_wrong = term_frequency(v.wrong_tokens, wrong.tokens, average, c);
  key.arcsine = std::asin(std::sqrt(static_cast<double>(t.a) / static_cast<double>(right.rows))) -
                std::asin(std::sqrt(static_cast<double>(t.b) / static_cast<double>(wrong.rows)));
  key.D = key.arcsine + c.h3 * (key.TF_right / (key.TF_wrong + 1e-5) - key.TF_wrong / (key.TF_right + 1e-5));
  double x = (c.h1 * key.F + c.h2 * key.IG) * key.D;
  // 2 sigmoid(x) - 1 = tanh(x / 2), which does not overflow.
  key.K = c.form == Form::released ? c.top * std::tanh(x / (c.h1 + c.h2) / 2) : std::tanh(x / 2) / 2;
  return key;
}

// What one group says of each of its token ids; nothing where one side is empty.
std::unordered_map<int32_t, KeyToken> key_tokens_of(const Config& c, const Batch& batch, const Group& group) {
  auto o = batch.of(group);
  Side right, wrong;
  for (const Response& o_i : o) {
    Side& side = o_i.reward > 0 ? right : wrong;
    ++side.rows;
    side.tokens += o_i.length;
  }
  if (right.rows == 0 || wrong.rows == 0) return {};
  std::unordered_map<int32_t, Occurrence> seen;
  for (size_t i = 0; i < o.size(); ++i) {
    bool is_right = o[i].reward > 0;
    for (int32_t token : Batch::tokens(batch.token, o[i])) {
      Occurrence& v = seen[token];
      ++(is_right ? v.right_tokens : v.wrong_tokens);
      if (v.last_row == static_cast<int64_t>(i)) continue;
      v.last_row = static_cast<int64_t>(i);
      ++(is_right ? v.a : v.b);
    }
  }
  std::unordered_map<int32_t, KeyToken> keys;
  for (const auto& [token, v] : seen) keys[token] = key_token(v, right, wrong, c);
  auto exempt = [&](int32_t id) {
    if (auto found = keys.find(id); found != keys.end()) found->second.K = 0;
  };
  if (c.exempt_ends) {
    for (int64_t id : c.zero_tokens) exempt(static_cast<int32_t>(id));
    for (int32_t id : c.zero_tokens.empty() ? batch.stop_ids : std::vector<int32_t>()) exempt(id);
  }
  return keys;
}

// K of every token of one group, into K: [N].
void key_values(const Config& c, const Batch& batch, const Group& group, std::span<float> K) {
  std::unordered_map<int32_t, KeyToken> keys = key_tokens_of(c, batch, group);
  if (keys.empty()) return;
  for (const Response& o_i : batch.of(group)) {
    for (auto t = static_cast<size_t>(o_i.first); t < static_cast<size_t>(o_i.first + o_i.length); ++t) {
      K[t] = static_cast<float>(keys[batch.token[t]].K);
    }
  }
}

class Ktae final : public Method {
 public:
  std::string title() const override { return "KTAE"; }
  std::string paper() const override {
    return "Sun et al. 2025, KTAE: A Model-Free Algorithm to Key-Tokens Advantage Estimation in Mathematical Reasoning "
           "(arXiv:2505.16826)";
  }
  std::vector<std::string> presets() const override { return {"released", "paper"}; }
  void use_preset(const std::string& name) override {
    config_ = Config{};
    if (name != presets().back()) return;
    config_.fisher = FisherTest::single_table;
    config_.form = Form::paper;
    config_.exempt_ends = false;
  }
  // DAPO's loss with the authors' upper clip of 0.24.
  ObjectiveConfig objective_defaults() const override {
    ObjectiveConfig objective;
    objective.clip_low = 0.2;
    objective.clip_high = 0.24;
    objective.dual_clip = 10;
    objective.aggregation = Aggregation::token_mean;
    objective.keep_mixed_groups = true;
    return objective;
  }
  void fields(Fields& f) override { config_.fields(f); }
  void validate() const override {
    if (config_.form == Form::released && config_.h1 + config_.h2 == 0) {
      throw Error("config",
                  "method.h1 = 0 and method.h2 = 0: the released form divides by h1 + h2; set one of them above 0");
    }
  }

  std::vector<Equation> equations() const override {
    const Config& c = config_;
    bool two_sided = c.fisher == FisherTest::two_sided;
    return {
        {"Eq. 3", str("A_i = (R_i - mean) / (std + ", c.group.eps, ")"), "the response's advantage within its group"},
        {"Fisher", str("F = exp(-2 p), 0 where p = 1; p = ", two_sided ? "sum of p_k <= p_observed" : "p_observed"),
         "how sure it is that a token goes with right or with wrong answers, from its 2 x 2 table of responses"},
        {"information gain", "IG = H2(right) - sum_v P(v) H2(right | v)",
         "bits that the token's presence tells about being right"},
        {"frequency",
         str("TF = tf ", c.k1 + 1, " / (tf + ", c.k1, " (", 1 - c.b, " + ", c.b, " len / mean len)), tf = count / len"),
         "saturated, length-normalised frequency in right and in wrong responses"},
        {"direction",
         str("D = asin sqrt(a/(a+c)) - asin sqrt(b/(b+d)) + ", c.h3, " (TF_T/(TF_F + 1e-5) - TF_F/(TF_T + 1e-5))"),
         "towards right answers (above 0) or wrong ones"},
        {"key-token value",
         c.form == Form::released
             ? str("K = ", c.top, " (2 sigmoid((", c.h1, " F + ", c.h2, " IG) D / ", c.h1 + c.h2, ") - 1)",
                   c.exempt_ends ? "; 0 for end tokens" : "")
             : str("K = sigmoid((", c.h1, " F + ", c.h2, " IG) D) - 1/2", c.exempt_ends ? "; 0 for end tokens" : ""),
         "0 where all responses are right or all wrong"},
        {"advantage", "A_it = A_i + K(o_it)", "the same K in right and in wrong responses"}};
  }

  void advantages(const Batch& batch, std::span<float> advantage, Trace& trace) const override {
    broadcast_group_advantage(batch, config_.group, advantage, trace);  // A_i
    std::vector<float> K(batch.token.size());
    for (const Group& group : batch.groups) key_values(config_, batch, group, K);
    double size = 0, saturated = 0, turned = 0;
    double limit = 0.99 * (config_.form == Form::released ? config_.top : 0.5);
    for (size_t t = 0; t < K.size(); ++t) {
      float A = advantage[t];
      advantage[t] = static_cast<float>(static_cast<double>(A) + K[t]);  // A_it = A_i + K
      size += std::fabs(K[t]);
      saturated += std::fabs(K[t]) > limit && K[t] != 0;
      turned += A * advantage[t] < 0;
    }
    double tokens = std::max<double>(1, static_cast<double>(K.size()));
    trace.metrics.insert(trace.metrics.end(), {{"ktae/key_abs_mean", size / tokens},
                                               {"ktae/saturated_share", saturated / tokens},
                                               {"ktae/turned_share", turned / tokens}});
    trace.rows.push_back({"K", true, std::move(K)});
  }

  const Config& config() const { return config_; }

 private:
  Config config_;
};

}  // namespace

std::map<int32_t, KeyToken> key_tokens(const Method& ktae, const Batch& batch, const Group& group) {
  auto keys = key_tokens_of(dynamic_cast<const Ktae&>(ktae).config(), batch, group);
  return {keys.begin(), keys.end()};
}

std::unique_ptr<Method> make_ktae() { return std::make_unique<Ktae>(); }

}  // namespace ucas
