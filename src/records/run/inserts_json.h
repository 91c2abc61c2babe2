// Inserts of an environment (core/inserts.h) as every file of a run has them: [{"at": 9, "token": [5, 7], "text":
// "408"}].
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/inserts.h"

namespace ucas {

class JsonObject;

std::string inserts_json(std::span<const Insert> inserts);
// "inserts" of a row, which may be absent, of a response of so many tokens. Refuses those that are not ascending, have
// no tokens, or stand before the first or after the last token.
std::vector<Insert> inserts_of(const JsonObject& row, int64_t tokens);

}  // namespace ucas
