#include "hf/hub.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "hf/peft.h"

namespace ucas {

namespace {

constexpr std::string_view kScheme = "hf://", kGenerated = "rg:";
constexpr const char* kGeneratedFolder = "ucas/reasoning_gym";
constexpr int64_t kRefLimit = 256;

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

// "train-00001-of-00004.parquet": as many as the name says must be there.
void check_shards(const HubName& hub, const std::string& snapshot, const std::string& file) {
  const size_t of = file.rfind("-of-");
  if (of == std::string::npos || of < 6) return;
  const int64_t count = std::atoll(file.substr(of + 4, 5).c_str());
  for (int64_t i = 0; i < count; ++i) {
    check_file(hub, snapshot, str(file.substr(0, of - 5), str(100'000 + i).substr(1), file.substr(of)));
  }
}

// The file that hf://ORG/SET[@REVISION]/PATH names, or those in its folder that fit the * in its last part.
std::vector<std::string> files_of_data(const std::string& text) {
  // Of a revision refs/pr/1 has slashes.
  static const std::regex kForm(
      "hf://(?:datasets/)?([^/@]+/[^/@]+)(?:@(refs/[^/]+/[^/]+|[^/]+))?/((?:[^/]+/)*)([^/]+)");
  std::smatch part;
  const bool good = text.size() < 1000 && std::regex_match(text, part, kForm) && is_hub_repository(part.str(1)) &&
                    (part.str(2).empty() || is_revision(part.str(2))) && text.find("/../") == std::string::npos;
  if (!good) {
    throw Error(ErrorKind::usage, str(printable(text, 400),
                                      ": expected hf://ORG/SET/FILE or hf://ORG/SET@REVISION/FILE, where * in FILE "
                                      "matches any part of a name, such as hf://openai/gsm8k/main/test-*"));
  }
  const HubName hub{true, part.str(1), part.str(2)};
  const std::string snapshot = find_snapshot(hub), folder = part.str(3), pattern = part.str(4);
  const std::string below = path_join(snapshot, folder);
  const std::vector<std::string> there = is_directory(below) ? list_directory(below) : std::vector<std::string>{};
  std::vector<std::string> files;
  for (const std::string& name : there) {
    if (matches_star(name, pattern) && !is_directory(path_join(below, name))) files.push_back(folder + name);
  }
  if (files.empty()) {
    hub.refuse(ErrorKind::path, str("no file ", printable(folder + pattern), " in the snapshot ",
                                    printable(snapshot, 400), "; there are ", printable(join(there, ", "), 600)));
  }
  check_shards(hub, snapshot, files.front());
  for (std::string& file : files) {
    check_file(hub, snapshot, file);
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
      **list = data_files(**list);
    }
  }
  void enter(const char*) override {}
  void leave() override {}
};

bool is_generated(const std::string& name) { return name.starts_with(kGenerated); }

// Error("python") where the package is absent or takes no such settings.
std::string generated_file(const std::string& name) {
  const std::string printed =
      run_python("reasoning", {"rows", name, path_join(user_cache(), kGeneratedFolder)}, printable(name, 200));
  const std::string path(trim(printed.substr(printed.rfind('\n', printed.size() - 2) + 1)));
  if (!exists(path))
    throw Error(ErrorKind::python,
                str(printable(name, 200), ": its Python printed no file, but ", printable(path, 200)));
  return path;
}

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
  std::vector<std::string> needed = {"config.json"};  // weights in other formats are refused by their reader
  if (!has("model.safetensors.index.json") && !has("pytorch_model.bin") && !has("pytorch_model.bin.index.json"))
    needed.emplace_back("model.safetensors");
  if (!has("tokenizer.model")) needed.emplace_back("tokenizer.json");
  if (has(kAdapterConfig)) needed = {"adapter_model.safetensors"};
  for (const std::string& file : list_directory(snapshot))  // each that its readers may open is a whole one
    if (file.ends_with(".json") || file.ends_with(".safetensors") || file.ends_with(".jinja")) needed.push_back(file);
  for (const std::string& file : needed) check_file(hub, snapshot, file);
  return snapshot;
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

std::vector<std::string> data_files(const std::vector<std::string>& asked) {
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
      for (std::string& file : files_of_data(name)) files.push_back(std::move(file));
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

bool is_generated_file(const std::string& path) { return path.find(str(kGeneratedFolder, "/")) != std::string::npos; }

}  // namespace ucas
