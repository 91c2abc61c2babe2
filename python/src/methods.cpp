#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/str.h"
#include "methods/apply.h"
#include "module.h"
#include "objective/aggregate.h"

namespace ucas::python {

namespace {

using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
using Settings = std::vector<std::pair<std::string, Value>>;

std::vector<Setting> settings_of(const Settings& given) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : given) {
    Setting setting{key, {}, str("settings[\"", key, "\"]")};
    std::visit([&](const auto& v) { setting.value = v; }, value);
    settings.push_back(std::move(setting));
  }
  return settings;
}

struct OptionsOf {
  Method* method;
  void fields(Fields& f) { method->fields(f); }
};

std::unique_ptr<Method> method_of(const std::string& name, const std::string& preset, const Settings& settings) {
  std::unique_ptr<Method> method = make_method(name, preset);
  ucas::apply(*method, settings_of(settings));
  method->validate();
  return method;
}

nb::list fields_as_dicts(const std::vector<FieldValue>& fields) {
  nb::list list;
  for (const FieldValue& field : fields) {
    nb::dict one;
    one["key"] = field.key;
    one["value"] = field.value;
    one["help"] = field.help;
    list.append(one);
  }
  return list;
}

nb::dict describe(const std::string& name, const std::string& preset, const Settings& settings) {
  const std::unique_ptr<Method> method = method_of(name, preset, settings);
  const Needs needs = method->needs();
  nb::dict d;
  d["name"] = method->row().name;
  d["title"] = method->title();
  d["paper"] = method->row().paper;
  d["presets"] = nb::cast(method->row().presets);
  nb::list words;
  if (needs.answer_classes) words.append("answer_class");
  for (const TokenSignal& signal : needs.all_signals()) words.append(signal.key);
  d["needs"] = words;
  d["selects"] = needs.selection.has_value();
  d["settings"] = fields_as_dicts(fields_of(OptionsOf{method.get()}));
  d["objective"] = fields_as_dicts(fields_of(method->objective_defaults()));
  nb::list equations;
  for (const Equation& e : method->equations()) equations.append(nb::make_tuple(e.where, e.formula, e.words));
  d["equations"] = equations;
  return d;
}

// The arrays of a dict, by name; an absent one is empty.
class Arrays {
 public:
  explicit Arrays(nb::dict from) : from_(std::move(from)) {}
  bool has(const char* name) const { return from_.contains(name); }
  template <class T>
  std::vector<T> of(const char* name, size_t size) const {
    if (!has(name)) return {};
    auto array = nb::cast<In<T>>(from_[name]);
    if (array.shape(0) != size)
      throw Error(ErrorKind::shape, str(name, ": expected ", size, " numbers, got ", array.shape(0)));
    return {array.data(), array.data() + size};
  }

  void expect(const std::set<std::string>& known) const {
    for (const auto& [key, values] : from_) {
      const auto name = nb::cast<std::string>(key);
      if (!known.contains(name))
        throw Error(ErrorKind::unsupported, str("the loss does not read \"", name, "\"; expected some of ",
                                                join({known.begin(), known.end()}, ", ")));
    }
  }

  std::vector<std::string> words(const char* name) const {
    return has(name) ? nb::cast<std::vector<std::string>>(from_[name]) : std::vector<std::string>{};
  }

 private:
  nb::dict from_;
};

// The parts of the reward: "terms" has those of a response one after another, the others say what they are.
void set_terms(const Arrays& in, Batch& batch) {
  const std::vector<std::string> names = in.words("term_names");
  const auto weights = in.of<float>("term_weights", names.size());
  for (size_t n = 0; n < names.size(); ++n) batch.reward_terms.push_back({names[n], weights[n]});
  const size_t parts = names.size();
  const auto terms = in.of<float>("terms", batch.responses.size() * parts);
  for (size_t i = 0; i < batch.responses.size() && parts > 0; ++i) {
    const auto first = terms.begin() + static_cast<std::ptrdiff_t>(i * parts);
    batch.responses[i].terms.assign(first, first + static_cast<std::ptrdiff_t>(parts));
  }
}

