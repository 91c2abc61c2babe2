#include "records/run/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/text/json.h"

namespace ucas {

namespace {

constexpr const char* kManifestName = "manifest.json";
constexpr int64_t kManifestLimit = int64_t{4} << 20;
// The manifest ends with this, its own hash (of everything before), and kSealTail.
constexpr std::string_view kSealSelf = ",\n  \"self\": \"";
constexpr std::string_view kSealTail = "\"\n}\n";

struct Manifest {
  std::string problem;
  int64_t step = -1;
  std::vector<SealedFile> files;
};

// Typed reads; nullopt where the manifest is not what we write.
std::optional<int64_t> number_at(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer()) return std::nullopt;
  return json[key].get<int64_t>();
}
std::optional<std::string> text_at(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_string()) return std::nullopt;
  return json[key].get<std::string>();
}

// A file of the directory, or of its state/.
bool is_plain_name(std::string name) {
  const std::string folder = str(kStateFolder, "/");
  if (name.starts_with(folder)) name.erase(0, folder.size());
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

Manifest read_manifest(const std::string& directory) {
  Manifest manifest;
  std::string path = path_join(state_folder(directory), kManifestName);
  if (!exists(path)) return {"it has no manifest.json (the save did not finish)", -1, {}};
  std::string text = read_file(path, kManifestLimit);
  size_t self = text.rfind(kSealSelf);
  if (self == std::string::npos || text.size() != self + kSealSelf.size() + 32 + kSealTail.size() ||
      !text.ends_with(kSealTail) ||
      text.substr(self + kSealSelf.size(), 32) != hash_of_text(std::string_view(text).substr(0, self))) {
    return {"its manifest.json is damaged", -1, {}};
  }
  Json json = parse_json(text, path);
  auto format = number_at(json, "format"), step = number_at(json, "step");
  if (!format || !step || !json.contains("files") || !json["files"].is_array()) {
    return {"its manifest.json lacks format, step or files", -1, {}};
  }
  if (*format > kManifestFormat) {
    return {str("its format ", *format, " is newer than this program knows (", kManifestFormat, ")"), -1, {}};
  }
  manifest.step = *step;
  for (const Json& row : json["files"]) {
    auto name = text_at(row, "name"), hash = text_at(row, "xxh3_128");
    auto size = number_at(row, "size");
    if (!name || !is_plain_name(*name) || !hash || !size)
      return {"its manifest.json has a row without name, size or hash", -1, {}};
    manifest.files.push_back({*name, *hash, *size});
  }
  return manifest;
}

// The files that a seal covers, those of state/ with their folder's name.
std::vector<std::string> files_to_seal(const std::string& directory) {
  std::vector<std::string> names;
  for (const std::string& name : list_directory(directory)) {
    if (name != kStateFolder) {
      names.push_back(name);
      continue;
    }
    for (const std::string& inner : list_directory(path_join(directory, name))) names.push_back(str(name, "/", inner));
  }
  return names;
}

}  // namespace

std::string state_folder(const std::string& directory) {
  std::string inner = path_join(directory, kStateFolder);
  return is_directory(inner) ? inner : directory;
}

SealedFile seal_of(const std::string& directory, const std::string& name) {
  const std::string path = path_join(directory, name);
  const int64_t size = file_size(path);
  return {name, hash_of_file(path), size};
}

void seal_directory(const std::string& directory, int64_t step, std::span<const SealedFile> known) {
  OrderedJson json;
  json["format"] = kManifestFormat;
  json["step"] = step;
  json["files"] = OrderedJson::array();
  for (const SealedFile& file : known) {
    const std::string path = path_join(directory, file.name);
    if (exists(path) && file_size(path) == file.size) continue;
    throw Error(ErrorKind::io, str(path, ": not here with the ", file.size,
                                   " bytes that another process wrote; is it the same file system, and up to date?"));
  }
  for (const std::string& name : files_to_seal(directory)) {
    const auto found = std::ranges::find(known, name, &SealedFile::name);
    const SealedFile file = found == known.end() ? seal_of(directory, name) : *found;
    json["files"].push_back({{"name", name}, {"size", file.size}, {"xxh3_128", file.hash}});
  }
  std::string text = json_text(json, 2);
  text.resize(text.rfind("\n}"));  // reopened for the last key
  write_file(path_join(state_folder(directory), kManifestName), str(text, kSealSelf, hash_of_text(text), kSealTail));
}

SealCheck check_seal(const std::string& directory, bool deep,
                     const std::function<bool(const std::string& name)>& reads) {
  try {
    Manifest manifest = read_manifest(directory);
    if (!manifest.problem.empty()) return {manifest.problem, manifest.step};
    for (const SealedFile& entry : manifest.files) {
      std::string path = path_join(directory, entry.name);
      if (!exists(path)) return {str(printable(entry.name), " is missing"), manifest.step};
      int64_t size = file_size(path);
      if (size != entry.size) {
        return {str(printable(entry.name), " has ", size, " bytes, its manifest says ", entry.size), manifest.step};
      }
      if (deep && (!reads || reads(entry.name)) && hash_of_file(path) != entry.hash) {
        return {str(printable(entry.name), " is damaged (its hash differs from the manifest's)"), manifest.step};
      }
    }
    return {"", manifest.step};
  } catch (const Error& error) {
    return {error.what(), -1, error.exit_code() == kIoFailure};
  }
}

}  // namespace ucas
