// The problems of a study on a checkpoint that come from tasks for pretrained models (base.tasks), made once in its
// pool:
//   POOL/tasks-HASH/NAME/{train,dev,test,shots}.jsonl   as `ucas make-task` writes them
//   POOL/tasks-HASH/shots.jsonl                         worked examples of every task, in turn: before each question
//   POOL/tasks-HASH/demonstrations.jsonl                500 of them {prompt, response}, for a warm-up
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/config.h"

namespace ucas {

// Of the options: the same options make the same bytes.
std::string text_tasks_hash(const StudyBase& base);
std::vector<std::string> text_task_files(const StudyBase& base, const std::string& home, const char* file);
std::string text_task_shots(const std::string& home);
int64_t count_of_shots(const StudyBase& base);
// "countdown=countdown": of tasks whose grader is not that of mathematics, as reward.graders has them.
std::vector<std::string> text_task_graders(const StudyBase& base);
// Unless they are there. The caller holds the lock of `home`.
void make_text_tasks(const StudyBase& base, const std::string& home);
// base.warm_up updates from base.model on the demonstrations, written to `model` whole; goes on where it was ended.
void warm_up_base(const StudyBase& base, const std::string& home, const std::string& model, const std::string& device,
                  int64_t threads);

}  // namespace ucas