// Responses of a group are neighbours here; the Python side has seen to it, and to every length.
Batch batch_of(const Arrays& in, const In<int64_t>& group_sizes, const In<int64_t>& lengths,
               std::span<const TokenSignal> signals) {
  Batch batch;
  const size_t B = lengths.shape(0);
  int64_t N = 0;
  const auto reward = in.of<float>("reward", B), score = in.of<float>("score", B),
             tail = in.of<float>("tail_confidence", B);
  const auto right = in.of<uint8_t>("right", B), finished = in.of<uint8_t>("finished", B);
  const auto trained = in.of<uint8_t>("trained", B);
  const auto answer_class = in.of<int32_t>("answer_class", B);
  for (size_t i = 0; i < B; ++i) {
    Response o;
    o.first = N;
    o.length = lengths.data()[i];
    o.sample = static_cast<int64_t>(i);
    o.reward = reward[i];
    o.score = score.empty() ? reward[i] : score[i];
    o.finished = finished.empty() || finished[i] != 0;
    o.trained = trained.empty() || trained[i] != 0;
    o.tail_confidence = tail.empty() ? 0 : tail[i];
    const bool is_right = right.empty() ? o.score > 0 : right[i] != 0;
    o.verdict.kind = is_right ? VerdictKind::equal : VerdictKind::unequal;
    o.verdict.score = o.score;
    o.verdict.answer_class = answer_class.empty() ? -1 : answer_class[i];
    if (!answer_class.empty()) {
      o.verdict.answer = answer_class[i] < 0 ? "" : str(answer_class[i]);
      if (answer_class[i] < 0 && !is_right) o.verdict.kind = VerdictKind::unparseable;
    }
    batch.responses.push_back(std::move(o));
    N += lengths.data()[i];
  }
  set_terms(in, batch);
  int64_t first = 0;
  for (int64_t count : span_of(group_sizes)) {
    Group group;
    group.problem = static_cast<int64_t>(batch.groups.size());
    group.first = first;
    group.count = count;
    for (int64_t i = first; i < first + count; ++i) batch.responses[i].group = group.problem;
    batch.groups.push_back(std::move(group));
    first += count;
  }
  const auto n = static_cast<size_t>(N);
  // What every batch of a training has and this one was not given is not a number: whatever reads it shows.
  auto filled = [&](const char* name) {
    std::vector<float> values = in.of<float>(name, n);
    return values.empty() ? std::vector<float>(n, std::nanf("")) : values;
  };
  batch.token = in.of<int32_t>("token", n);
  batch.token.resize(n);
  batch.old_logprob = filled("old_logprob");
  batch.rollout_logprob = in.has("rollout_logprob") ? filled("rollout_logprob") : batch.old_logprob;
  batch.entropy = filled("entropy");
  for (const char* key : {"reward_kl", "confidence", "logit"}) batch.signal(key) = in.of<float>(key, n);
  for (const TokenSignal& signal : signals)
    if (!signal.after_last && in.has(signal.key.c_str()))
      batch.signal(signal.key) = in.of<float>(signal.key.c_str(), n);
  return batch;
}

nb::dict advantages(const std::string& name, const std::string& preset, const Settings& settings,
                    const In<int64_t>& group_sizes, const In<int64_t>& lengths, nb::dict arrays,
                    std::vector<int32_t> stop_ids) {
  const std::unique_ptr<Method> method = method_of(name, preset, settings);
  const Arrays in(arrays);
  const Needs needs = method->needs();
  Batch batch = batch_of(in, group_sizes, lengths, needs.all_signals());
  batch.stop_ids = std::move(stop_ids);
  if (needs.answer_classes && !in.has("answer_class")) {
    throw Error(ErrorKind::unsupported, str(method->title(),
                                            " needs the class of every answer (\"answer_class\"), which the batch "
                                            "does not hold; Verifier.classes() makes it"));
  }
  for (const TokenSignal& signal : needs.all_signals()) {
    if (in.has(signal.key.c_str())) continue;
    throw Error(ErrorKind::unsupported, str(method->title(), " needs ", signal.words, " (\"", signal.key,
                                            "\"), which the batch does not hold; add it, or take another method"));
  }
  Advantages computed;
  std::vector<float> returns;
  {
    nb::gil_scoped_release released;
    computed = compute_advantages(*method, batch);
    if (needs.critic) {
      returns.resize(batch.token.size());
      method->returns(batch, returns);
    }
  }
  nb::dict result, per_response, per_token, metrics;
  for (Recording::Row& row : computed.recording.rows) {
    (row.per_token ? per_token : per_response)[row.name.c_str()] = array_of(std::move(row.values));
  }
  for (const auto& [key, value] : computed.recording.metrics) metrics[key.c_str()] = value;
  result["advantage"] = array_of(std::move(computed.advantage));
  if (needs.critic) result["returns"] = array_of(std::move(returns));
  result["per_response"] = per_response;
  result["per_token"] = per_token;
  result["metrics"] = metrics;
  return result;
}

