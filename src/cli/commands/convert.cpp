// `ucas convert`: a GGUF file as a checkpoint of Hugging Face's kind.
#include "base/error.h"
#include "base/files/output_directory.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "cli/command.h"
#include "cli/gguf_checkpoint.h"
#include "core/model_options.h"
#include "hf/parameters.h"
#include "text/tokenizer/tokenizer.h"

namespace ucas {

namespace {

struct ConvertOptions {
  Dtype dtype = Dtype::f32;
  int64_t shard_mb = 5120;
  void fields(Fields& f) {
    f.choice("dtype", dtype, "dtype of the written weights; f32 keeps every value as in the file");
    f.field("shard_mb", shard_mb, Range{1, 1e6},
            "maximum MiB of weights per file; larger checkpoints are split into several files");
  }
};

// Whether what was written is a checkpoint: by the readers of the other commands.
void check_written(const std::string& directory) {
  const ModelConfig config = read_model_config(directory);
  check_parameters(config, stored_by_name(list_weights(directory), directory), directory);
  const Tokenizer tokenizer = Tokenizer::load(directory);
  check_vocabulary(tokenizer.vocab_size(), tokenizer.directory(), config);
}

}  // namespace

std::string options_convert() { return options_help(ConvertOptions{}); }

int run_convert(const Words& words) {
  const CommandLine line = parse_command_line(words, {});
  ConvertOptions options;
  ucas::apply(options, line.settings);
  if (line.positionals.size() != 2)
    throw Error(ErrorKind::usage, "give a GGUF file and the directory to make: ucas convert FILE.gguf DIR");
  const std::string &from = line.positionals[0], &to = line.positionals[1];
  check_output(to);
  const double began = now_seconds();
  const GgufCheckpoint checkpoint(from, options.dtype == Dtype::f32 ? "float32" : "bfloat16");
  OutputDirectory partial(to);
  write_model_config(checkpoint.config, partial.path());
  save_tokenizer(checkpoint.tokenizer, partial.path());
  try {
    Tokenizer::load(partial.path());  // before the weights, which take longer
    write_weights(partial.path(), checkpoint.weights, checkpoint.config.torch_dtype, options.shard_mb << 20);
    check_written(partial.path());
  } catch (const Error& error) {  // the temporary directory has another name
    std::string message = error.what();
    const size_t at = message.find(partial.path());
    if (at != std::string::npos) message.replace(at, partial.path().size(), str(printable(from, 400), ", converted"));
    throw Error(error.kind(), message, error.exit_code());
  }
  partial.put_in_place();
  const ModelConfig& config = checkpoint.config;
  log(str("convert: ", to, ": ", config.family->title, ", ", config.num_hidden_layers,
          config.num_hidden_layers == 1 ? " layer, " : " layers, ", grouped(config.parameter_count()),
          " parameters in ", config.torch_dtype, ", ",
          checkpoint.tokenizer.chat_template.empty() ? "no chat template" : "with its chat template", " (",
          human_seconds(now_seconds() - began), ")"));
  return kDone;
}

}  // namespace ucas
