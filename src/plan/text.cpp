// A plan for people and as JSON.
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "base/text/json.h"
#include "plan/plan.h"
#include "plan/step_time.h"
#include "results/table.h"

namespace ucas {

namespace {

std::string cell(int64_t bytes) { return bytes == 0 ? "-" : human_bytes(static_cast<double>(bytes)); }

std::string verdict(const MemoryPlan& plan, const PlanLimits& limits) {
  const int64_t peak = plan.peak();
  std::string text;
  if (limits.memory > 0) {
    text = str(limits.whose, " ", cell(limits.memory),
               limits.memory_free > 0 ? str(", ", cell(limits.memory_free), " of it free") : "", ": ");
    if (peak > limits.memory) {
      text += "does not fit";
    } else if (limits.memory_free > 0 && peak > limits.memory_free) {
      text += "fits only when other programs give memory back";
    } else {
      text += "fits";
    }
  }
  return text;
}

std::string disk_text(const DiskPlan& disk, const PlanLimits& limits) {
  return str(cell(disk.total()), ": ", disk.checkpoints, disk.checkpoints == 1 ? " checkpoint of " : " checkpoints of ",
             cell(disk.checkpoint), ", records ", cell(disk.records), disk.steps_known ? "" : " for the first step",
             limits.disk_free > 0 ? str("; ", cell(limits.disk_free),
                                        " free: ", disk.total() > limits.disk_free ? "does not fit" : "fits")
                                  : "");
}

}  // namespace

std::string plan_text(const MemoryPlan& plan, const PlanHead& head, const PlanLimits& limits,
                      const std::vector<Remedy>& remedies) {
  Table table;
  table.head = {"part"};
  for (const std::string& phase : plan.phases) table.head.emplace_back(phase);
  table.head.emplace_back("");
  table.align = "l" + std::string(plan.phases.size(), 'r') + "l";
  for (const PlanPart& part : plan.parts) {
    std::vector<Cell>& row = table.rows.emplace_back().cells;
    row.emplace_back(part.name);
    for (int64_t bytes : part.bytes) row.emplace_back(cell(bytes));
    row.emplace_back(part.note);
  }
  std::vector<Cell>& sums = table.rows.emplace_back().cells;
  sums.emplace_back("in all");
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) sums.emplace_back(cell(plan.total(phase)));
  sums.emplace_back("");
  std::string text = head.title + "\n";
  for (const std::string& note : head.notes) text += str("note: ", note, "\n");
  text += str("\n", table.text("  "), "\n");
  text += str("peak    ", cell(plan.peak()), " in the phase ", plan.peak_words(), "\n");
  const std::string said = verdict(plan, limits);
  if (!said.empty()) text += str("memory  ", said, "\n");
  if (plan.offloads)
    text += str("host    ", cell(plan.host), " of masters and moments (update.offload), pinned where there is a GPU\n");
  text += str("disk    ", disk_text(plan.disk, limits), "\n");
  if (remedies.empty()) return text;
  Table changes{.head = {"what lowers the peak", "alone", "with those above"}};
  for (const Remedy& r : remedies) changes.rows.push_back({r.setting, cell(r.alone), cell(r.together)});
  return str(text, "\n", changes.text("  "), "\n");
}

std::string plan_json(const MemoryPlan& plan, const PlanHead& head, const PlanLimits& limits,
                      const std::vector<Remedy>& remedies, const TimePlan& time) {
  OrderedJson json;
  json["title"] = head.title;
  json["notes"] = head.notes;
  json["peak"] = plan.peak();
  json["phase"] = plan.phases[plan.peak_phase()];
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) json["phases"][plan.phases[phase]] = plan.total(phase);
  json["parts"] = OrderedJson::array();
  for (const PlanPart& part : plan.parts) {
    OrderedJson row;
    row["part"] = part.name;
    row["note"] = part.note;
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) row["bytes"][plan.phases[phase]] = part.bytes[phase];
    json["parts"].push_back(std::move(row));
  }
  json["memory"] = limits.memory;
  json["memory_free"] = limits.memory_free;
  json["fits"] = limits.memory == 0 || plan.peak() <= limits.memory;
  json["offload"] = plan.offloads;
  json["host"] = plan.host;
  json["disk"] = plan.disk.total();
  json["disk_checkpoint"] = plan.disk.checkpoint;
  json["disk_free"] = limits.disk_free;
  json["remedies"] = OrderedJson::array();
  for (const Remedy& r : remedies) {
    OrderedJson row;
    row["setting"] = r.setting;
    row["alone"] = r.alone;
    row["together"] = r.together;
    json["remedies"].push_back(std::move(row));
  }
  for (const auto& [name, seconds, note] : time.phases) json["time"][name] = seconds;
  json["time"]["step"] = time.step();
  json["device_hours"] = time.device_hours();
  return json_text(json, 2) + "\n";
}

}  // namespace ucas
