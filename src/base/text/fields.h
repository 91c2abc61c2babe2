// One declaration per option, many uses. A component's `struct Config` lists its fields once:
//
//   void fields(Fields& f) {
//     f.field("beta", beta, Range{0, 10}, "token certainty penalty (Eq. 10)");
//     f.section("optimizer", optimizer);
//   }
//
// and from that come: defaults, the TOML file, `--method.beta 0.02`, --help, range checks, the resolved dump, and who
// must care for the option (Effect). A later setting overrides an earlier one; an unknown key is an error that names
// the nearest one.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ucas {

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

// What an option of a run can change, from all of it to nothing. Set where the option is declared; code that needs to
// know which options matter asks the three questions below and keeps no list of keys:
//
//                 a departure from  separates   must be the same
//                 a method          two runs    on resume
//   result        yes               yes         yes     what is learnt
//   size          yes, of size      yes         yes     how much of it: batches, lengths, responses, steps
//   procedure     no                yes         yes     micro-batches (some methods choose within one), validation
//   place         no                no          yes     paths, sources, random numbers: known by hashes and seed
//   bookkeeping   no                no          no      nothing: what is written down, when a run stops
enum class Effect { result, size, procedure, place, bookkeeping };
constexpr bool is_departure(Effect effect) { return effect <= Effect::size; }           // `ucas explain`
constexpr bool tells_runs_apart(Effect effect) { return effect <= Effect::procedure; }  // a study's pool, the report
constexpr bool is_fixed(Effect effect) { return effect <= Effect::place; }              // --resume

// The words of an enum are declared next to it: constexpr std::array<const char*, 2> names(Colour) { return {"red",
// "green"}; } Enumerators count from 0. This is the word of one of them.
template <class Enum>
constexpr const char* word_of(Enum value) {
  return names(Enum{})[static_cast<size_t>(value)];
}

// What the text of an option names, for who looks it up (hf/hub.h) or completes it in a shell.
enum class OptionNames { nothing, checkpoint, tokenizer, training_data, evaluation_data };

// One option, as a visitor of the fields sees it.
struct OptionField {
  struct Choice {
    int* index;
    std::vector<std::string> words;
  };
  const char* key;
  std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*, std::vector<int64_t>*, Choice> value;
  const char* help;
  Effect effect;
  Range range;  // of numbers, and of each number of a list
  OptionNames names = OptionNames::nothing;
};

class Fields {
 public:
  virtual ~Fields() = default;

  template <class Value>
  void field(const char* key, Value& value, const char* help, Effect effect = Effect::result) {
    visit({key, &value, help, effect, {}});
  }
  // A text or a list of texts that are paths of files.
  template <class Value>
  void field(const char* key, Value& value, OptionNames names, const char* help, Effect effect = Effect::result) {
    visit({key, &value, help, effect, {}, names});
  }
  template <class Value>
  void field(const char* key, Value& value, Range range, const char* help, Effect effect = Effect::result) {
    visit({key, &value, help, effect, range});
  }

  // An enum by its names(), or the first `offered` of them.
  template <class Enum>
  void choice(const char* key, Enum& value, const char* help, Effect effect = Effect::result,
              size_t offered = names(Enum{}).size()) {
    const auto words = names(Enum{});
    pick(key, value, {words.begin(), words.begin() + offered}, help, effect);
  }
  // One whose enumerators 0, 1, 2 ... are called `words` here alone.
  template <class Enum>
  void choice(const char* key, Enum& value, std::initializer_list<const char*> words, const char* help,
              Effect effect = Effect::result) {
    pick(key, value, {words.begin(), words.end()}, help, effect);
  }

  // A nested table: its keys become NAME.key.
  template <class Config>
  void section(const char* name, Config& config) {
    enter(name);
    config.fields(*this);
    leave();
  }

 protected:
  virtual void visit(const OptionField& field) = 0;
  virtual void enter(const char* name) = 0;
  virtual void leave() = 0;

 private:
  template <class Enum>
  void pick(const char* key, Enum& value, std::vector<std::string> words, const char* help, Effect effect) {
    int index = static_cast<int>(value);
    visit({key, OptionField::Choice{&index, std::move(words)}, help, effect, {}});
    value = static_cast<Enum>(index);
  }
};

using Words = std::vector<std::string>;  // what was typed, the command's name left out

// One `key = value` from a file or the command line. From TOML the value has its type; from the command line it is
// text, read as whatever type the field has ("a,b" or a JSON-like [a, b] for lists).
struct Setting {
  std::string key;  // dotted: "method.beta"
  std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<int64_t>> value;
  std::string where;  // "run.toml:14" or "--method.beta"
  bool from_text = false;
  bool no_value = false;  // the last word of a command line, and no flag
};

const std::string& text_of(const Setting& setting);  // Error(ErrorKind::config, "FILE:LINE: KEY: ..") of another value

// Throws Error(ErrorKind::config, "FILE:LINE: ...") on anything that is not TOML.
std::vector<Setting> read_toml(const std::string& path);
std::vector<Setting> parse_toml(const std::string& text, const std::string& where);

// A command line split into positionals and --key value / --key=value settings. A key in `flags` takes no value.
struct CommandLine {
  std::vector<std::string> positionals;
  std::vector<Setting> settings;
  bool help = false;
};
CommandLine parse_command_line(const std::vector<std::string>& arguments, const std::vector<std::string>& flags);

// What options and their values are called in TRL and verl (peer_words.txt), for the hint of an unknown one.
// The key among `keys` that the option of another program means, by the last part of its name; "" where there is none.
std::string peer_option(std::string_view key, const std::vector<std::string>& keys);
// "bf16" for "bfloat16"; "" where it is no such word, or not among `words`.
std::string peer_value(std::string_view value, const std::vector<std::string>& words);

using Fielder = void (*)(Fields&, void*);
// Type-erased core of the templates below.
void apply_settings(Fielder list, void* config, const std::vector<Setting>& settings, bool strict);
std::string dump_toml(Fielder list, void* config);
std::string help_text(Fielder list, void* config);
struct FieldValue {
  std::string key, value, help;
  Effect effect = Effect::result;
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
