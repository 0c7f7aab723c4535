#pragma once
// What the forms of edits cannot say by themselves: titles, ranges and sentences of their capitals, and the group in
// which a chooser lists an edit. A new edit whose capitals are new ones has its lines in the tables of the body.

#include <string_view>

#include "core/engine/edit_grammar.h"

namespace headscope {

/// The field that capitals stand for in a form; a plain box where nothing is known of them.
EditField described_field(std::string_view form, std::string_view name);

/// Of the edit that begins with these words ("scale by length"): "Attention weights"; "Other" where none is named.
std::string_view group_of_lead(std::string_view lead);

}  // namespace headscope
