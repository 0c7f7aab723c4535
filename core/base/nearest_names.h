#pragma once
// "Did you mean": the known names closest to one that was asked for, for the hints of errors.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

/// "nearest names: a, b, c": `count` names, first those that begin or end with `wanted` or end it, then those with
/// the fewest single-character edits (Levenshtein 1966) to it, ties in the order given; "" when there are none. Looks
/// at the first 200 characters of each name.
std::string nearest_names_hint(std::string_view wanted, std::span<const std::string> names, std::size_t count = 3);

/// Number of insertions, deletions and replacements of one byte that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace headscope
