#include "train/loop/resume.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/process/build_info.h"
#include "base/str.h"
#include "base/terminal/log.h"
#include "records/run/manifest.h"
#include "records/run/run_directory.h"
#include "train/state/fingerprint.h"

namespace ucas {

namespace {

std::string state_file(const FoundCheckpoint& found) { return path_join(state_folder(found.path), "state.json"); }

std::optional<FoundCheckpoint> find_checkpoint(const RunDirectory& run) {
  return newest_checkpoint(run, [](const std::string& text, const FoundCheckpoint& found) {
    TrainState::parse(text, state_file(found), found.step);
  });
}

// A checkpoint is sealed after the lines of its steps are on disk, so a kill never leaves one without them.
void check_steps(const RunDirectory& run, const FoundCheckpoint& found, const Consent& consent) {
  const std::string missing = run.missing_steps(found.step);
  if (missing.empty()) return;
  const std::string problem = str("steps.jsonl lacks steps ", missing);  // known to every later resume as this text
  const std::vector<std::string> known = run.remarks();
  if (std::ranges::find(known, problem) != known.end()) return;
  consent.ask(problem, str("the checkpoint to resume from is ", found.path, ": put the file back"));
}

// Without a checkpoint a run starts over; but not where one must have been there, and not from another base.
void check_start_over(const RunDirectory& run, const TrainConfig& before, bool had_folder, const Consent& consent) {
  const std::string weights = run.environment("initial_weights");
  if (!weights.empty() && weights != hash_of_model(before.model)) {
    consent.ask(str(before.model, ": other weights or another config.json than when ", run.path(), " was started"),
                "put them back");
  }
  const int64_t last = run.last_step(), every = before.train.save_freq;
  // A run whose saves all failed, on a disk that was full, never had one.
  const bool lost = every > 0 && last > every && run.has_saved() != "no";
  if (!had_folder || lost) {
    consent.ask(str(run.checkpoints(), " holds no checkpoint, but ",
                    had_folder ? str(run.steps_file(), " goes to step ", last, " and one was saved every ", every,
                                     " (train.save_freq)")
                               : "a run always has this folder",
                    ": going on would start over from nothing"),
                "put the checkpoints back, or start anew with another --out");
  } else if (last > 0) {
    warn(str(run.path(), ": stopped before its first checkpoint: the ", last, " steps in ", run.steps_file(),
             " are removed and computed again"));
  }
}

}  // namespace

std::vector<Setting> with_overrides(std::vector<Setting> settings, const std::vector<Setting>& overrides,
                                    const TrainConfig& before) {
  for (const Setting& setting : overrides) {
    if (setting.key == kAllowChanges || setting.key == kOverPlan) continue;
    const auto* text = std::get_if<std::string>(&setting.value);
    const bool other_gpu = setting.key == "device" && text && kind_of_device(*text) == kind_of_device(before.device);
    const bool first_servers = setting.key == "rollout.servers" && !before.rollout.served();
    if (!first_servers && (is_free_option(setting.key) || setting.key == "threads" || other_gpu)) {
      settings.push_back(setting);
    } else {
      throw Error(ErrorKind::config, str(setting.where,
                                         ": cannot change on --resume: it would change results; start a new run "
                                         "from the checkpoint instead (--model PATH/checkpoints/step-...)"));
    }
  }
  return settings;
}

void Consent::ask(const std::string& problem, const std::string& remedy) const {
  if (!given) throw Error(ErrorKind::config, str(problem, "; ", remedy, ", or add --allow-changes"));
  count_warning(Warning::changed);
  warn(str("resuming all the same (--allow-changes): ", problem));
  run.remark(problem);
}

std::optional<FoundCheckpoint> choose_checkpoint(const RunDirectory& run, const TrainConfig& before, bool had_folder,
                                                 const Consent& consent, Ranks& ranks) {
  std::optional<FoundCheckpoint> found;
  std::string mine;
  ranks.together("choosing the checkpoint", [&] {
    if (!ranks.leads()) return;
    found = find_checkpoint(run);
    if (!found) return check_start_over(run, before, had_folder, consent);
    check_steps(run, *found, consent);
    if (!ranks.alone()) mine = str(found->step, " ", manifest_of(*found));
  });
  const std::string leaders = ranks.from_leader("the checkpoint to resume from", mine);
  ranks.together("finding that checkpoint", [&] {
    if (ranks.leads() || leaders.empty()) return;
    const std::vector<std::string> word = split(leaders, ' ');
    const int64_t step = std::atoll(word.at(0).c_str());
    found = FoundCheckpoint{run.checkpoint(step), step};
    check_found_elsewhere(*found, word.at(1));
  });
  return found;
}

void check_program(const RunDirectory& run) {
  const std::string before = run.environment("version"), now = version_and_commit();
  if (before.empty() || before == now) return;
  const std::string text =
      str("resumed by ucas ", now, "; begun by ucas ", before, ": the result may differ from an uninterrupted run's");
  warn(text);
  if (run.writes()) add_remark(run.env_file(), text);
}

void check_engine(const EngineConfig& engine, const RunDirectory& run) {
  if (engine.cache_tokens == 0) return;
  const std::string slots = run.environment("rollout_slots"), tokens = run.environment("rollout_cache_tokens");
  if (slots.empty() || (slots == str(engine.max_slots) && tokens == str(engine.cache_tokens))) return;
  const std::string text = str("this GPU decodes ", engine.max_slots, " responses at once, ", engine.cache_tokens,
                               " tokens in its cache; the run was begun with ", slots, " and ", tokens,
                               ": what it samples from here on has other rounding");
  warn(text);
  if (run.writes()) add_remark(run.env_file(), text);
}

void restore(Training& t, const FoundCheckpoint& found, const Consent& consent) {
  std::string now = t.state.fingerprint;
  const std::string text = load_checkpoint(found, *t.policy.model, *t.optimizer, t.auxiliary_models);
  t.state = TrainState::parse(text, state_file(found), found.step);
  const std::vector<std::string> changed = compare_fingerprints(t.state.fingerprint, now);
  if (!changed.empty()) {
    consent.ask(str(found.path, ": the run was started with ", join(changed, "; "),
                    ": the result would differ from an uninterrupted run's"),
                "restore it");
  }
  t.state.fingerprint = std::move(now);
  for (auto& auxiliary : t.auxiliary_models) auxiliary->restore(t.state.auxiliary_models[auxiliary->name()]);
}

}  // namespace ucas