// The loss of each token and its derivatives, before any mean over tokens.
nb::dict token_loss(const std::string& name, const std::string& preset, const Settings& settings,
                    const Settings& objective, const In<int64_t>& lengths, nb::dict arrays, uint64_t seed) {
  const std::unique_ptr<Method> method = method_of(name, preset, settings);
  ObjectiveConfig config = method->objective_defaults();
  ucas::apply(config, settings_of(objective));
  const Arrays in(arrays);
  std::vector<Sequence> sequences;
  int64_t N = 0;
  for (int64_t length : span_of(lengths)) {
    const auto i = static_cast<int64_t>(sequences.size());
    sequences.push_back({N, length, i, i});
    N += length;
  }
  const auto n = static_cast<size_t>(N);
  auto filled = [&](const char* key) {
    std::vector<float> values = in.of<float>(key, n);
    return values.empty() ? std::vector<float>(n, std::nanf("")) : values;
  };
  const auto logprob = filled("logprob"), old = filled("old_logprob"), entropy = filled("entropy"),
             confidence = filled("confidence"), advantage = filled("advantage"),
             rollout = in.has("rollout_logprob") ? filled("rollout_logprob") : old;
  const Needs needs = method->needs();
  std::vector<TokenSignal> read = needs.all_signals();
  read.insert(read.end(), needs.current.begin(), needs.current.end());
  std::set<std::string> known = {"logprob", "old_logprob", "advantage", "entropy", "confidence", "rollout_logprob"};
  for (const TokenSignal& signal : read) known.insert(signal.key);
  in.expect(known);
  std::map<std::string, std::vector<float>> signals;
  for (const TokenSignal& signal : read) {
    if (signal.compute && !signal.derivatives && !in.has(signal.key.c_str())) {
      throw Error(ErrorKind::unsupported,
                  str(method->title(), " needs \"", signal.key, "\", which is not among the arrays; add it"));
    }
    signals[signal.key] = filled(signal.key.c_str());
  }
  LossInput input{.sequences = sequences,
                  .logprob = logprob,
                  .entropy = entropy,
                  .confidence = confidence,
                  .old_logprob = old,
                  .rollout_logprob = rollout,
                  .advantage = advantage,
                  .seed = seed,
                  .objective = &config,
                  .only_marked = needs.selection && needs.selection->only_marked};
  for (const auto& [key, values] : signals) input.signals.emplace_back(key, values);
  std::vector<uint8_t> mark(needs.selection ? n : 0);
  LossBuffer buffer;
  LossOutput out = buffer.view(N, needs.current);
  {
    nb::gil_scoped_release released;
    if (needs.selection) method->select(input, mark);
    input.mark = mark;
    method->token_loss(input, out);
  }
  nb::dict result;
  const auto copy = [](std::span<const float> values) {
    return array_of(std::vector<float>(values.begin(), values.end()));
  };
  result["loss"] = copy(out.loss);
  result["d_logprob"] = copy(out.d_logprob);
  result["d_entropy"] = copy(out.d_entropy);
  result["d_confidence"] = copy(out.d_confidence);
  for (const auto& [key, values] : out.d_signals) result[str("d_", key).c_str()] = copy(values);
  result["clipped"] = array_of(std::vector<uint8_t>(out.clipped.begin(), out.clipped.end()));
  if (needs.selection) result["mark"] = array_of(std::move(mark));
  result["only_marked"] = input.only_marked;
  return result;
}

}  // namespace

void bind_methods(nb::module_& m) {
  std::vector<std::string> names;
  for (const MethodRow& row : method_rows()) names.push_back(row.name);
  m.attr("methods") = nb::cast(names);
  m.def("describe_method", &describe, nb::arg("name"), nb::arg("preset"), nb::arg("settings"));
  m.def("advantages", &advantages, nb::arg("name"), nb::arg("preset"), nb::arg("settings"), nb::arg("group_sizes"),
        nb::arg("lengths"), nb::arg("arrays"), nb::arg("stop_ids"));
  m.def("token_loss", &token_loss, nb::arg("name"), nb::arg("preset"), nb::arg("settings"), nb::arg("objective"),
        nb::arg("lengths"), nb::arg("arrays"), nb::arg("seed"));
}

}  // namespace ucas::python
