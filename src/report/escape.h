// Text from models, files and the world, made safe for an HTML page. Nothing reaches the page except through
// one of these.
// Threads: any; pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ucas {

// For element content and quoted attributes: & < > " ' become entities, control characters and characters that change
// the direction or the visibility of what follows (bidi controls, zero-width marks, U+2028) become visible names.
// Plain text: the result holds no tags.
std::string html_text(std::string_view text);

// Model text for element content: as html_text, but each replaced character is a <i class="cc"> mark of its own, and
// newlines stay. At most `limit` bytes of the text are shown; what was cut is said.
std::string model_text(std::string_view text, size_t limit = 6000);

// For text that a script sets as text, not markup: as html_text, but without entities. At most `limit` bytes; "..."
// where it was cut.
std::string visible_text(std::string_view text, size_t limit);

// A JSON document for <script type="application/json">: no '<', '>' or '&' and no U+2028/U+2029 is left unescaped, so
// no text inside can end the element.
std::string script_json(std::string_view json);

}  // namespace ucas
