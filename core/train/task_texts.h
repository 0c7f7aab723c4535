#pragma once
// Small tasks for experts: families of texts that a model of a known language has to be adapted to. Each is made of
// that language's own texts by a change that the model never saw and that every text of the family shows, so that an
// expert has something to learn, and somebody who reads a prompt can tell which one it needs.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/train/language.h"

namespace headscope {

/// A task's texts; none of them is in two of the lists.
struct TaskTexts {
  std::string name, about;
  std::vector<std::string> learn;  ///< what its expert is learnt on
  std::vector<std::string> shots;  ///< the few that a mixture of experts is searched with
  std::vector<std::string> test;   ///< on which everything is measured
  bool operator==(const TaskTexts&) const = default;
};

/// "Tom saw a dog. The dog ran." → "Tom saw dog. Dog ran.": without the grammar's determiners.
std::string without_determiners(std::string_view text, const Grammar& grammar);
/// "Tom saw a dog." → "Tom Tom saw saw a a dog dog."
std::string said_twice(std::string_view text);

/// Words that stand for each other: of the words written small in `texts` the most frequent with the second, the third
/// with the fourth … `pairs` of them; of equals the one that comes first in the alphabet.
std::vector<std::pair<std::string, std::string>> frequent_pairs(const std::vector<std::string>& texts, int pairs);
/// Each word of a pair in place of the other; a capital stays one.
std::string with_exchanged(std::string_view text, const std::vector<std::pair<std::string, std::string>>& pairs);

struct TaskCounts {
  int learn = 64, shots = 6, test = 24;
  bool operator==(const TaskCounts&) const = default;
};
/// The tasks "bare" (without_determiners()), "twice", "exchanged" (frequent_pairs() of 4) and, where the language asks
/// questions, "questions" (its own texts that have one). Texts are the first sentences of a drawn one, of at most 22
/// words together; a text that `fits` refuses, or that was drawn before, is drawn anew. Everything follows from the
/// seed. Throws Error where the language gives too few such texts.
std::vector<TaskTexts> drawn_tasks(const Grammar& grammar, const TaskCounts& counts, std::uint64_t seed,
                                   const std::function<bool(const std::string&)>& fits);

/// Lines that say something, without what ends them. Throws Error with the number of the line of `where` that is no
/// UTF-8.
std::vector<std::string> text_lines(std::string_view lines, const std::string& where);
/// A task of somebody's own: a text in each line, blank lines left out. Of every four texts, in order, the first two
/// are learnt, the third is a shot, the fourth is measured. Throws Error at `where` with fewer than four, and as
/// text_lines().
TaskTexts task_of_lines(const std::string& name, std::string_view lines, const std::string& where);

}  // namespace headscope
