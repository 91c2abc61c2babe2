#include "hf/hub.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "hf/peft.h"

namespace ucas {

namespace {

constexpr std::string_view kScheme = "hf://";
constexpr int64_t kRefLimit = 256;
constexpr size_t kMostFiles = 100'000;
constexpr int kDeepest = 8;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string at_home(std::string path) {
  const std::string home = variable("HOME");
  return path == "~" || path.starts_with("~/") ? path.replace(0, 1, home.empty() ? "/tmp" : home) : path;
}

std::string user_cache() {
  const std::string cache = variable("XDG_CACHE_HOME");
  return at_home(cache.empty() ? "~/.cache" : cache);
}

struct HubName {
  bool data_set = false;
  std::string name, revision;  // "ORG/NAME"; "": main
  std::string shown() const { return str(data_set ? kScheme : "", name, revision.empty() ? "" : "@" + revision); }
  std::string folder() const {
    std::string folder = str(data_set ? "datasets--" : "models--", name);
    folder.replace(folder.find('/'), 1, "--");
    return path_join(hub_cache(), folder);
  }
  // What to type; nothing of the name needs quotes.
  [[noreturn]] void refuse(ErrorKind kind, const std::string& what) const {
    throw Error(kind, str(printable(shown(), 400), ": ", what, "; ucas fetches nothing: run hf download ", name,
                          data_set ? " --repo-type dataset" : "", revision.empty() ? "" : " --revision " + revision));
  }
};

bool is_revision(std::string_view text) {
  return !text.empty() && !text.starts_with("/") && !text.ends_with("/") && text.find("..") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) { return c == '/' || is_hub_letter(c); });
}

// Of what is_hub_name() said yes to.
HubName model_name(const std::string& text, const std::string& revision = "") {
  const size_t at = text.find('@');
  return {false, text.substr(0, at), at == std::string::npos ? revision : text.substr(at + 1)};
}

// The snapshot that a revision names: a branch or tag by its ref, or a commit.
std::string find_snapshot(const HubName& hub) {
  const std::string snapshots = path_join(hub.folder(), "snapshots");
  if (!is_directory(snapshots)) {
    hub.refuse(ErrorKind::path, str(hub.data_set ? "" : "no such directory, and ", "not in the cache of the hub, ",
                                    printable(hub_cache(), 400)));
  }
  const std::string wanted = hub.revision.empty() ? "main" : hub.revision;
  const std::string ref = path_join(path_join(hub.folder(), "refs"), wanted);
  std::string commit = wanted;
  if (exists(ref) && !is_directory(ref)) commit = std::string(trim(read_file(ref, kRefLimit)));
  if (!is_revision(commit) || commit.find('/') != std::string::npos || !is_directory(path_join(snapshots, commit)))
    hub.refuse(ErrorKind::path, str("revision ", printable(wanted), " is not in the cache of the hub"));
  return path_join(snapshots, commit);
}

bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

// A file of a snapshot is there, is no LFS pointer, and its link ends in this repository of the cache or in its blobs.
void check_file(const HubName& hub, const std::string& snapshot, const std::string& file) {
  const std::string path = path_join(snapshot, file);
  if (!exists(path)) {
    hub.refuse(ErrorKind::truncated, str(printable(file), " is not in the snapshot ", printable(snapshot, 400),
                                         " (a download that did not end, or of some files)"));
  }
  std::error_code failed;
  const auto end = [&](const std::string& of) { return std::filesystem::weakly_canonical(of, failed); };
  const std::filesystem::path place = end(path);
  if (failed || (!is_below(place, end(hub.folder())) && !is_below(place, end(path_join(hub.folder(), "blobs")))))
    throw Error(ErrorKind::path,
                str(printable(path, 400), ": a link out of the cache, to ", printable(place.string(), 400),
                    "; expected one into ", printable(path_join(hub.folder(), "blobs"), 400)));
  refuse_lfs_pointer(path);
}

// The directory of a model, and that each file which its readers open is a whole one.
std::string model_snapshot(const HubName& hub, const std::vector<std::string>& needed) {
  const std::string snapshot = find_snapshot(hub);
  for (const std::string& file : needed) check_file(hub, snapshot, file);
  for (const std::string& file : list_directory(snapshot))
    if (file.ends_with(".json") || file.ends_with(".safetensors") || file.ends_with(".jinja"))
      check_file(hub, snapshot, file);
  return snapshot;
}

// --- data sets ---------------------------------------------------------------------------------------------------

