#include "hf/hub.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/hub_path.h"
#include "base/str.h"
#include "hf/adapter.h"
#include "hf/config_reader.h"
#include "hf/reasoning_gym.h"

namespace ucas {

namespace {

constexpr std::string_view kScheme = "hf://";
constexpr std::string_view kDataSets = "datasets/";
constexpr const char* kMain = "main";
constexpr const char* kSnapshots = "snapshots";
constexpr int64_t kRefLimit = 256, kHubIndexLimit = int64_t{64} << 20;
constexpr size_t kMostFiles = 100'000;
constexpr int kDeepest = 8;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// os.path.expandvars(os.path.expanduser(path)), as huggingface_hub reads its variables.
std::string expanded(std::string path) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, variable("HOME"));
  std::string out;
  for (size_t i = 0; i < path.size();) {
    const bool braced = path.compare(i, 2, "${") == 0;
    size_t end = i + (braced ? 2 : 1);
    while (end < path.size() && (std::isalnum(static_cast<unsigned char>(path[end])) != 0 || path[end] == '_')) ++end;
    const size_t begin = i + (braced ? 2 : 1);
    const std::string name = path.substr(begin, end - begin);
    const bool closed = !braced || (end < path.size() && path[end] == '}');
    if (path[i] != '$' || name.empty() || !closed || std::getenv(name.c_str()) == nullptr) {
      out += path[i++];
      continue;
    }
    out += variable(name.c_str());
    i = end + (braced ? 1 : 0);
  }
  return out;
}

bool is_set(const char* name) {
  std::string value = variable(name);
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

struct HubName {
  HubKind kind = HubKind::model;
  std::string name, revision;  // "ORG/NAME"; "": main
  std::string shown() const {
    return str(kind == HubKind::data_set ? kScheme : "", name, revision.empty() ? "" : "@" + revision);
  }
  std::string folder() const {
    std::string folder = str(kind == HubKind::model ? "models--" : "datasets--", name);
    folder.replace(folder.find('/'), 1, "--");
    return path_join(hub_cache(), folder);
  }
  // What to type; nothing of the name needs quotes.
  std::string command(const std::string& of_revision) const {
    return str("hf download ", name, kind == HubKind::data_set ? " --repo-type dataset" : "",
               of_revision.empty() || of_revision == kMain ? "" : " --revision " + of_revision);
  }
  // ": ucas fetches nothing; run COMMAND"
  std::string advice(const std::string& of_revision) const {
    std::string offline;
    for (const char* name_of : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}) {
      if (offline.empty() && is_set(name_of)) offline = str(" (without ", name_of, ", which is set)");
    }
    return str("; ucas fetches nothing: run ", command(of_revision), offline);
  }
};

bool is_revision(std::string_view text) {
  return !text.empty() && !text.starts_with("/") && !text.ends_with("/") && text.find("..") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) { return c == '/' || is_hub_letter(c); });
}

// Of what is_hub_name() said yes to.
HubName model_name(const std::string& text, const std::string& revision = "") {
  const size_t at = text.find('@');
  return {HubKind::model, text.substr(0, at), at == std::string::npos ? revision : text.substr(at + 1)};
}

// Paths of the files below a folder, relative to it; hidden ones are none.
void list_files(const std::string& folder, const std::string& below, int depth, std::vector<std::string>& out) {
  for (const std::string& name : list_directory(path_join(folder, below))) {
    const std::string path = below.empty() ? name : path_join(below, name);
    if (name.starts_with(".") || out.size() >= kMostFiles) continue;
    if (!is_directory(path_join(folder, path))) {
      out.push_back(path);
    } else if (depth < kDeepest) {
      list_files(folder, path, depth + 1, out);
    }
  }
}

std::string commit_of_ref(const std::string& file) {
  if (!exists(file) || is_directory(file)) return "";
  const std::string commit(trim(read_file(file, kRefLimit)));
  return is_revision(commit) && commit.find('/') == std::string::npos ? commit : "";
}

// "main (2e1fd39), v1.0 (8d9a..)", of what the cache has of a repository.
std::string revisions_of(const std::string& repository) {
  const std::string refs = path_join(repository, "refs"), snapshots = path_join(repository, kSnapshots);
  std::vector<std::string> names, known;
  std::set<std::string> named;
  if (is_directory(refs)) list_files(refs, "", 0, known);
  for (const std::string& ref : known) {
    const std::string commit = commit_of_ref(path_join(refs, ref));
    if (commit.empty() || !is_directory(path_join(snapshots, commit))) continue;
    names.push_back(str(printable(ref), " (", commit.substr(0, 7), ")"));
    named.insert(commit);
  }
  for (const std::string& commit : is_directory(snapshots) ? list_directory(snapshots) : std::vector<std::string>()) {
    if (!named.contains(commit)) names.push_back(printable(commit));
  }
  constexpr size_t kShown = 8;
  if (names.size() > kShown) names.resize(kShown), names.emplace_back("..");
  return join(names, ", ");
}

