#include "records/run/methods_table.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/files/hash.h"
#include "base/str.h"
#include "base/text/json.h"
#include "base/text/json_object.h"

namespace ucas {

namespace {

constexpr const char* kTableFormat = "ucas-methods-table-1";
constexpr int64_t kMostTableBytes = 4 << 20;

AgainstDapo row_of(const JsonObject& json) {
  AgainstDapo row;
  row.name = json.text("method");
  row.variant = json.text("variant");
  row.correlation = json.number_or("correlation", std::numeric_limits<double>::quiet_NaN());
  row.size = json.number("size");
  row.net = json.number("net");
  row.tokens = json.whole("tokens", 0);
  row.turned = json.whole("sign_turned", 0, row.tokens);
  row.silenced = json.whole("silenced", 0, row.tokens);
  row.woken = json.whole("woken", 0, row.tokens);
  row.rare = json.whole("rare_right", 0);
  row.rare_lowered = json.whole("rare_right_lowered", 0, row.rare);
  row.other = json.whole("other_right", 0);
  row.other_lowered = json.whole("other_right_lowered", 0, row.other);
  return row;
}

OrderedJson json_of(const AgainstDapo& row) {
  return {{"method", row.name},
          {"variant", row.variant},
          {"correlation", row.correlation},
          {"size", row.size},
          {"net", row.net},
          {"tokens", row.tokens},
          {"sign_turned", row.turned},
          {"silenced", row.silenced},
          {"woken", row.woken},
          {"rare_right", row.rare},
          {"rare_right_lowered", row.rare_lowered},
          {"other_right", row.other},
          {"other_right_lowered", row.other_lowered}};
}

}  // namespace

std::string methods_table_file(const std::string& run) {
  return path_join(path_join(run, "signals"), "methods-table.json");
}

std::string methods_table_json(const MethodsTable& table, const std::string& source) {
  OrderedJson json = {{"format", kTableFormat},
                      {"source", source},
                      {"steps", table.steps},
                      {"prompts", table.groups},
                      {"responses", table.responses},
                      {"rare_share", table.rare},
                      {"methods", OrderedJson::array()},
                      {"left_out", table.left_out},
                      {"files", OrderedJson::array()}};
  for (const AgainstDapo& row : table.rows) json["methods"].push_back(json_of(row));
  for (const auto& [name, hash] : table.files) json["files"].push_back({{"name", name}, {"hash", hash}});
  return json_text(json) + "\n";
}

MethodsTable read_methods_table(const std::string& path) {
  const JsonObject json = JsonObject::read(path, kMostTableBytes, ErrorKind::header_json,
                                           "write it again with ucas advantages --table --save");
  json.format(kTableFormat, "written by ucas advantages");
  MethodsTable table;
  table.steps = json.whole("steps", 1);
  table.groups = json.whole("prompts", 0);
  table.responses = json.whole("responses", 0);
  table.rare = json.number("rare_share");
  for (const JsonObject& row : json.children("methods")) table.rows.push_back(row_of(row));
  if (table.rows.empty()) json.refuse("methods", "a row for DAPO and one for each method");
  table.left_out = json.texts("left_out");
  for (const JsonObject& file : json.children("files")) {
    table.files.emplace_back(file.text("name"), file.text("hash"));
    const std::string step = path_join(path.substr(0, path.find_last_of('/') + 1), file.text("name"));
    if (file.text("name").find('/') == std::string::npos && exists(step) && hash_of_file(step) == file.text("hash")) {
      continue;
    }
    json.refuse(str("made from another ", printable(file.text("name")), " than lies next to it"));
  }
  return table;
}

}  // namespace ucas
