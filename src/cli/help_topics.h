// A long --help by topics: what a page says first, and what each of its sections says. Text in, text out.
#pragma once

#include <string>

namespace ucas {

// `page` is the whole text of `ucas NAME --help`. Without a topic, a page that is long: its head, the options to know
// first and the names of its topics. A topic is a section ("rollout"), "general" (options of no section), a method
// ("ucas"), or "all". Error(ErrorKind::usage) for any other. A line "{first KEY KEY ...}" of the head names the options
// to know first; without one these are the general ones.
std::string help_on(std::string page, const std::string& name, const std::string& topic);

}  // namespace ucas
