#include <ATen/core/Tensor.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "hf/hub.h"
#include "hf/peft.h"
#include "model/model.h"

namespace ucas {

// `ucas export ADAPTER --out OUT`: the words are these two.
int run_merge(const Words& words) {
  const std::string &directory = words[0], &out = words[1];
  std::unique_ptr<Model> model = load_model(directory, at::kCPU, inference(Dtype::f32));
  model = model->merged();
  OutputDirectory partial(out);
  save_model(*model, partial.path(), directory_with(directory, "tokenizer.json"));
  partial.put_in_place();
  log(str("export: ", out, ": ", grouped(model->config().parameter_count()), " parameters in ",
          model->config().torch_dtype));
  return kDone;
}

}  // namespace ucas
