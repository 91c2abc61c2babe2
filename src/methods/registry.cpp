#include "methods/registry.h"

#include "base/error.h"
#include "base/str.h"

namespace ucas {

std::span<const MethodRow> method_rows() {
#define UCAS_ROW(name) {#name, make_##name},
  static constexpr MethodRow kRows[] = {UCAS_METHODS(UCAS_ROW)};
#undef UCAS_ROW
  return kRows;
}

std::unique_ptr<Method> make_method(const std::string& name) {
  std::vector<std::string> names;
  for (const MethodRow& row : method_rows()) {
    if (row.name == name) return row.make();
    names.push_back(row.name);
  }
  throw Error("config", str("method.name = \"", printable(name), "\": expected one of ", join(names, ", "),
                            did_you_mean(name, names)));
}

}  // namespace ucas
