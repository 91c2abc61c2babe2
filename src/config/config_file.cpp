#include "config/config_file.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "config/train_config.h"

namespace ucas {

namespace {

constexpr const char* kTable = "\n[config.";
constexpr size_t kDeepest = 16;  // files on top of each other

// Of one embedded config: the file that holds it, and its own lines there; empty where the file is the config.
struct Place {
  std::string stem, own;
};

const std::map<std::string, Place>& places() {
  static const std::map<std::string, Place> all = [] {
    std::map<std::string, Place> found;
    for (const std::string& stem : embedded_stems("configs/")) {
      const std::string text(*embedded(str("configs/", stem, ".toml")));
      size_t at = text.find(kTable);
      if (at == std::string::npos) found[stem] = {stem, ""};
      while (at != std::string::npos) {
        const size_t end = text.find("]\n", at), next = text.find(kTable, end);
        std::string name = text.substr(at + std::string(kTable).size(), end - at - std::string(kTable).size());
        std::erase(name, '"');
        found[name] = {stem, text.substr(end + 2, next == std::string::npos ? next : next - end - 2)};
        at = next;
      }
    }
    return found;
  }();
  return all;
}

// Where the comment of `line` begins, outside of quotes; npos if it has none.
size_t comment_at(const std::string& line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == '#' && !quoted) return i;
  }
  return std::string::npos;
}

std::string section_of(const std::string& key) { return key.substr(0, key.find('.') + 1); }

// The place of a section among those of a training; keys of none come first.
int64_t rank_of(const ConfigValue& value) {
  static const std::map<std::string, int64_t> ranks = [] {
    const std::vector<FieldValue> fields = fields_of(TrainConfig{});
    std::map<std::string, int64_t> first;
    for (const FieldValue& field : fields) first.try_emplace(section_of(field.key), std::ssize(first));
    return first;
  }();
  const auto found = ranks.find(section_of(value.key));
  return found == ranks.end() ? std::ssize(ranks) : found->second;
}

// The comments and values of `toml`, on top of what `file` has.
void add_values(ConfigFile& file, const std::string& toml) {
  std::string section, about;
  std::map<std::string, size_t> at;  // by key
  for (size_t i = 0; i < file.values.size(); ++i) at[file.values[i].key] = i;
  bool opening = true;
  for (const std::string& line : split(toml, '\n')) {
    const std::string_view text = trim(line), whole = line;
    if (opening && text.starts_with('#')) {
      about += str(about.empty() ? "" : " ", trim(text.substr(1)));
      continue;
    }
    opening = false;
    if (text.starts_with('[') && text.ends_with(']')) section = str(text.substr(1, text.size() - 2), ".");
    const size_t equals = line.find('='), comment = std::min(comment_at(line), line.size());
    if (text.starts_with('#') || equals >= comment) continue;
    std::string key = section + std::string(trim(whole.substr(0, equals)));
    if (key == "extends") continue;
    const std::string_view source = comment < line.size() ? trim(whole.substr(comment + 1)) : "";
    const size_t place = at.try_emplace(key, file.values.size()).first->second;
    if (place == file.values.size()) file.values.emplace_back();
    file.values[place] = {std::move(key), std::string(trim(whole.substr(equals + 1, comment - equals - 1))),
                          std::string(source)};
  }
  if (!about.empty()) file.about = about;
  std::ranges::stable_sort(file.values, {}, rank_of);
}

[[noreturn]] void refuse_name(const std::string& name) {
  const std::vector<std::string> names = config_names();
  std::vector<std::string> own;  // of the method that was named
  for (const std::string& known : names) {
    if (known.starts_with(name + "-")) own.push_back(known);
  }
  const std::string instead = own.empty() ? str(did_you_mean(name, names), "; `ucas config` lists all ", names.size())
                                          : str("; of that method there are ", join(own, ", "), ", and --method ", name,
                                                " takes the method alone");
  throw Error(ErrorKind::path, str(printable(name), ": neither a file nor one of the embedded configs", instead));
}

// One file and all that it extends.
class Reader {
 public:
  ConfigFile read(const std::string& path_or_name) {
    const bool file =
        exists(path_or_name) || path_or_name.find('/') != std::string::npos || path_or_name.ends_with(".toml");
    return file ? read_text(read_file(path_or_name, 4 << 20), path_or_name, {}, false) : read_embedded(path_or_name);
  }

 private:
  ConfigFile read_embedded(const std::string& name) {
    const auto place = places().find(name);
    if (place == places().end()) return read_head(name);
    const std::string& own = place->second.own;
    if (own.empty()) return read_head(place->second.stem);
    const bool on_head = !own.starts_with("extends") && own.find("\nextends") == std::string::npos;
    return read_text(own, name + ".toml", on_head ? read_head(place->second.stem) : ConfigFile{}, true);
  }

  // What the configs of a file have in common.
  ConfigFile read_head(const std::string& stem) {
    const auto text = embedded(str("configs/", stem, ".toml"));
    if (!text) refuse_name(stem);
    return read_text(std::string(text->substr(0, text->find(kTable))), stem + ".toml", {}, true);
  }

  // `text` on top of what it extends, or of `file`.
  ConfigFile read_text(const std::string& text, const std::string& where, ConfigFile file, bool is_embedded) {
    std::vector<Setting> own = parse_toml(text, where);
    const auto extends = std::ranges::find(own, "extends", &Setting::key);
    if (extends != own.end()) {
      const auto* base = std::get_if<std::string>(&extends->value);
      if (base == nullptr) throw Error(ErrorKind::config, str(extends->where, ": extends: expected a name or a path"));
      open_.push_back(where);
      file = is_embedded ? read_embedded(*base) : read_base(*base, *extends);
      open_.pop_back();
      own.erase(extends);
    }
    file.settings.insert(file.settings.end(), own.begin(), own.end());
    add_values(file, text);
    return file;
  }

  // Of a user's file: a file next to it goes before an embedded name.
  ConfigFile read_base(const std::string& base, const Setting& extends) {
    const std::string folder = open_.back().substr(0, open_.back().rfind('/') + 1);
    const std::string found = exists(folder + base) ? folder + base : base;
    if (std::ranges::find(open_, found) != open_.end() || open_.size() > kDeepest) {
      throw Error(ErrorKind::config, str(extends.where, ": extends = \"", printable(base),
                                         "\" leads back to a file that is being read: a config cannot extend itself"));
    }
    try {
      return read(found);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::path || open_.size() > 1) throw;
      throw Error(ErrorKind::path, str(extends.where, ": extends: ", error.what()));
    }
  }

  std::vector<std::string> open_;  // those whose base is being read
};

}  // namespace

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const auto& [name, place] : places()) names.push_back(name);
  return names;
}

ConfigFile read_config(const std::string& path_or_name) { return Reader().read(path_or_name); }

std::vector<Setting> read_config_file(const std::string& path_or_name) { return read_config(path_or_name).settings; }

std::string config_text(const ConfigFile& file) {
  std::string text = str("# ", wrap_text(file.about, 118, 0, 0)), section;
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) text.insert(at + 1, "# ");
  text += "\n";
  if (!file.values.empty() && section_of(file.values[0].key).empty()) text += "\n";
  for (const ConfigValue& v : file.values) {
    const std::string of = section_of(v.key);
    if (of != section) text += str("\n[", of.substr(0, of.size() - 1), "]\n");
    section = of;
    const std::string line = str(v.key.substr(of.size()), " = ", v.value);
    text += v.source.empty() ? line + "\n" : str(pad_right(line, 29), " # ", v.source, "\n");
  }
  return text;
}

}  // namespace ucas
