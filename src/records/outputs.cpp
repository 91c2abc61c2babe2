#include "records/outputs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "base/text/json.h"
#include "data/rows/jsonl.h"
#include "records/run/rollouts.h"

namespace ucas {

namespace {

constexpr const char* kOutputsFormat = "ucas-outputs-1";
constexpr double kSyncSeconds = 3;  // what a crash of the machine, not of the program, can lose

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::data_line, str(where, ": ", what));
}

OutputSettings settings_of(const JsonObject& r) {
  r.format(kOutputsFormat, "was the file written by another version of ucas?");
  r.only({"format", "model", "keys", "temperature", "top_p", "top_k", "min_p", "seed", "dtype", "environment",
          "max_turns", "sources"});
  OutputSettings out;
  out.model = r.text("model");
  out.keys = r.text("keys");
  out.temperature = r.number("temperature");
  out.top_p = r.number("top_p");
  out.top_k = r.whole("top_k", 0);
  if (r.has("min_p")) out.min_p = r.number("min_p");
  out.seed = r.whole("seed", 0);
  if (r.has("dtype")) out.dtype = r.text("dtype");
  out.environment = r.text_or("environment", "");
  out.max_turns = r.whole_or("max_turns", 0);
  for (const JsonObject& s : r.children("sources")) {
    s.only({"name", "template", "prompts", "stop_ids", "max_tokens", "choices", "end_texts"});
    out.sources.push_back({s.text("name"), s.text("template"), s.text("prompts"), s.ids("stop_ids"),
                           s.whole("max_tokens", 1),
                           s.has("end_texts") ? s.texts("end_texts") : std::vector<std::string>{}});
  }
  return out;
}

Output output_of(const JsonObject& r) {
  r.only({"source", "id", "sample", "text", "ids", "inserts", "tokens", "finished", "logprob", "entropy", "confidence",
          "choice_logprob"});                // of records that once compared choices
  const bool end_known = r.has("finished");  // null: not known
  return {.source = r.text("source"),
          .id = r.text("id"),
          .sample = r.whole("sample", kGreedySample, UINT32_MAX),
          .text = r.text("text"),
          .ids = r.ids("ids"),
          .inserts = inserts_of(r, std::ssize(r.ids("ids"))),
          .finished = !end_known || r.truth("finished"),
          .logprob = r.number("logprob"),
          .entropy = r.number("entropy"),
          .confidence = r.number("confidence"),
          .tokens = r.whole_or("tokens", -1, 0),
          .end_known = end_known};
}

JsonObject parse_line(std::string_view line, const std::string& where) {
  if (static_cast<int64_t>(line.size()) > kLineLimit) {
    refuse(where, str("a line of ", human_bytes(static_cast<double>(line.size())), ", the limit is ",
                      human_bytes(static_cast<double>(kLineLimit))));
  }
  try {
    return JsonObject::parse(line, where);
  } catch (const Error& error) {
    throw Error(ErrorKind::data_line, error.what());
  }
}

using Key = std::tuple<std::string, std::string, int64_t>;
Key key_of(const Output& o) { return {o.source, o.id, o.sample}; }

