#pragma once
// A step of a lesson told of a run: its prose with the numbers in it, and what it asks, answered by the model.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/lesson/lesson.h"
#include "core/lesson/run_terms.h"

namespace headscope {

struct LessonTold {
  std::vector<std::string> prose = {};  ///< paragraphs
  std::vector<std::string> notes = {};  ///< likewise, of who presents it
  std::string ask = {};
  std::vector<std::string> choices = {};
  std::vector<std::string> tokens = {};     ///< that can be looked at, as labels
  int layers = 0, heads = 0;                ///< of the stack that the step speaks of
  std::vector<int> heads_of = {};           ///< of each layer
  std::optional<HeadId> head = {};          ///< that the step shows …
  std::optional<Index> row = {}, key = {};  ///< … with this row, and in it this cell
};
/// Throws Error where a formula, a place or a head does not exist in this run.
LessonTold tell(const LessonStep& step, const std::shared_ptr<LessonRun>& run);

/// A position, a head, a number, or the choice's place in the list.
using LessonGuess = std::variant<Index, HeadId, double>;

/// One of the kind that the question asks for, for who wants the answer alone.
LessonGuess any_guess(const LessonQuestion& question);

struct LessonReply {
  bool right = false;
  std::string truth, guess;  ///< in words: "Anna, position 12"
  double chance = 0;         ///< of being right by guessing; NaN for a number
  std::string because;
};
/// What somebody typed as a number, in the ways that people write one: "1,500" and "0,5", "−6.5", "35 000". Nothing
/// where it is none.
std::optional<double> number_typed(std::string text);

/// What the model says of it now. Of `until` the guess is not looked at: the run is. Throws Error as tell() does, and
/// where the answer is none of what may be answered.
LessonReply answered(const LessonStep& step, const std::shared_ptr<LessonRun>& run, const LessonGuess& guess);

/// What is not true that `expect` says, or what is wrong with the step; empty = all is well.
std::vector<std::string> faults_of(const LessonStep& step, const std::shared_ptr<LessonRun>& run);

}  // namespace headscope
