#include <ATen/core/Tensor.h>

#include "base/error.h"
#include "base/files/output_directory.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "config/policy_options.h"
#include "hf/adapter.h"
#include "hf/hub.h"
#include "hf/peft.h"
#include "model/model.h"

namespace ucas {

int run_merge(const Words& words) {
  const PolicyLine line = read_policy_line(words, {});
  MergeOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 1)
    throw Error(ErrorKind::usage, "give one adapter directory; see `ucas merge --help`");
  if (options.out.empty()) throw Error(ErrorKind::usage, "--out DIR is missing: where the whole checkpoint goes");
  const std::string directory = checkpoint_directory(line.positionals[0]);
  if (!find_adapter(directory)) {
    throw Error(ErrorKind::path, str(printable(directory, 400),
                                     ": no adapter_config.json there: expected the directory of a "
                                     "PEFT adapter"));
  }
  check_output(options.out);
  std::unique_ptr<Model> model = load_model(directory, at::kCPU, inference(Dtype::f32));
  model = model->merged();
  OutputDirectory partial(options.out);
  save_model(*model, partial.path(), directory_with(directory, "tokenizer.json"));
  partial.put_in_place();
  log(str("merge: ", options.out, ": ", grouped(model->config().parameter_count()), " parameters in ",
          model->config().torch_dtype));
  return kDone;
}

}  // namespace ucas
