#include "config/plan/step_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/str.h"
#include "config/plan/model_memory.h"
#include "hf/parameters.h"
#include "results/table.h"
#include "rollout/sampling/kv_budget.h"

namespace ucas {

namespace {

constexpr double kRowBytes = 12 * 16;  // of a sampled token as it goes from rank to rank, about

class TimePlanner {
 public:
  TimePlanner(const TrainConfig& config, const PlannedModels& models, const Device& device, MeanLengths lengths)
      : c_(config),
        m_(models),
        d_(device),
        ranks_(static_cast<double>(models.ranks)),
        needs_(config.needs()),
        lengths_(lengths) {
    if (lengths_.prompt <= 0) lengths_.prompt = static_cast<double>(c_.data.max_prompt_length);
    if (lengths_.response <= 0) lengths_.response = static_cast<double>(c_.rollout.response_length);
    sampled_ = static_cast<double>(c_.gen_batch() * c_.fewest_gen_batches() * c_.rollout.n);
    trained_ = std::min(sampled_, static_cast<double>(c_.data.train_batch_size * c_.rollout.n));
    plan_.ranks = models.ranks;
    plan_.steps = c_.uses_passes() ? 0 : c_.train.steps;
  }

  TimePlan made() {
    generate();
    score();
    learn();
    update();
    if (ranks_ > 1) exchange();
    return plan_;
  }

 private:
  void phase(const char* name, double seconds, std::string note = "") {
    if (seconds > 0) plan_.phases.push_back({name, seconds, std::move(note)});
  }
  double element() const { return c_.dtype == Dtype::bf16 ? 2 : 4; }

  // Keys in sight of tokens at [from, to), all layers together.
  static double keys(const ModelConfig& m, double from, double to) {
    double sum = 0;
    const auto first = static_cast<int64_t>(from), last = static_cast<int64_t>(std::ceil(to));
    for (int64_t i = first; i < last; ++i) sum += keys_in_sight(m, i);
    return sum * (to - from) / std::max<double>(1, static_cast<double>(last - first));
  }
  // Operations of blocks on tokens at [from, to) of a sequence.
  static double blocks(const ModelConfig& m, double from, double to) {
    return 2 * ((to - from) * block_multiply_adds(m) + keys(m, from, to) * key_multiply_adds(m));
  }
  // Operations a second at a share of them, for a model of this width.
  double speed(const ModelConfig& m, double share) const {
    const auto width = static_cast<double>(m.hidden_size);
    return d_.operations * share * width / (width + d_.half_width);
  }
  double p() const { return lengths_.prompt; }
  double r() const { return lengths_.response; }

  void generate() {
    const ModelConfig& m = m_.policy;
    const double prompts = sampled_ / static_cast<double>(c_.rollout.n) / ranks_, mine = sampled_ / ranks_;
    const double prefill = prompts * (blocks(m, 0, p()) + 2 * head_multiply_adds(m)) / speed(m, d_.forward);
    const int64_t token_bytes =
        static_cast<int64_t>(2 * element()) * m.num_hidden_layers * m.num_key_value_heads * m.head_dim;
    EngineConfig engine;
    engine.max_slots = c_.rollout.max_slots;
    if (d_.memory > 0) engine.cache_tokens = plan_memory(c_, m_).cache_tokens;
    const LongestTokens longest{c_.data.max_prompt_length + c_.rollout.response_length, c_.data.max_prompt_length,
                                c_.rollout.response_length};
    const KvBudget room = kv_budget(engine, static_cast<int64_t>(std::ceil(prompts)),
                                    static_cast<int64_t>(std::ceil(mine)), longest, token_bytes, d_.memory);
    // On a GPU responses share the cache: as many as it holds at their mean length so far.
    const double held = room.tokens > 0 ? static_cast<double>(room.tokens) / (p() + r() / 2) : mine;
    const double lanes = std::max(1.0, std::min({static_cast<double>(room.slots), mine, held})),
                 rounds = std::max(r(), mine * r() / lanes);
    const double at_once = mine * r() / rounds;  // in the mean
    const double in_sight = keys(m, p(), p() + r()) / r();
    const Round round = decode_round(m, at_once, in_sight);
    phase("generate", prefill + rounds * round.seconds,
          str(grouped(std::llround(mine * r())), " tokens a rank, ", std::llround(at_once),
              " at once; weights and keys read: ", percent(round.reading / round.seconds, 0), " of it"));
    // The longest response goes on when all others have ended: on a GPU such a round takes nearly as long as one of
    // many.
    const double longest_response = static_cast<double>(c_.rollout.response_length);
    if (d_.memory == 0 || longest_response <= r()) return;
    phase("generate, tail", (longest_response - r()) * decode_round(m, 1, in_sight).seconds,
          "at most: one response of the allowed length, alone");
  }