struct DataName {
  HubName hub;
  std::string path, split;
};

DataName parse_data_name(const std::string& text) {
  // Of a revision refs/pr/1 has slashes.
  static const std::regex kForm(
      "hf://(?:datasets/)?([^/@:]+/[^/@:]+)(?:@(refs/[^/:]+/[^/:]+|[^/:]+))?(?:/([^:]*))?(?::([^:]+))?");
  std::smatch part;
  bool good = text.size() < 1000 && std::regex_match(text, part, kForm) && is_hub_repository(part.str(1)) &&
              (part.str(2).empty() || is_revision(part.str(2)));
  DataName data;
  if (good) data = {{true, part.str(1), part.str(2)}, part.str(3), part.str(4)};
  if (data.path.ends_with('/')) data.path.pop_back();
  for (const std::string& folder : split(data.path, '/')) {
    good = good && (data.path.empty() || (!folder.empty() && folder != "." && folder != ".."));
  }
  if (good) return data;
  throw Error(ErrorKind::usage, str(printable(text, 400),
                                    ": expected hf://ORG/SET, hf://ORG/SET@REVISION, then perhaps /FOLDER or "
                                    "/FILE, then perhaps :SPLIT, such as hf://openai/gsm8k/main:test"));
}

bool is_data_file(const std::string& path) {
  const std::string plain = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
  static const std::set<std::string> kOthers = {"dataset_infos.json", "dataset_info.json", "package.json",
                                                "state.json",         "metadata.json",     "config.json"};
  return !kOthers.contains(path.substr(path.rfind('/') + 1)) &&
         std::ranges::any_of(std::vector{".parquet", ".jsonl", ".json", ".csv", ".tsv"},
                             [&](const char* ending) { return plain.ends_with(ending); });
}

