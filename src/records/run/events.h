// The numbers of steps.jsonl for TensorBoard: RUN/tensorboard/events.out.tfevents.*.ucas, scalars of the same names in
// the precision of a float. Each start of a training opens a file of its own. What a resumed run makes again is cut
// from the files before, and the new one says so: a TensorBoard that is watching forgets these steps, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/files/file.h"

namespace ucas {

// A file that cannot be written is no reason to lose a run: it is warned of, and left as it is.
class EventFile {
 public:
  // For steps from `first` on; made with the first of them.
  EventFile(std::string folder, int64_t first) : folder_(std::move(folder)), first_(first) {}
  void append(int64_t step, std::span<const std::pair<std::string, double>> values);
  void sync();

 private:
  void open();
  void attempt(const std::function<void()>& write);
  std::string folder_;
  int64_t first_;
  std::unique_ptr<FileWriter> file_;
  bool failed_ = false;
};

// Removes the events of steps after `step`, and a torn last one, from all such files of a folder.
void cut_events(const std::string& folder, int64_t step);

}  // namespace ucas
