#include "study/view.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"

namespace ucas {

namespace {

// Relative, so that a folder with both can be moved.
void link(const std::string& target, const std::string& at) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path home = fs::weakly_canonical(fs::path(at).parent_path(), error);
  fs::path to = fs::relative(fs::canonical(target, error), home, error);
  if (!error) fs::create_symlink(to, at, error);
  if (error) {
    throw Error(ErrorKind::io,
                str(printable(at, 400), ": cannot link to ", printable(target, 400), ": ", error.message()),
                kIoFailure);
  }
}

}  // namespace

void make_view(const RunView& view) {
  static const std::set<std::string> kOwn = {"config.toml", "eval", "done", "study.json"};
  remove_all(view.view);
  make_directories(path_join(view.view, "eval"));
  for (const std::string& name : list_directory(view.run)) {
    if (!kOwn.contains(name) && name[0] != '.') link(path_join(view.run, name), path_join(view.view, name));
  }
  std::string stored = path_join(view.run, "eval");
  for (const std::string& name : is_directory(stored) ? list_directory(stored) : std::vector<std::string>{}) {
    std::string shown;
    if (name.starts_with("step-")) shown = name;
    if (name.starts_with(view.stored_eval + ".")) shown = view.eval + name.substr(view.stored_eval.size());
    if (!shown.empty()) link(path_join(stored, name), path_join(view.view, path_join("eval", shown)));
  }
  if (!view.study_json.empty()) write_file(path_join(view.view, "study.json"), view.study_json);
  if (!view.config_toml.empty()) write_file(path_join(view.view, "config.toml"), view.config_toml);
}

}  // namespace ucas
