// One declaration per option, many uses. A component's `struct Config` lists its fields once:
//
//   void fields(Fields& f) {
//     f.field("beta", beta, Range{0, 10}, "token certainty penalty (Eq. 10)");
//     f.section("optimizer", optimizer);
//   }
//
// and from that come: defaults, the TOML file, `--method.beta 0.02`, --help, range checks, the resolved dump.
// A later setting overrides an earlier one; an unknown key is an error that names the nearest one.
// Threads: one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace ucas {

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

class Fields {
 public:
  virtual ~Fields() = default;

  void field(const char* key, bool& value, const char* help) { visit(key, value, help); }
  void field(const char* key, int64_t& value, Range range, const char* help) { visit(key, value, range, help); }
  void field(const char* key, double& value, Range range, const char* help) { visit(key, value, range, help); }
  void field(const char* key, std::string& value, const char* help) { visit(key, value, help); }
  void field(const char* key, std::vector<std::string>& value, const char* help) { visit(key, value, help); }
  void field(const char* key, std::vector<int64_t>& value, Range range, const char* help) {
    visit(key, value, range, help);
  }

  // An enum whose enumerators 0, 1, 2 ... are called `names` in files and on the command line.
  template <class Enum>
  void choice(const char* key, Enum& value, std::initializer_list<const char*> names, const char* help) {
    int index = static_cast<int>(value);
    visit_choice(key, index, std::vector<std::string>(names.begin(), names.end()), help);
    value = static_cast<Enum>(index);
  }

  // A nested table: its keys become NAME.key.
  template <class Config>
  void section(const char* name, Config& config) {
    enter(name);
    config.fields(*this);
    leave();
  }

 protected:
  virtual void visit(const char* key, bool& value, const char* help) = 0;
  virtual void visit(const char* key, int64_t& value, Range range, const char* help) = 0;
  virtual void visit(const char* key, double& value, Range range, const char* help) = 0;
  virtual void visit(const char* key, std::string& value, const char* help) = 0;
  virtual void visit(const char* key, std::vector<std::string>& value, const char* help) = 0;
  virtual void visit(const char* key, std::vector<int64_t>& value, Range range, const char* help) = 0;
  virtual void visit_choice(const char* key, int& index, const std::vector<std::string>& names, const char* help) = 0;
  virtual void enter(const char* name) = 0;
  virtual void leave() = 0;
};

// One `key = value` from a file or the command line. From TOML the value has its type; from the command line it is
// text, read as whatever type the field has ("a,b" or a JSON-like [a, b] for lists).
using Words = std::vector<std::string>;  // what was typed, the command's name left out

struct Setting {
  std::string key;  // dotted: "method.beta"
  std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<int64_t>> value;
  std::string where;  // "run.toml:14" or "--method.beta"
  bool from_text = false;
};

// Throws Error("config", "FILE:LINE: ...") on anything that is not TOML.
std::vector<Setting> read_toml(const std::string& path);
std::vector<Setting> parse_toml(const std::string& text, const std::string& where);

// A command line split into positionals and --key value / --key=value settings. A key in `flags` takes no value.
struct CommandLine {
  std::vector<std::string> positionals;
  std::vector<Setting> settings;
  bool help = false;
};
CommandLine parse_command_line(const std::vector<std::string>& arguments, const std::vector<std::string>& flags);

using Fielder = void (*)(Fields&, void*);
// Type-erased core of the templates below.
void apply_settings(Fielder list, void* config, const std::vector<Setting>& settings, bool strict);
std::string dump_toml(Fielder list, void* config);
std::string help_text(Fielder list, void* config);
struct FieldValue {
  std::string key, value, help;
};
std::vector<FieldValue> list_fields(Fielder list, void* config);

template <class Config>
void apply(Config& config, const std::vector<Setting>& settings, bool strict = true) {
  apply_settings([](Fields& f, void* c) { static_cast<Config*>(c)->fields(f); }, &config, settings, strict);
}
// The whole config as TOML that reads back to the same values.
template <class Config>
std::string to_toml(Config config) {
  return dump_toml([](Fields& f, void* c) { static_cast<Config*>(c)->fields(f); }, &config);
}
// A line per option: --key VALUE, help, range or choices, default.
template <class Config>
std::string options_help(Config config) {
  return help_text([](Fields& f, void* c) { static_cast<Config*>(c)->fields(f); }, &config);
}
template <class Config>
std::vector<FieldValue> fields_of(Config config) {
  return list_fields([](Fields& f, void* c) { static_cast<Config*>(c)->fields(f); }, &config);
}

}  // namespace ucas
