// Independent work shared out among threads that live for this call alone: none before the first call and none after
// it, so that a process may fork between two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace ucas {

// work(first, last) for neighbouring blocks of [0, count), `block` at a time, to whichever thread is free; the caller
// is one of them. What the blocks compute must not depend on who takes them. 0 threads: all that this process may use.
// What a block throws ends the others' taking of blocks, and is thrown here; the first one where several throw.
void share_out(size_t count, size_t block, int64_t threads, const std::function<void(size_t first, size_t last)>& work);

}  // namespace ucas
