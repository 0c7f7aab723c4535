#pragma once
// Python writes a bare Infinity into JSON, which JSON does not know: config.json of state spaces has it.

#include <string>

namespace headscope {

/// The text with every bare Infinity as the library of models spells it in files of today, {"__float__": "Infinity"}.
std::string strict_infinities(std::string text);

}  // namespace headscope