  struct Round {
    double seconds = 0, reading = 0;
  };
  // One token of each of so many sequences with so many keys in sight.
  Round decode_round(const ModelConfig& m, double at_once, double in_sight) const {
    const double weights = block_multiply_adds(m) + head_multiply_adds(m);
    const double read =
        element() * (weights + at_once * in_sight * static_cast<double>(2 * m.num_key_value_heads * m.head_dim));
    const double operations = 2 * at_once * (weights + in_sight * key_multiply_adds(m));
    const double reading = read / (d_.bandwidth * d_.read * (read < d_.cache ? 4 : 1));
    return {reading + operations / speed(m, d_.decode) + static_cast<double>(m.num_hidden_layers) * d_.layer_seconds +
                at_once * (logits(m) + d_.token_seconds),
            reading};
  }

  // What norms, rotation, residuals and SwiGLU read and write at a token.
  static double numbers(const ModelConfig& m) {
    return static_cast<double>(m.num_hidden_layers * (10 * m.hidden_size + 6 * m.intermediate_size));
  }

  // Softmax and statistics of one row.
  double logits(const ModelConfig& m) const { return static_cast<double>(m.vocab_size) * d_.logit_seconds; }

  // A pass over responses: `GEMMs` of the blocks and of the head. A prompt is passed once for its responses.
  double pass(const ModelConfig& m, double responses, double products, double head, double share) const {
    const double shared = 1 / static_cast<double>(c_.rollout.n);
    const double each = speed(m, share), of_head = d_.head > 0 ? d_.operations * d_.head : each;
    return responses * (products * (blocks(m, p(), p() + r()) + shared * blocks(m, 0, p())) / each +
                        products * (r() + shared * p()) * numbers(m) * d_.number_seconds +
                        head * 2 * r() * head_multiply_adds(m) / of_head + r() * logits(m) * std::min(2.0, head));
  }

  void score() {
    const bool said = c_.rollout.old_log_prob == OldPolicy::sampler && d_.memory == 0 && needs_.sampler_knows();
    const double mine = trained_ / static_cast<double>(m_.ranks);
    const double scored = said ? trained_ / static_cast<double>(kCheckedOf) : mine;
    phase("score", pass(m_.policy, scored, 1, 1, d_.forward) + mine * r() * read_logits(),
          said                ? str("one of ", kCheckedOf, " responses, on every rank; the sampler's figures else")
          : read_logits() > 0 ? "logits go to the host, what it makes of them is not counted"
                              : "");
    if (needs_.teacher) phase("teacher", pass(m_.teacher, mine, 1, 1, d_.forward), "");
    if (needs_.reference) phase("reference", pass(m_.policy, mine, 1, 1, d_.forward), "");
  }

  void learn() {
    const double mine = trained_ / ranks_;
    if (needs_.critic)
      phase("critic", pass(m_.critic, mine, 1, 0, d_.forward) + pass(m_.critic, mine, passes(), 0, d_.update));
    if (needs_.prm)
      phase("reward model", pass(m_.prm, mine, 2, 2, d_.forward) + pass(m_.prm, mine, passes(), 4, d_.update));
  }

  // Seconds a token for signals that read tokens of its row.
  double read_logits() const {
    if (d_.memory == 0 || !needs_.reads_tokens()) return 0;
    return 4 * static_cast<double>(m_.policy.vocab_size) / d_.host_link;
  }

  // Forward, two GEMMs backward, and what is computed again.
  double passes() const {
    if (c_.update.recompute == Recompute::block) return 4;
    return c_.update.recompute == Recompute::keep_attention ? 3.5 : 3;
  }

  void update() {
    const ModelMemory memory = model_memory(m_.policy, m_.options, &c_.optimizer);
    // An adapter's backward needs no gradients of the frozen matrices.
    const double back = m_.options.lora.on() ? passes() - 1 : passes(), head = m_.options.lora.on() ? 3 : 4;
    const double epochs = static_cast<double>(c_.update.epochs);
    updates_ = epochs * std::ceil(static_cast<double>(c_.data.train_batch_size) /
                                  static_cast<double>(c_.update.mini_batch_size));
    if (needs_.selection && needs_.selection->scope != Scope::step)
      phase("selection", epochs * pass(m_.policy, trained_ / ranks_, 1, 1, d_.forward),
            "by the policy before each update");
    const double used = used_by_waves(updates_ / epochs);
    phase("update", epochs * pass(m_.policy, trained_ / ranks_, back, head, d_.update) / used,
          str(std::llround(updates_), updates_ == 1 ? " update" : " updates",
              used < 1 ? str("; waves of micro-batches use ", percent(used, 0), " of the ranks' time") : ""));
    // Gradients are written, summed and read, weights read and written with their copies, moments read and written.
    const auto trained = static_cast<double>(memory.trained);
    const double bytes = trained * (8 + (8 + (c_.dtype == Dtype::bf16 ? 2 : 0) + 4) / ranks_) +
                         2 * static_cast<double>(memory.moments) / ranks_;
    // And those of each micro-batch set to zero, read, and added.
    const double added = c_.update.reduce == Reduce::micro ? backward_passes(epochs, updates_) * trained * 16 : 0;
    phase("optimizer", (updates_ * bytes + added) / (d_.bandwidth * d_.optimizer),
          str(word_of(c_.optimizer.moments), " moments", ranks_ > 1 ? ", shared out" : ""));
    if (d_.memory == 0 || !plan_memory(c_, m_).offloads) return;
    const double moved = static_cast<double>(memory.masters + memory.moments) / ranks_;
    phase("offload", updates_ * moved / d_.host_link,
          str(human_bytes(moved), " each way in every update, at ", fixed(d_.host_link * 1e-9, 0),
              " GB/s (assumed), both ways at once"));
  }