// Paths of the data files below a folder of a snapshot, relative to that; hidden ones are none.
std::vector<std::string> list_files(const std::string& snapshot, const std::string& folder) {
  std::vector<std::string> files;
  for (auto at = std::filesystem::recursive_directory_iterator(
           path_join(snapshot, folder), std::filesystem::directory_options::skip_permission_denied);
       at != end(at); ++at) {
    const bool hidden = at->path().filename().string().starts_with(".");
    if (at->is_directory() && (hidden || at.depth() == kDeepest)) at.disable_recursion_pending();
    const std::string path = at->path().lexically_relative(snapshot).string();
    if (!hidden && !at->is_directory() && is_data_file(path) && files.size() < kMostFiles) files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

bool has_word(const std::string& path, std::string_view word) {
  const auto letter = [&](size_t at) { return at < path.size() && std::isalnum(static_cast<unsigned char>(path[at])); };
  for (size_t at = path.find(word); at != std::string::npos; at = path.find(word, at + 1))
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

// The files of one split, told by the words of their paths, of the data files below the path that was named.
std::vector<std::string> files_of_split(const std::string& text, const DataName& data, OptionNames what,
                                        const std::vector<std::string>& all) {
  std::vector<std::string> wanted = {"test", "validation"};
  if (what == OptionNames::training_data) wanted = {"train"};
  if (!data.split.empty()) wanted = {data.split};
  for (const std::string& split : wanted) {
    std::vector<std::string> files;
    std::ranges::copy_if(all, std::back_inserter(files), [&](const std::string& f) { return has_word(f, split); });
    if (!files.empty()) return files;
  }
  const auto tells = [](const std::string& f) {
    return has_word(f, "train") || has_word(f, "test") || has_word(f, "validation");
  };
  if (data.split.empty() && std::ranges::none_of(all, tells)) return all;
  std::vector<std::string> shown(all.begin(),
                                 all.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(all.size(), 8)));
  throw Error(ErrorKind::path, str(printable(text, 400), ": no files of the split ", printable(wanted.front()),
                                   ", a word of their paths; there are ", printable(join(shown, ", "), 600),
                                   "; name one, or a split: hf://", data.hub.name, "/", printable(shown.front(), 200)));
}

// "train-00001-of-00004.parquet": as many as the name says must be there.
void check_shards(const DataName& data, const std::string& snapshot, const std::string& file) {
  const size_t of = file.rfind("-of-");
  if (of == std::string::npos || of < 6) return;
  const int64_t count = std::atoll(file.substr(of + 4, 5).c_str());
  for (int64_t i = 0; i < std::min<int64_t>(count, kMostFiles); ++i) {
    std::string number = str(100'000 + i);
    check_file(data.hub, snapshot, file.substr(0, of - 5) + number.substr(1) + file.substr(of));
  }
}

std::vector<std::string> files_of_data(const std::string& text, OptionNames what) {
  const DataName data = parse_data_name(text);
  const std::string snapshot = find_snapshot(data.hub);
  const std::string below = data.path.empty() ? snapshot : path_join(snapshot, data.path);
  std::vector<std::string> all, files;
  if (exists(below) && !is_directory(below)) {
    files = {data.path};
  } else {
    if (is_directory(below)) all = list_files(snapshot, data.path);
    if (all.empty())
      data.hub.refuse(ErrorKind::path,
                      str("no data file (.parquet, .jsonl, .json, .csv, .tsv) in ", printable(below, 400)));
    files = files_of_split(text, data, what, all);
    check_shards(data, snapshot, files.front());
  }
  std::set<std::string> folders;
  for (const std::string& file : files)
    folders.insert(file.substr(0, file.find('/') == std::string::npos ? 0 : file.rfind('/')));
  if (folders.size() > 1) {
    folders.erase("");
    throw Error(ErrorKind::usage,
                str(printable(text, 400), ": data files in several folders: ",
                    printable(join({folders.begin(), folders.end()}, ", "), 400), "; name one, such as hf://",
                    data.hub.name, data.hub.revision.empty() ? "" : "@" + data.hub.revision, "/", *folders.begin(),
                    data.split.empty() ? "" : ":" + data.split));
  }
  for (std::string& file : files) {
    check_file(data.hub, snapshot, file);
    file = path_join(snapshot, file);
  }
  return files;
}

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
  if (const std::string place = variable("HF_HUB_CACHE"); !place.empty()) return at_home(place);
  if (const std::string home = variable("HF_HOME"); !home.empty()) return path_join(at_home(home), "hub");
  return path_join(user_cache(), "huggingface/hub");
}

bool is_hub_name(const std::string& name) {
  const size_t at = name.find('@');
  return is_hub_repository(std::string_view(name).substr(0, at)) &&
         (at == std::string::npos || is_revision(std::string_view(name).substr(at + 1)));
}

std::string checkpoint_directory(const std::string& name, const std::string& revision) {
  if (!is_hub_name(name) || exists(name)) return name;
  const HubName hub = model_name(name, revision);
  const std::string snapshot = find_snapshot(hub);
  const auto has = [&](const char* file) { return exists(path_join(snapshot, file)); };
  if (has(kAdapterConfig)) return model_snapshot(hub, {"adapter_model.safetensors"});
  std::vector<std::string> needed = {"config.json"};  // weights in other formats are refused by their reader
  if (!has("model.safetensors.index.json") && !has("pytorch_model.bin") && !has("pytorch_model.bin.index.json"))
    needed.emplace_back("model.safetensors");
  if (!has("tokenizer.model")) needed.emplace_back("tokenizer.json");
  return model_snapshot(hub, needed);
}

std::string tokenizer_directory_of(const std::string& name) {
  if (!is_hub_name(name) || exists(name)) return name;
  const HubName hub = model_name(name);
  check_file(hub, find_snapshot(hub), "tokenizer.json");
  return find_snapshot(hub);
}

std::string cached_file(const std::string& name, const std::string& file) {
  if (!is_hub_name(name)) return "";
  try {
    const std::string path = path_join(find_snapshot(model_name(name)), file);
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
    } else {
      files.push_back(is_generated(name) ? generated_file(name) : name);
    }
  }
  return files;
}

void resolve_hub_names(Fielder list, void* config) {
  HubResolver resolver;
  list(resolver, config);
}

namespace {

constexpr std::string_view kGenerated = "rg:";
constexpr const char* kFolder = "ucas/reasoning_gym";

}  // namespace

bool is_generated(const std::string& name) { return name.starts_with(kGenerated); }

std::string generated_file(const std::string& name) {
  const std::string printed =
      run_python("reasoning", {"rows", name, path_join(user_cache(), kFolder)}, printable(name, 200));
  const std::string path(trim(printed.substr(printed.rfind('\n', printed.size() - 2) + 1)));
  if (!exists(path))
    throw Error(ErrorKind::python,
                str(printable(name, 200), ": its Python printed no file, but ", printable(path, 200)));
  return path;
}

bool is_generated_file(const std::string& path) { return path.find(str(kFolder, "/")) != std::string::npos; }

}  // namespace ucas
