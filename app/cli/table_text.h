#pragma once
// Text tables for a terminal: columns aligned by what the eye sees (East Asian characters take two cells, combining
// marks none), numbers to the right, words to the left.

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::cli {

/// Lines of as many cells each, the first of them the titles, every one ended by a newline and without trailing spaces.
/// `left`: the columns of words.
std::string aligned(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& left);

/// "1,234,567"
std::string grouped(std::int64_t value);
/// "3.1 MB"
std::string byte_size(std::uint64_t bytes);

}  // namespace headscope::cli