  // Share of the ranks' time that "micro" uses: its last wave of micro-batches is not full
  // (train/signals/balanced_pack.h has how many there are). "sum" packs as many for each rank.
  double used_by_waves(double mini_batches) const {
    if (c_.update.reduce != Reduce::micro || ranks_ == 1) return 1;
    const double tokens = trained_ / mini_batches * (p() + r());
    const auto count = static_cast<uint64_t>(std::ceil(tokens / static_cast<double>(c_.update.micro_batch_tokens)));
    const uint64_t multiple = std::max<uint64_t>(std::bit_floor(count) / 2, 1);
    const auto rounded = static_cast<double>((count + multiple - 1) / multiple * multiple);
    return rounded / (std::ceil(rounded / ranks_) * ranks_);
  }

  // Micro-batches of a rank in so many updates.
  double backward_passes(double epochs, double updates) const {
    const double tokens = trained_ / ranks_ * epochs * (p() + r());
    return std::max(updates, tokens / static_cast<double>(c_.update.micro_batch_tokens));
  }

  // Bytes of a model: its gradients so many times, and its parameters as they are broadcast.
  static double bytes_of(const ModelMemory& m, double gradients, double updates) {
    const double trained = 4 * static_cast<double>(m.trained);
    return trained * gradients + (trained - static_cast<double>(m.masters) / 2) * updates;  // masters travel in bf16
  }

  // Gradients are summed, updated parameters broadcast, responses gathered.
  void exchange() {
    const double others = (ranks_ - 1) / ranks_;
    // Gradients by owner travel after every pass, not every update.
    const auto passes = [&](bool by_owner, double epochs, double updates) {
      return by_owner ? backward_passes(epochs, updates) : 2 * updates;
    };
    const bool micro = c_.update.reduce == Reduce::micro;
    const double of_policy = passes(c_.update.gradients_by_owner(), static_cast<double>(c_.update.epochs), updates_);
    const ModelMemory policy = model_memory(m_.policy, m_.options, &c_.optimizer);
    double models = bytes_of(policy, of_policy, updates_);
    const ModelOptions options = c_.auxiliary_model_options();
    if (needs_.critic) {
      const auto updates = static_cast<double>(needs_.critic->updates);
      models += bytes_of(model_memory(m_.critic, options, &needs_.critic->optimizer, false), passes(micro, 1, updates),
                         updates);
    }
    if (needs_.prm) models += bytes_of(model_memory(m_.prm, options, &needs_.prm->optimizer), passes(micro, 1, 1), 1);
    double rows = sampled_ * r() * kRowBytes / 12;
    const double bytes = others * (models + rows);
    phase("exchange", bytes / d_.link, str(human_bytes(bytes), " sent by a rank"));
  }

  const TrainConfig& c_;
  const PlannedModels& m_;
  const Device& d_;
  const double ranks_;
  const Needs needs_;
  MeanLengths lengths_;
  double sampled_ = 0, trained_ = 0, updates_ = 0;
  TimePlan plan_;
};

}  // namespace

double TimePlan::step() const {
  double sum = 0;
  for (const Phase& phase : phases) sum += phase.seconds;
  return sum;
}

TimePlan plan_time(const TrainConfig& config, const PlannedModels& models, const Device& device, MeanLengths lengths) {
  return TimePlanner(config, models, device, lengths).made();
}

std::string time_text(const TimePlan& time, const Device& device) {
  Table table{.head = {"phase", "seconds", ""}, .align = "lrl"};
  for (const auto& [name, seconds, note] : time.phases) table.rows.push_back({name, fixed(seconds, 3), note});
  table.rows.push_back({"a step", fixed(time.step(), 3), ""});
  std::string text = str(table.text("  "), "\n");
  text += str("device  ", time.ranks > 1 ? str(time.ranks, " x ") : "", device.name, ": ", device.note, "\n");
  if (time.steps == 0) return text + "run     as many steps as the data gives; --train.steps N says how many\n";
  const double seconds = time.step() * static_cast<double>(time.steps);
  return str(text, "run     ", time.steps, " steps, ", human_seconds(seconds), ", ", fixed(time.device_hours(), 1),
             device.memory > 0 ? " GPU-hours" : " hours of a rank", "; without validation and checkpoints\n");
}

}  // namespace ucas
