#include "records/run/model_files.h"

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "hf/adapter.h"
#include "records/run/manifest.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

std::string tokenizer_directory(const RunDirectory& run, const std::string& from, const std::string& otherwise) {
  if (check_seal(run.model_files(), true).problem.empty()) return run.model_files();
  return exists(path_join(from, "tokenizer.json")) ? from : otherwise;
}

void keep_model_files(const RunDirectory& run, const std::string& from, const std::string& otherwise) {
  const std::string target = run.model_files(), temporary = path_join(run.path(), ".tmp-model_files");
  if (exists(target)) {
    SealCheck check = check_seal(target, true);
    if (check.problem.empty()) return;
    warn(str(target, ": ", check.problem, "; made again from ", from));
    remove_all(target);
  }
  if (exists(temporary)) remove_all(temporary);  // of a start that was killed
  make_directories(temporary);
  copy_tokenizer_files(tokenizer_directory(run, from, otherwise), temporary);
  for (const char* name : {"config.json", "generation_config.json"}) {
    const std::string source = path_join(directory_with(from, name), name);
    if (exists(source)) write_file(path_join(temporary, name), read_file(source));
  }
  seal_directory(temporary, 0);
  sync_directory(temporary);
  rename_path(temporary, target);
}

void check_model_files(const std::string& directory) {
  SealCheck check = check_seal(directory, true);
  if (check.problem.empty()) return;
  throw Error(ErrorKind::io,
              str(directory, ": ", check.problem, ": without it a checkpoint is no model; go on with --resume, which ",
                  "makes it again from the last checkpoint"),
              kIoFailure);
}

}  // namespace ucas
