#include "base/error.h"
#include "base/str.h"
#include "gpu/table.inc"

namespace ucas::gpu {

void check_grid(const char* kernel, Grid grid) {
  if (grid.x <= kMostBlocks.x && grid.y <= kMostBlocks.y && grid.z <= kMostBlocks.z) return;
  throw Error(ErrorKind::device, str("kernel ", kernel, ": ", grid.x, " x ", grid.y, " x ", grid.z,
                                     " thread blocks, at most ", kMostBlocks.x, " x ", kMostBlocks.y, " x ",
                                     kMostBlocks.z, "; fewer rows at once need fewer (update.micro_batch_tokens)"));
}

const Table& host() {
  static const Table table = UCAS_GPU_TABLE("host");
  return table;
}

}  // namespace ucas::gpu
