// Data that is made, not read: rg:TASK,size=N,seed=S are problems of the Python package reasoning-gym. They are written
// once, to a file in the user's cache, and are then data like any other (python/ucas/reasoning.py).
#pragma once

#include <string>

namespace ucas {

bool is_generated(const std::string& name);  // "rg:..."
// The file with these problems. Error("python") where the package is absent or takes no such settings.
std::string generated_file(const std::string& name);
// Whether a file is one of those, whose rows the scorers of their tasks can score.
bool is_generated_file(const std::string& path);

}  // namespace ucas