struct Snapshot {
  std::string directory, revision;  // to fetch the rest of it
};

Snapshot find_snapshot(const HubName& name) {
  const std::string repository = name.folder(), snapshots = path_join(repository, kSnapshots);
  const std::string wanted = name.revision.empty() ? kMain : name.revision;
  if (!is_directory(snapshots)) {
    const bool begun = is_directory(repository);
    throw Error(ErrorKind::path,
                str(printable(name.shown(), 400), name.kind == HubKind::model ? ": no such directory, and " : ": ",
                    begun ? "only begun" : "not", " in the cache of the hub, ", printable(hub_cache(), 400),
                    name.advice(name.revision)));
  }
  std::string commit = commit_of_ref(path_join(path_join(repository, "refs"), wanted));
  if (commit.empty() && wanted.find('/') == std::string::npos) commit = wanted;
  const std::string directory = path_join(snapshots, commit);
  if (commit.empty() || !is_directory(directory)) {
    const std::string there = revisions_of(repository);
    throw Error(ErrorKind::path,
                str(printable(name.shown(), 400), ": revision ", printable(wanted), " is not in the cache of the hub",
                    there.empty() ? "" : str(", which has ", there), name.advice(name.revision)));
  }
  return {directory, commit == wanted || name.revision.empty() ? name.revision : wanted};
}

[[noreturn]] void refuse_part(const HubName& name, const Snapshot& snapshot, const std::string& file) {
  throw Error(ErrorKind::truncated,
              str(printable(name.shown(), 400), ": ", printable(file), " is not in the snapshot ",
                  printable(snapshot.directory, 400), " (a download that did not end, or of some files)",
                  name.advice(snapshot.revision)));
}

void check_file(const HubName& name, const Snapshot& snapshot, const std::string& file) {
  const std::string path = path_join(snapshot.directory, file);
  if (!exists(path)) refuse_part(name, snapshot, file);
  refuse_lfs_pointer(path);
}

// The files without which nothing can be loaded. Weights in other formats are refused by their reader.
void check_checkpoint_files(const HubName& name, const Snapshot& snapshot) {
  const auto has = [&](const char* file) { return exists(path_join(snapshot.directory, file)); };
  if (has(kAdapterConfig)) return check_file(name, snapshot, "adapter_model.safetensors");
  check_file(name, snapshot, "config.json");
  const char* index = "model.safetensors.index.json";
  if (!has("model.safetensors") && has(index)) {
    const Json json = read_config_json(path_join(snapshot.directory, index), kHubIndexLimit);
    std::set<std::string> shards;
    if (json.is_object() && json.contains("weight_map") && json["weight_map"].is_object()) {
      for (const auto& [tensor, shard] : json["weight_map"].items()) {
        if (shard.is_string()) shards.insert(shard.get<std::string>());
      }
    }
    for (const std::string& shard : shards) check_file(name, snapshot, shard);
  } else if (!has("pytorch_model.bin") && !has("pytorch_model.bin.index.json")) {
    check_file(name, snapshot, "model.safetensors");
  }
  if (!has("tokenizer.model")) check_file(name, snapshot, "tokenizer.json");
}

// --- data sets ---------------------------------------------------------------------------------------------------

struct DataName {
  HubName hub;
  std::string path, split;
};

[[noreturn]] void refuse_data_name(const std::string& text) {
  throw Error(ErrorKind::usage, str(printable(text, 400),
                                    ": expected hf://ORG/SET, hf://ORG/SET@REVISION, then perhaps /FOLDER or "
                                    "/FILE, then perhaps :SPLIT, such as hf://openai/gsm8k/main:test"));
}

DataName parse_data_name(const std::string& text) {
  DataName data;
  data.hub.kind = HubKind::data_set;
  std::string rest = text.substr(kScheme.size());
  if (rest.starts_with(kDataSets)) rest.erase(0, kDataSets.size());
  if (const size_t colon = rest.rfind(':'); colon != std::string::npos) {
    data.split = rest.substr(colon + 1);
    rest.resize(colon);
    if (data.split.empty()) refuse_data_name(text);
  }
  std::vector<std::string> parts = split(rest, '/');
  if (parts.size() < 2) refuse_data_name(text);
  size_t next = 2;
  std::string set = parts[1];
  if (const size_t at = set.find('@'); at != std::string::npos) {
    data.hub.revision = set.substr(at + 1);
    set.resize(at);
    // refs/pr/1 and refs/convert/parquet are revisions of three parts.
    if (data.hub.revision == "refs" && parts.size() >= 4) {
      data.hub.revision = str("refs/", parts[2], "/", parts[3]);
      next = 4;
    }
    if (!is_revision(data.hub.revision)) refuse_data_name(text);
  }
  data.hub.name = str(parts[0], "/", set);
  if (!is_hub_repository(data.hub.name)) refuse_data_name(text);
  std::vector<std::string> path(parts.begin() + static_cast<std::ptrdiff_t>(next), parts.end());
  if (!path.empty() && path.back().empty()) path.pop_back();
  for (const std::string& part : path) {
    if (part.empty() || part == "." || part == "..") refuse_data_name(text);
  }
  data.path = join(path, "/");
  return data;
}

