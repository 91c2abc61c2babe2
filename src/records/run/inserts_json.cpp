#include "records/run/inserts_json.h"

#include "base/str.h"
#include "base/text/json.h"
#include "base/text/json_object.h"

namespace ucas {

std::string inserts_json(std::span<const Insert> inserts) {
  std::string out;
  for (const Insert& insert : inserts) {
    out += str(out.empty() ? "" : ", ", "{\"at\": ", insert.at, ", \"token\": [");
    for (size_t i = 0; i < insert.token.size(); ++i) out += str(i > 0 ? ", " : "", insert.token[i]);
    out += str("], \"text\": ", json_text(insert.text), "}");
  }
  return "[" + out + "]";
}

std::vector<Insert> inserts_of(const JsonObject& row, int64_t tokens) {
  std::vector<Insert> inserts;
  if (!row.has("inserts")) return inserts;
  int64_t last = 0;
  for (const JsonObject& one : row.children("inserts")) {
    Insert insert{one.whole("at"), one.ids("token"), one.text("text")};
    if (insert.at <= last || insert.at >= tokens || insert.token.empty()) {
      one.refuse(str("an insert of ", insert.token.size(), " tokens at ", insert.at, " of ", tokens,
                     "; expected tokens, at ascending places between the response's own"));
    }
    last = insert.at;
    inserts.push_back(std::move(insert));
  }
  return inserts;
}

}  // namespace ucas
