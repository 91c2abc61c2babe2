#include "objective/advantage/key_tokens.h"

#include <algorithm>
#include <cmath>

namespace ucas {

namespace {

// ln C(n, k) as a sum of logarithms: exact to a few ulp per factor, and symmetric in k and n - k.
double log_choose(int64_t n, int64_t k) {
  k = std::min(k, n - k);
  double sum = 0;
  for (int64_t i = 1; i <= k; ++i) sum += std::log(static_cast<double>(n - k + i) / static_cast<double>(i));
  return sum;
}

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
double term_frequency(int64_t count, int64_t length, double average, const KeyTokenConfig& c) {
  if (length == 0 || count == 0) return 0;
  double len = static_cast<double>(length), tf = static_cast<double>(count) / len;
  return tf * (c.k1 + 1) / (tf + c.k1 * (1 - c.b + c.b * len / average));
}

KeyToken key_token(const Occurrence& v, const Side& right, const Side& wrong, const KeyTokenConfig& c) {
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
  key.K = c.form == KeyTokenForm::released ? c.top * std::tanh(x / (c.h1 + c.h2) / 2) : std::tanh(x / 2) / 2;
  return key;
}

}  // namespace

double table_probability(const ContingencyTable& t) {
  return std::exp(log_choose(t.a + t.c, t.a) + log_choose(t.b + t.d, t.b) -
                  log_choose(t.a + t.b + t.c + t.d, t.a + t.b));
}

double fisher_two_sided(const ContingencyTable& t) {
  int64_t right = t.a + t.c, wrong = t.b + t.d, with = t.a + t.b;
  double observed = table_probability(t) * (1 + 1e-7), p = 0;
  for (int64_t k = std::max<int64_t>(0, with - wrong); k <= std::min(right, with); ++k) {
    double p_k = table_probability({k, with - k, right - k, wrong - (with - k)});
    if (p_k <= observed) p += p_k;
  }
  return std::min(p, 1.0);
}

void KeyTokenConfig::fields(Fields& f) {
  f.field("h1", h1, Range{0, 100}, "weight of Fisher's test in the token value K");
  f.field("h2", h2, Range{0, 100}, "weight of the information gain in the token value K");
  f.field("h3", h3, Range{0, 100}, "weight of the token frequencies in the direction D");
  f.field("top", top, Range{0, 100}, "bound of the token value K in form = released");
  f.field("k1", k1, Range{0, 100}, "saturation of the token frequencies (BM25's k1)");
  f.field("b", b, Range{0, 1}, "length normalization of the token frequencies (BM25's b); 0 = none");
  f.choice("fisher", fisher, {"two_sided", "single_table"},
           "probability in Fisher's test: two-sided p, or the probability of the single table");
  f.choice(
      "form", form, {"released", "paper"},
      "form of the token value: K = top (2 sigmoid(x / (h1 + h2)) - 1), or sigmoid(x) - 1/2; x = (h1 F + h2 IG) D");
  f.field("exempt_ends", exempt_ends, "set K = 0 for tokens that end a response");
  f.field("zero_tokens", zero_tokens, Range{0, 2147483647},
          "token ids with K = 0 under exempt_ends; empty = the model's stop ids");
}

std::unordered_map<int32_t, KeyToken> key_tokens(const KeyTokenConfig& c, const Batch& batch, const Group& group) {
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

}  // namespace ucas
