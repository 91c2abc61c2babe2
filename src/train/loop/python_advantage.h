// Advantages by a Python function (method.python) in the place of the method's: the leader's child is called once a
// step, one line with all that a method may read of the step, and answers with a number for each token
// (python/ucas/advantage.py). Whatever goes wrong there is Error(ErrorKind::reward, exit 74), as of a reward from
// outside.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/process/line_child.h"
#include "core/batch.h"
#include "data/problems.h"
#include "sharding/ranks.h"

namespace ucas {

class PythonAdvantages {
 public:
  // `function`: FILE.py:FUNCTION. The child is the leader's alone.
  PythonAdvantages(std::string function, double seconds, Ranks& ranks);
  // [N], 0 in masked responses. `own`: the method's, which the function may read.
  std::vector<float> ask(int64_t step, const Batch& batch, const std::vector<Problem>& problems,
                         const std::vector<float>& own);

 private:
  const std::string name_;
  Ranks& ranks_;
  std::unique_ptr<LineChild> child_;
};

// The line that asks, and what an answer says; for tests, too.
std::string advantage_line(int64_t step, const Batch& batch, const std::vector<Problem>& problems,
                           const std::vector<float>& own);
std::vector<float> parse_advantages(const std::string& line, const Batch& batch, const std::string& name);

}  // namespace ucas
