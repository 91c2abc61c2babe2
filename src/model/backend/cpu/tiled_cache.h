// Keys and values on the CPU, as kernels::Attend reads them: keys [layer][sequence][kv head][tile][d][16] and values
// [layer][sequence][kv head][token][stride]. If the capacity says so, the whole tiles of a prompt are in a place of
// their own, which belongs to the prompt's slot and to all that it was copied to, and is free when the last of them is
// released; the tile in which the prompt ends, and what follows, is each response's own.
#pragma once

#include <cstring>
#include <vector>

#include "base/error.h"
#include "model/backend/block.h"
#include "model/model.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

template <class E>
class TiledCache final : public KvCache {
 public:
  TiledCache(const BlockShape& s, const KvBudget& room)
      : length_(room.length),
        layers_(s.config.num_hidden_layers),
        K_(s.K),
        d_(s.d),
        stride_(s.stride),
        own_slots_(room.shares() ? room.slots : room.slots + room.prompt_slots),
        own_(16 * kernels::tiles_of(room.shares() ? room.own : room.length)),
        of_prompt_(16 * kernels::tiles_of(room.prompt)),
        tokens_(room.held()),
        held_(static_cast<size_t>(room.slots + room.prompt_slots)),
        users_(static_cast<size_t>(room.prompts)) {
    for (int64_t prompt = room.prompts; prompt-- > 0;) free_.push_back(prompt);
    key_ = rows_of<E>(layers_ * K_ * tokens_, d_);
    value_ = rows_of<E>(layers_ * K_ * tokens_, stride_);
  }
  int64_t slots() const override { return static_cast<int64_t>(held_.size()); }
  int64_t length() const override { return length_; }

  void copy(int64_t from_slot, int64_t to_slot, int64_t tokens) override {
    UCAS_CHECK(from_slot >= 0 && from_slot < slots() && to_slot >= 0 && to_slot < own_slots_ && tokens <= length_,
               "copying inside the cache");
    release(to_slot);
    const Held& from = held_[from_slot];
    const int64_t shared = from_slot < own_slots_ ? from.shared : tokens / 16 * 16;
    if (shared > 0) {
      held_[to_slot] = {from.prompt, shared};
      ++users_[from.prompt];
    }
    const KvAddress source = address(from_slot, shared), target = address(to_slot, shared);
    const size_t key_bytes = kernels::tiles_of(tokens - shared) * 16 * d_ * sizeof(E);
    const size_t value_bytes = (tokens - shared) * stride_ * sizeof(E);
    for (int64_t layer = 0; layer < layers_; ++layer)
      for (int64_t head = 0; head < K_; ++head) {
        std::memcpy(key(layer) + target.key_at(head, shared, d_), key(layer) + source.key_at(head, shared, d_),
                    key_bytes);
        std::memcpy(value(layer) + target.value_at(head, shared, stride_),
                    value(layer) + source.value_at(head, shared, stride_), value_bytes);
      }
  }
  void release(int64_t slot) override {
    if (held_[slot].prompt >= 0 && --users_[held_[slot].prompt] == 0) free_.push_back(held_[slot].prompt);
    held_[slot] = {};
  }
  // Before a slot is filled from its first token on.
  void begin(int64_t slot, int64_t tokens) {
    release(slot);
    UCAS_CHECK(tokens <= (slot < own_slots_ ? own_ : of_prompt_), "the sequence must fit its cache slot");
    if (slot < own_slots_) return;
    UCAS_CHECK(!free_.empty(), "the KV cache needs a slot per active prompt and per waiting prompt");
    held_[slot].prompt = free_.back();
    free_.pop_back();
    users_[held_[slot].prompt] = 1;
  }

  KvAddress address(int64_t slot, int64_t position) const {
    const Held& held = held_[slot];
    if (slot >= own_slots_) return at(own_slots_ * own_ + held.prompt * of_prompt_, of_prompt_, position);
    UCAS_CHECK(position - held.shared < own_, "the token must be inside its cache slot");
    KvAddress address = at(slot * own_, own_, position);
    if (held.shared > 0)
      address.share_prefix(at(own_slots_ * own_ + held.prompt * of_prompt_, of_prompt_, 0), held.shared, d_, stride_);
    return address;
  }
  E* key(int64_t layer) const { return data<E>(key_) + layer * K_ * tokens_ * d_; }
  E* value(int64_t layer) const { return data<E>(value_) + layer * K_ * tokens_ * stride_; }

 private:
  struct Held {
    int64_t prompt = -1;  // the place of its own, or -1
    int64_t shared = 0;   // tokens that a response reads there
  };
  KvAddress at(int64_t first, int64_t tokens, int64_t position) const {
    return {first * K_ * d_, tokens * d_, first * K_ * stride_, tokens * stride_, position};
  }

  const int64_t length_, layers_, K_, d_, stride_;
  const int64_t own_slots_, own_;  // slots that have tokens of their own, and how many
  const int64_t of_prompt_;        // tokens of a prompt's place
  const int64_t tokens_;           // all of them
  std::vector<Held> held_;         // by slot
  std::vector<int64_t> users_, free_;
  at::Tensor key_, value_;
};

}  // namespace ucas