// The words of a path, small: "data/train-00000-of-00002.parquet" has data, train, 00000, of, 00002, parquet.
std::vector<std::string> words_of(const std::string& path) {
  std::vector<std::string> words(1);
  for (char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return words;
}

// By the words that the library datasets knows; "" where the name says nothing.
std::string split_word(const std::string& word) {
  if (word == "train" || word == "training") return "train";
  if (word == "validation" || word == "valid" || word == "val" || word == "dev") return "validation";
  if (word == "test" || word == "testing" || word == "eval" || word == "evaluation") return "test";
  return "";
}

// Of the file's own name, else of the folder nearest to it.
std::string split_of(const std::string& path) {
  std::vector<std::string> parts = split(path, '/');
  for (size_t i = parts.size(); i-- > 0;) {
    for (const std::string& word : words_of(parts[i])) {
      if (std::string found = split_word(word); !found.empty()) return found;
    }
  }
  return "";
}

std::string format_of(const std::string& path) {
  std::string plain = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
  for (const char* ending : {".parquet", ".jsonl", ".json", ".csv", ".tsv"}) {
    if (plain.ends_with(ending)) return ending;
  }
  return "";
}

bool is_data_file(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  static const std::set<std::string> kOthers = {"dataset_infos.json", "dataset_info.json", "package.json",
                                                "state.json",         "metadata.json",     "config.json"};
  return !format_of(path).empty() && !kOthers.contains(name);
}

std::string folder_of(const std::string& path) {
  return path.find('/') == std::string::npos ? "" : path.substr(0, path.rfind('/'));
}

// "train-00001-of-00004.parquet": every one of the four must be there.
void check_shards(const DataName& data, const Snapshot& snapshot, const std::string& file) {
  const size_t of = file.rfind("-of-");
  constexpr size_t kDigits = 5;
  const auto number = [&](size_t at) {
    const std::string digits = at + kDigits <= file.size() ? file.substr(at, kDigits) : "";
    return digits.size() == kDigits && std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; })
               ? std::atoi(digits.c_str())
               : -1;
  };
  if (of == std::string::npos || of < kDigits + 1 || number(of - kDigits) < 0) return;
  const int count = number(of + 4);
  for (int i = 0; i < count; ++i) {
    std::string shard = str(i);
    shard.insert(0, kDigits - std::min(kDigits, shard.size()), '0');
    check_file(data.hub, snapshot, file.substr(0, of - kDigits) + shard + file.substr(of));
  }
}

