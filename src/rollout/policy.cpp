#include "rollout/policy.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/files/file.h"
#include "base/process/machine.h"
#include "base/str.h"
#include "hf/peft.h"
#include "model/tensor/cuda_library.h"
#include "model/tensor/stream.h"
#include "text/stop_texts.h"

namespace ucas {

std::vector<int32_t> collect_stop_ids(const ModelConfig& config, const Tokenizer& tokenizer,
                                      std::span<const int32_t> template_stops) {
  std::vector<int32_t> ids = config.eos_token_id;
  for (int32_t id : tokenizer.eos_ids()) ids.push_back(id);
  ids.insert(ids.end(), template_stops.begin(), template_stops.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string response_text(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> known;
  const int64_t vocabulary = tokenizer.vocab_size();
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(known), [&](int32_t id) { return id < vocabulary; });
  return tokenizer.decode(known, true);
}

std::string graded_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, bool finished,
                        std::span<const int32_t> stop_ids) {
  const bool by_token = finished && !ids.empty() && std::ranges::find(stop_ids, ids.back()) != stop_ids.end();
  return response_text(tokenizer, by_token ? ids.first(ids.size() - 1) : ids);
}

std::function<bool(const Episode&)> ends_at(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  if (texts.empty()) return nullptr;
  return [stop = StopTexts(tokenizer, texts)](const Episode& s) { return stop.end(s.token); };
}

namespace {

int built_for() {
  const auto& hooks = at::detail::getCUDAHooks();
  return hooks.hasCUDART() ? static_cast<int>(hooks.versionCUDART()) : 0;
}

std::string cuda_version(int version) { return str(version / 1000, ".", version % 1000 / 10); }

}  // namespace

std::string no_cuda_device(int built_for, int driver) {
  if (built_for == 0) {
    return driver == 0 ? "this LibTorch is a build for CPUs"
                       : str("this LibTorch is a build for CPUs, and the driver is for CUDA ", cuda_version(driver),
                             ": install a build of LibTorch for CUDA ", driver / 1000);
  }
  const std::string own = str("this LibTorch is for CUDA ", cuda_version(built_for));
  if (driver == 0) return own + ", and there is no NVIDIA driver (libcuda.so.1)";
  if (driver / 1000 < built_for / 1000) {
    return str(own, " and the driver for CUDA ", cuda_version(driver), ": update the driver to one for CUDA ",
               built_for / 1000, ".0 or later, or install a LibTorch for CUDA ", driver / 1000);
  }
  return str(own, " and the driver for CUDA ", cuda_version(driver),
             ", and it shows no device; look at nvidia-smi and at CUDA_VISIBLE_DEVICES");
}

std::string cuda_in_words(int built_for, bool kernels, std::optional<bool> nccl) {
  if (built_for == 0) return "none: this LibTorch is a build for CPUs";
  const std::string libtorch = str("LibTorch for CUDA ", cuda_version(built_for));
  if (!kernels) return libtorch + ", no kernels: built without nvcc; GPUs take LibTorch's operations, which are slower";
  if (!nccl) return libtorch + ", kernels; no GPU is usable here";
  return libtorch +
         (*nccl ? ", kernels, NCCL" : ", kernels, no NCCL: built without nccl.h; several GPUs exchange by their hosts");
}

std::string cuda_in_words() {
  std::optional<bool> nccl;
  if (cuda_library() != nullptr) nccl = cuda_symbol("ucas_make_device_group") != nullptr;
  return cuda_in_words(built_for(), exists(cuda_library_path()), nccl);
}

at::Device parse_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  int index = 0;
  if (name.starts_with("cuda:")) {
    const std::string digits = name.substr(5);
    if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) {
      throw Error(ErrorKind::config, str("device = \"", printable(name), "\": expected cpu, cuda or cuda:N"));
    }
    index = std::stoi(digits);
  } else if (name != "cuda") {
    throw Error(ErrorKind::config, str("device = \"", printable(name), "\": expected cpu, cuda or cuda:N"));
  }
  const int64_t there = visible_cuda_devices();
  if (index >= there) {
    throw Error(ErrorKind::config, str("device = \"", name, "\": ",
                                       there == 0 ? str("no CUDA device is usable here (",
                                                        no_cuda_device(built_for(), cuda_driver_version()), ")")
                                                  : str("there are ", there, " CUDA devices, numbered from 0"),
                                       "; use device = \"cpu\""));
  }
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
  make_current(device);
  // Sums are f32 in split GEMMs, too: cuBLAS may else add the parts in bf16 (docs/numerics.md).
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  return device;
}

int64_t visible_cuda_devices() { return at::globalContext().hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0; }

std::string device_of_rank(const std::string& device, int64_t local, int64_t visible) {
  if (device != "cuda" || visible < 2) return device;  // one is this rank's own, or all share it
  if (local < visible) return str("cuda:", local);
  throw Error(ErrorKind::config,
              str("device = \"cuda\": rank number ", local, " of this host, counted from 0, has no CUDA device: ",
                  visible, " are visible; start one process for each device, or name one with --device cuda:N"));
}

// torchrun sets OMP_NUM_THREADS=1 where it is not set.
bool cores_are_divided(int64_t threads) {
  const char* omp = std::getenv("OMP_NUM_THREADS");
  const bool chosen = omp != nullptr && (std::strcmp(omp, "1") != 0 || std::getenv("TORCHELASTIC_RUN_ID") == nullptr);
  return threads == 0 && cores_are_shared() && !chosen;
}

void use_threads(int64_t threads) {
  if (cores_are_divided(threads)) threads = usable_cores();
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
}

void check_vocabulary(const Tokenizer& tokenizer, const ModelConfig& config) {
  check_vocabulary(tokenizer.vocab_size(), tokenizer.directory(), config);
}

Policy open_policy(const std::string& directory, at::Device device, const ModelOptions& options,
                   const std::string& tokenizer_from, const KeptMasters& masters) {
  const ModelConfig config = read_model_config(directory);  // first: a model that does not run is refused by its name
  Tokenizer tokenizer =
      Tokenizer::load(tokenizer_from.empty() ? directory_with(directory, "tokenizer.json") : tokenizer_from);
  check_vocabulary(tokenizer, config);
  return {load_model(directory, device, options, masters), std::move(tokenizer)};
}

}  // namespace ucas
