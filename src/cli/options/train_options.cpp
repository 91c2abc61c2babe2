#include "cli/options/train_options.h"

#include "base/error.h"
#include "base/str.h"

namespace ucas {

void expand_short_forms(std::vector<Setting>& settings) {
  for (Setting& setting : settings) {
    if (setting.key == "data") setting.key = "data.files";
    if (setting.key == "val") setting.key = "data.val_files";
    if (setting.key == "method") setting.key = "method.name";
    if (setting.key == "preset") setting.key = "method.preset";
    if (setting.key == "bad_rows" || setting.key == "bad-rows") {
      const auto* word = std::get_if<std::string>(&setting.value);
      if (word == nullptr || (*word != "stop" && *word != "skip")) {
        throw Error(ErrorKind::config,
                    str(setting.where, word != nullptr ? " " + printable(*word, 100) : "", ": expected stop or skip"));
      }
      setting.key = "data.skip_bad_rows";
      setting.value = *word == "skip";
    }
    if (setting.key == "max-hours") setting.key = "train.max_hours";
  }
}

std::string take_option(std::vector<Setting>& settings, const std::string& key) {
  std::string value;
  std::erase_if(settings, [&](const Setting& s) {
    if (s.key != key) return false;
    if (s.no_value) throw Error(ErrorKind::usage, str(s.where, ": a value is missing after it"));
    value = std::get<std::string>(s.value);
    return true;
  });
  return value;
}

}  // namespace ucas
