// One step's advantages of a method on a small batch, and the property that every method must keep.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/text/fields.h"
#include "core/batch.h"
#include "methods/apply.h"
#include "support/batches.h"

namespace ucas::testing {

struct Advantages {
  std::vector<float> advantage;                    // [N]
  std::map<std::string, std::vector<float>> rows;  // what it recorded, by name
  std::map<std::string, double> metrics;
};
// preset "" = the method's first.
Advantages compute_advantages(const Batch& batch, const std::string& method, const std::string& preset = "",
                              const std::vector<Setting>& settings = {});

// method.KEY = VALUE.
inline Setting text(const char* key, const char* value) { return {key, std::string(value), key, false}; }
inline Setting number(const char* key, double value) { return {key, value, key, false}; }

// Responses of `lengths` tokens with these rewards, in one group; confidence and logit differ by token.
Batch group_of(const std::vector<float>& rewards, const std::vector<size_t>& lengths);

// What a response is worth, in a batch of one value per response: its tokens' common advantage. Fails the test where
// they differ; empty responses have none and are left out.
std::vector<float> per_response(const Batch& batch, const Advantages& shaped);

// Random batches of unequal groups, empty responses among them: the advantages of the same rows in another order, the
// groups reversed and each group rotated, must be the same to the bit. Returns rapidcheck's verdict.
bool order_never_matters(const std::string& method, const std::string& preset = "",
                         const std::vector<Setting>& settings = {});

}  // namespace ucas::testing