std::string several(std::set<std::string> names) {
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

// The files of one split. `all`: data files below the path that was named.
std::vector<std::string> files_of_split(const std::string& text, const DataName& data, OptionNames what,
                                        const std::vector<std::string>& all) {
  std::set<std::string> there;
  for (const std::string& file : all) there.insert(split_of(file));
  const std::string base = text.substr(0, text.size() - (data.split.empty() ? 0 : data.split.size() + 1));
  std::vector<std::string> wanted;
  if (const std::string asked = split_word(data.split); !asked.empty()) {
    wanted = {asked};
  } else if (!data.split.empty()) {
    wanted = {data.split};  // a name of the set's own, such as math500
  } else if (what == OptionNames::training_data) {
    wanted = {"train", ""};
  } else {
    wanted = {"test", "validation"};
    if (there.size() == 1) wanted.push_back(*there.begin());
  }
  for (const std::string& split : wanted) {
    std::vector<std::string> files;
    for (const std::string& file : all) {
      const std::vector<std::string> words = words_of(file);
      const bool own = !data.split.empty() && std::ranges::find(words, split) != words.end();
      if (split_of(file) == split || own) files.push_back(file);
    }
    if (!files.empty()) return files;
  }
  there.erase("");
  throw Error(ErrorKind::path,
              str(printable(text, 400), ": no files of the split ", printable(wanted.front()), "; there ",
                  there.size() == 1 ? "is " : "are ", there.empty() ? "none that a name tells" : several(there),
                  there.empty() ? "; name a file: " : "; name one: ", printable(base, 400),
                  there.empty() ? "/" + all.front() : ":" + *there.begin()));
}

std::vector<std::string> files_of_data(const std::string& text, OptionNames what) {
  const DataName data = parse_data_name(text);
  const Snapshot snapshot = find_snapshot(data.hub);
  const std::string below = data.path.empty() ? snapshot.directory : path_join(snapshot.directory, data.path);
  std::vector<std::string> all;
  if (exists(below) && !is_directory(below)) {
    refuse_lfs_pointer(below);
    return {below};
  }
  if (is_directory(below)) list_files(snapshot.directory, data.path, 0, all);
  std::erase_if(all, [](const std::string& file) { return !is_data_file(file); });
  if (all.empty()) {
    throw Error(ErrorKind::path, str(printable(text, 400), ": no data file (.parquet, .jsonl, .json, .csv, .tsv) in ",
                                     printable(below, 400), data.hub.advice(snapshot.revision)));
  }
  std::vector<std::string> files = files_of_split(text, data, what, all);
  std::set<std::string> folders, formats;
  for (const std::string& file : files) folders.insert(folder_of(file)), formats.insert(format_of(file));
  if (folders.size() > 1 || formats.size() > 1) {
    std::set<std::string> choices = folders.size() > 1 ? folders : std::set<std::string>(files.begin(), files.end());
    choices.erase("");
    throw Error(ErrorKind::usage, str(printable(text, 400), ": data files in ",
                                      folders.size() > 1 ? "several folders" : "several formats", ": ",
                                      printable(several(choices), 400), "; name one, such as hf://", data.hub.name,
                                      data.hub.revision.empty() ? "" : "@" + data.hub.revision, "/", *choices.begin(),
                                      data.split.empty() ? "" : ":" + data.split));
  }
  check_shards(data, snapshot, files.front());
  for (std::string& file : files) {
    check_file(data.hub, snapshot, file);
    file = path_join(snapshot.directory, file);
  }
  return files;
}

// --- options -----------------------------------------------------------------------------------------------------

class HubResolver final : public Fields {
  void visit(const OptionField& field) override {
    if (field.names == OptionNames::nothing) return;
    if (auto* const* text = std::get_if<std::string*>(&field.value)) {
      if (field.names == OptionNames::checkpoint) **text = checkpoint_directory(**text);
      if (field.names == OptionNames::tokenizer) **text = tokenizer_directory_of(**text);
    } else if (auto* const* list = std::get_if<std::vector<std::string>*>(&field.value)) {
      **list = data_files(**list, field.names);
    }
  }
  void enter(const char*) override {}
  void leave() override {}
};

}  // namespace

std::string hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string place = variable(name); !place.empty()) return expanded(place);
  }
  if (const std::string home = variable("HF_HOME"); !home.empty()) return path_join(expanded(home), "hub");
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = "~/.cache";
  return path_join(expanded(cache), "huggingface/hub");
}

bool is_hub_name(const std::string& name) {
  const size_t at = name.find('@');
  return is_hub_repository(std::string_view(name).substr(0, at)) &&
         (at == std::string::npos || is_revision(std::string_view(name).substr(at + 1)));
}

std::string checkpoint_directory(const std::string& name, const std::string& revision) {
  if (!is_hub_name(name) || exists(name)) return name;
  const HubName hub = model_name(name, revision);
  const Snapshot snapshot = find_snapshot(hub);
  check_checkpoint_files(hub, snapshot);
  return snapshot.directory;
}

std::string tokenizer_directory_of(const std::string& name) {
  if (!is_hub_name(name) || exists(name)) return name;
  const HubName hub = model_name(name);
  const Snapshot snapshot = find_snapshot(hub);
  check_file(hub, snapshot, "tokenizer.json");
  return snapshot.directory;
}

std::string cached_file(const std::string& name, const std::string& file) {
  if (!is_hub_name(name)) return "";
  try {
    const std::string path = path_join(find_snapshot(model_name(name)).directory, file);
    return exists(path) ? path : "";
  } catch (const Error&) {
    return "";
  }
}

std::vector<std::string> data_files(const std::vector<std::string>& asked, OptionNames what) {
  std::vector<std::string> names, files;
  for (const std::string& name : asked) {
    // "rg:chain_sum,size=9" was cut at its comma, as lists of the command line are.
    const bool setting = name.find('=') != std::string::npos && name.find_first_of("/.:") > name.find('=');
    if (setting && !names.empty() && is_generated(names.back())) {
      names.back() += "," + name;
    } else {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    if (name.starts_with(kScheme)) {
      for (std::string& file : files_of_data(name, what)) files.push_back(std::move(file));
    } else if (is_generated(name)) {
      files.push_back(generated_file(name));
    } else {
      files.push_back(name);
    }
  }
  return files;
}

void resolve_hub_names(Fielder list, void* config) {
  HubResolver resolver;
  list(resolver, config);
}

}  // namespace ucas
