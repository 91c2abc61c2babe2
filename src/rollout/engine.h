// The rollout engine: continuous batching over a KV cache. Every prompt is prefilled once; the slots of its n samples
// read its keys and values there (on the CPU; elsewhere copies), and one whose response ends is refilled before the
// next. Fed by train/collect, evaluate and `ucas generate`; reads a Model (borrowed) with its weights of the moment.
// Determinism: on the CPU the result depends on (weights, jobs, sampling, seed, step) alone, not on slots, prefill
// packing, admission order or threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/model.h"
#include "rollout/rollouter.h"
#include "sampling/config.h"

namespace ucas {

std::unique_ptr<Rollouter> make_engine(Model& model, EngineConfig config = {});

}  // namespace ucas
