// `ucas study NAME --check`: every config read and checked, every run that would be made named. Starts nothing.
#include <set>

#include "base/files/file.h"
#include "base/str.h"
#include "results/table.h"
#include "study/engine/plan.h"

namespace ucas {

namespace {

std::string state_of(const StudyTask& task) {
  if (exists(path_join(task.path, str("eval/", task.evaluation.name, ".json")))) return "done";
  if (exists(path_join(task.path, "done"))) return "trained, to be evaluated";
  return exists(path_join(task.path, "steps.jsonl")) ? "begun" : "to do";
}

}  // namespace

std::string check_study(const StudyPlan& plan) {
  const StudyConfig& c = plan.config();
  std::string text = str("study ", plan.study().name, ": ", c.title, " (", join(c.kind, ", "), ")\n");
  for (const StudyStart& start : plan.starts()) {
    const bool there = exists(path_join(start.model, "config.json"));
    text += str("base ", start.model, there ? "" : ", to be made", "\n");
  }
  std::set<std::string> seen;
  int64_t todo = 0;
  Table table{.align = "l"};
  for (const StudyTask& task : plan.tasks()) {
    const TrainConfig& t = task.train;
    const bool first = seen.insert(task.path).second;
    const std::string state = first ? state_of(task) : "the run of a row above";
    const std::string length = t.train.steps > 0 ? many(t.train.steps, "step") : many(t.train.epochs, "epoch");
    table.add({task.id, task.title, str(length, " of ", t.gen_batch(), " x ", t.rollout.n), task.path, state});
    todo += first && state != "done";
  }
  return str(text, "\n", table.text(), "\n", seen.size(), " runs, ", todo, " to do, with ",
             many(plan.threads(), "thread"), "\nresults ", path_join(c.out, "results.md"),
             "\nEvery config was read; nothing was started.\n");
}

}  // namespace ucas