// Reads whole lines; `ends` gets where each output's line ends. Returns the bytes after the last newline: a line that
// was being written, or nothing.
size_t read_lines(const std::string& path, std::string_view bytes, StoredOutputs& out, std::vector<size_t>* ends) {
  const std::string shown = printable(path, 400);
  std::set<Key> seen;
  int64_t number = 0;
  size_t begin = 0;
  for (size_t end; (end = bytes.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    const std::string where = str(shown, ":", ++number);
    const JsonObject reader = parse_line(bytes.substr(begin, end - begin), where);
    if (number == 1) {
      out.settings = settings_of(reader);
      continue;
    }
    Output output = output_of(reader);
    if (!seen.insert(key_of(output)).second) {
      refuse(where, str("sample ", output.sample, " of problem ", printable(output.id), " for the second time"));
    }
    out.outputs.push_back(std::move(output));
    if (ends) ends->push_back(end + 1);
  }
  return bytes.size() - begin;
}

OrderedJson json_of(const OutputSettings::Source& s) {
  OrderedJson out = {{"name", s.name},
                     {"template", s.prompt_template},
                     {"prompts", s.prompts},
                     {"stop_ids", s.stop_ids},
                     {"max_tokens", s.max_tokens}};
  if (!s.end_texts.empty()) out["end_texts"] = s.end_texts;
  return out;
}

std::string names_of(const std::vector<OutputSettings::Source>& sources) {
  std::vector<std::string> names;
  for (const auto& source : sources) names.push_back(source.name);
  return printable(join(names, ", "), 300);
}

std::string ids_text(const std::vector<int32_t>& ids) {
  std::vector<std::string> words;
  for (int32_t id : ids) words.push_back(str(id));
  return "[" + join(words, ", ") + "]";
}

std::string shown(const OutputSettings& s) {
  return s.environment.empty() ? "none" : str(s.environment, " for ", s.max_turns, " turns");
}

// The first difference as people say it: "temperature 0.6, this one 1"; "" if there is none.
std::string difference(const OutputSettings& there, const OutputSettings& here, bool sampled) {
  const auto differ = [](const std::string& what, const auto& a, const auto& b) {
    return a == b ? std::string() : str(what, " ", a, ", this one ", b);
  };
  std::vector<std::string> found = {there.model == here.model ? "" : "another model (its files have changed)",
                                    differ("dtype", there.dtype, here.dtype),
                                    differ("environment", shown(there), shown(here)),
                                    differ("samples keyed by", there.keys, here.keys)};
  if (sampled) {
    found.push_back(differ("temperature", there.temperature, here.temperature));
    found.push_back(differ("top_p", there.top_p, here.top_p));
    found.push_back(differ("top_k", there.top_k, here.top_k));
    found.push_back(differ("min_p", there.min_p, here.min_p));
    found.push_back(differ("seed", there.seed, here.seed));
  }
  const std::string sets = names_of(there.sources), mine = names_of(here.sources);
  found.push_back(differ("the sets", sets, mine));
  for (size_t i = 0; sets == mine && i < here.sources.size(); ++i) {
    const auto &a = there.sources[i], &b = here.sources[i];
    const std::string of = str(printable(a.name), ": ");
    found.push_back(differ(of + "template", printable(a.prompt_template), printable(b.prompt_template)));
    found.push_back(differ(of + "max_tokens", a.max_tokens, b.max_tokens));
    found.push_back(differ(of + "stop ids", ids_text(a.stop_ids), ids_text(b.stop_ids)));
    found.push_back(differ(of + "texts that end a response", printable(join(a.end_texts, " or "), 200),
                           printable(join(b.end_texts, " or "), 200)));
    if (a.prompts != b.prompts) {
      found.push_back(of + "other prompts (the problems, their number, the template or the tokenizer have changed)");
    }
  }
  for (const std::string& text : found) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

std::string to_json_line(const OutputSettings& s) {
  OrderedJson sources = OrderedJson::array();
  for (const auto& source : s.sources) sources.push_back(json_of(source));
  OrderedJson line = {{"format", kOutputsFormat}, {"model", s.model}, {"keys", s.keys}, {"temperature", s.temperature},
                      {"top_p", s.top_p},         {"top_k", s.top_k}, {"seed", s.seed}};
  // As files have it that are older than the choice.
  if (s.min_p > 0) line["min_p"] = s.min_p;
  if (s.dtype != "f32") line["dtype"] = s.dtype;
  if (!s.environment.empty()) {
    line["environment"] = s.environment;
    line["max_turns"] = s.max_turns;
  }
  line["sources"] = std::move(sources);
  return json_text(line) + "\n";
}

std::string to_json_line(const Output& o) {
  OrderedJson line = {{"source", o.source},   {"id", o.id},           {"sample", o.sample},
                      {"text", o.text},       {"ids", o.ids},         {"finished", o.finished},
                      {"logprob", o.logprob}, {"entropy", o.entropy}, {"confidence", o.confidence}};
  if (!o.end_known) line["finished"] = nullptr;
  if (o.ids.empty() && o.tokens >= 0) line["tokens"] = o.tokens;
  if (!o.inserts.empty()) line["inserts"] = parse_ordered_json(inserts_json(o.inserts));
  return json_text(line) + "\n";
}

StoredOutputs read_outputs(const std::string& path) {
  const std::string bytes = read_file(path, kFileLimit);
  StoredOutputs out;
  const size_t torn = read_lines(path, bytes, out, nullptr);
  if (torn > 0) {
    refuse(printable(path, 400),
           "the last line is cut off: the evaluation was interrupted; the same command resumes it");
  }
  if (bytes.empty()) refuse(printable(path, 400), "the file is empty");
  return out;
}

OutputJournal::OutputJournal(const std::string& path, const OutputSettings& settings) : path_(path) {
  const size_t name = path.find_last_of('/') + 1;  // 0 without a folder
  lock_ = std::make_unique<FileLock>(str(path.substr(0, name), ".", path.substr(name), ".lock"));
  StoredOutputs stored;
  std::string bytes, head = to_json_line(settings);
  std::vector<size_t> ends;
  if (exists(path)) {
    bytes = read_file(path, kFileLimit);
    const size_t torn = read_lines(path, bytes, stored, &ends);
    if (torn > 0) {
      bytes.resize(bytes.size() - torn);
      truncate_file(path, static_cast<int64_t>(bytes.size()));
    }
  }
  if (bytes.empty()) {
    file_ = std::make_unique<FileWriter>(path, true);
    write(head);
    sync();
    return;
  }
  const bool sampled = std::any_of(stored.outputs.begin(), stored.outputs.end(),
                                   [](const Output& o) { return o.sample != kGreedySample; });
  const std::string found = difference(stored.settings, settings, sampled);
  if (!found.empty()) {
    throw Error(ErrorKind::config, str(printable(path, 400), ": this directory holds an evaluation with ", found,
                                       "; remove it or choose another --out or --name"));
  }
  size_t begin = bytes.find('\n') + 1;
  const size_t body = begin;
  for (size_t i = 0; i < ends.size(); ++i) {
    const Output& o = stored.outputs[i];
    lines_.push_back({o.source, o.id, o.sample, begin - body + head.size(), ends[i] - begin});
    begin = ends[i];
  }
  // Greedy responses alone do not depend on the settings of samples: those are this run's from here on.
  if (stored.settings != settings || bytes.compare(0, body, head) != 0) {
    write_file(path, bytes.replace(0, body, head));
  }
  size_ = bytes.size();
  found_ = std::move(stored.outputs);
  file_ = std::make_unique<FileWriter>(path, true);
  sync();
}

void OutputJournal::write(const std::string& bytes) {
  file_->write(bytes);
  size_ += bytes.size();
}

void OutputJournal::append(const Output& output) {
  const std::string line = to_json_line(output);
  lines_.push_back({output.source, output.id, output.sample, size_, line.size()});
  write(line);
  if (now_seconds() - synced_ > kSyncSeconds) sync();
}

void OutputJournal::sync() {
  file_->sync();
  synced_ = now_seconds();
}

void OutputJournal::finish(std::span<const Problem> problems) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> place;
  for (size_t i = 0; i < problems.size(); ++i) place[{problems[i].source, problems[i].id}] = i;
  const auto order = [&](const Line& line) {
    const auto found = place.find({line.source, line.id});
    return std::pair(found == place.end() ? problems.size() : found->second, line.sample);
  };
  std::stable_sort(lines_.begin(), lines_.end(), [&](const Line& a, const Line& b) { return order(a) < order(b); });
  file_->close();
  const std::string bytes = read_file(path_, kFileLimit);
  if (bytes.size() != size_) {
    throw Error(
        ErrorKind::path,
        str(printable(path_, 400), ": another program has written to it meanwhile; its lines cannot be put in order"));
  }
  std::string text = bytes.substr(0, bytes.find('\n') + 1);
  for (Line& line : lines_) {
    const size_t begin = text.size();
    text += std::string_view(bytes).substr(line.begin, line.size);
    line.begin = begin;
  }
  if (text != bytes) write_file(path_, text);
  file_ = std::make_unique<FileWriter>(path_, true);
}

std::vector<Responses> by_problem(std::span<const Problem> problems, std::vector<Output> outputs, bool greedy,
                                  int64_t samples) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> place;
  for (size_t i = 0; i < problems.size(); ++i) place[{problems[i].source, problems[i].id}] = i;
  std::vector<Responses> out(problems.size());
  std::sort(outputs.begin(), outputs.end(), [](const Output& a, const Output& b) { return a.sample < b.sample; });
  for (Output& output : outputs) {
    const auto found = place.find({output.source, output.id});
    if (found == place.end() || output.sample >= samples) continue;
    Responses& mine = out[found->second];
    (output.sample == kGreedySample ? mine.greedy : mine.samples).push_back(std::move(output));
  }
  for (size_t i = 0; i < problems.size(); ++i) {
    const auto asked = static_cast<size_t>(samples);
    if (!greedy) out[i].greedy.clear();
    const size_t missing = (asked - std::min(asked, out[i].samples.size())) + (greedy && out[i].greedy.empty());
    if (missing == 0) continue;
    throw Error(ErrorKind::truncated,
                str(printable(problems[i].source), "/", printable(problems[i].id), ": ", missing,
                    " of its responses are missing; the evaluation was interrupted, the same command "
                    "resumes it"));
  }
  return out;
}

}  // namespace ucas
