// `ucas track RUN --to NAME`: python/ucas/track.py, which is compiled in, under the user's Python takes this process
// over.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/process/python_child.h"
#include "base/str.h"
#include "cli/command.h"

namespace ucas {

namespace {

struct TrackOptions {
  std::string to, project = "ucas", name;
  double follow = 0;
  void fields(Fields& f) {
    f.field("to", to, "tracker: wandb, mlflow, trackio or tensorboard, whose Python package must be installed");
    f.field("project", project, "project or experiment that the tracker files the run under");
    f.field("name", name, "name of the run there; empty = the directory's");
    f.field("follow", follow, Range{0, 1e9},
            "seconds without a new step until the command ends; 0 = send what is there");
  }
};

}  // namespace

std::string options_track() { return options_help(TrackOptions{}); }

int run_track(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  TrackOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 1)
    throw Error(ErrorKind::usage, "track: expected one run directory; see `ucas track --help`");
  if (options.to.empty())
    throw Error(ErrorKind::usage, "track: --to NAME is missing: wandb, mlflow, trackio or tensorboard");
  std::vector<std::string> arguments = {line.positionals[0], "--to",     options.to,         "--project",
                                        options.project,     "--follow", str(options.follow)};
  if (!options.name.empty()) arguments.insert(arguments.end(), {"--name", options.name});
  std::vector<std::string> child = python_words("track", arguments);
  std::vector<char*> argv;
  for (std::string& word : child) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  throw Error(ErrorKind::python, str("track: ", printable(child[0], 200), " cannot be started: ", std::strerror(errno),
                                     "; UCAS_PYTHON names the Python to take"));
}

}  // namespace ucas
