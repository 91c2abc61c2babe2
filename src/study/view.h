// A study's own look at run directories that live in a pool: OUT/runs/ROW-seedN/ with the row's name in its config.toml
// and links to everything else, so that `ucas report OUT/runs/*` and `ucas compare OUT/runs/*` speak of the rows.
#pragma once

#include <string>

namespace ucas {

struct RunView {
  std::string run;          // in the pool
  std::string view;         // made anew
  std::string config_toml;  // with this study's label; "" = none, the untrained base
  std::string study_json;   // row, base and seed, as the study pairs its runs
  std::string stored_eval;  // eval/STORED.json ... in the pool
  std::string eval;         // their name in the view; other evaluations of the pool are not this study's
};
void make_view(const RunView& view);

}  // namespace ucas
