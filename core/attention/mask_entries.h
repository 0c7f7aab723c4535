#pragma once
// The table of all masks (masks.h), and how the words of a form are told apart. Of masks.cpp and mask_numbers.cpp.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/masks.h"

namespace headscope::mask_entries {

/// What stands in a spec besides words: its numbers, its list of positions, and the vectors that it may hash.
struct MaskNumbers {
  std::vector<double> all;
  std::vector<Index> list;
  const MaskVectors* vectors = nullptr;
  double operator[](std::size_t i) const { return all[i]; }
};

struct Entry {
  MaskForm form;
  std::vector<double> lowest;  ///< of the form's numbers, in order; the largest is 10⁹, of a share 1
  std::shared_ptr<const AttentionRule> (*make)(const MaskNumbers& numbers, std::string spec);
};

/// In the order in which a chooser lists them.
const std::vector<Entry>& entries();

/// Parted by blanks.
std::vector<std::string_view> words_of(std::string_view text);
/// "A,B,…": positions, separated by commas.
bool is_list(std::string_view form_word);
bool is_number(std::string_view form_word);

}  // namespace headscope::mask_entries
