// The parts of a tokenizer.json that say how text is cut and joined: normalizer, pre_tokenizer, post_processor,
// decoder. Each is read strictly: a component or a setting that is not known here is refused by name,
// Error(ErrorKind::tokenizer). Fed by read_tokenizer_file.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/text/json_object.h"
#include "text/tokenizer/tokenizer_file.h"

namespace ucas {

[[noreturn]] void refuse_part(const JsonObject& node, const std::string& what);
std::string type_of_part(const JsonObject& node);
// Any other key is a setting that this program does not know, and would silently ignore.
void only_settings(const JsonObject& node, std::initializer_list<std::string_view> known);

void read_normalizer(const JsonObject& node, Normalizer& normalizer);
// {"Regex": ...} or {"String": ...} of a Split that isolates its matches, as the word-level form needs it.
std::string isolated_expression(const JsonObject& split);
// True: it ends in ByteLevel, so that the tokens of the model are spelled in the byte alphabet.
bool read_pre_tokenizer(const JsonObject& node, Splitter& splitter);
void read_post_processor(const JsonObject& node, TokenizerFile& file);
void read_decoder(const JsonObject& node, bool byte_level, DecoderRules& rules);

}  // namespace ucas
