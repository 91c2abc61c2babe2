// A long --help by topics: what a page says first, and what each of its sections says. Text in, text out.
#pragma once

#include <string>

namespace ucas {

// `page` is the whole text of `ucas NAME --help`. Without a topic, a page that is long: its head, its first options and
// the names of its topics. A topic is a section ("rollout"), a method ("ucas"), or "all". Error("usage") for any other.
std::string help_on(const std::string& page, const std::string& name, const std::string& topic);

}  // namespace ucas
