#pragma once
// A mechanism computed on an input with all that is told about it: steps, comparison with softmax, the recurrent form
// beside the parallel one, what to look for. What a page of the window and `headscope-cli mechanism` show.

#include <string>
#include <vector>

#include "core/attention/mechanism_compare.h"

namespace headscope {

struct MechanismReport {
  MechanismChoice choice;
  MechanismInput input;
  MechanismResult result;
  MechanismComparison comparison;
  std::vector<std::uint8_t> hidden;      ///< row-major n × m, 1 = the rule hides the cell; empty = none
  bool looks_ahead = false;              ///< some hidden cell has weight all the same
  std::optional<Recurrence> recurrence;  ///< where there is one and the rule is causal
  std::string no_recurrence;             ///< why there is none
  std::optional<double>
      recurrent_gap;  ///< largest difference of an output from the parallel form's, where there is one
  std::string look_for;
};

/// Throws Error as the mechanism does, Cancelled when input.stop asks for it.
MechanismReport report_on(const MechanismChoice& choice, MechanismInput input);

/// A worked example of the literature.
struct WorkedExample {
  std::string_view id, title;
  MechanismInput (*input)();
  std::vector<std::string> queries = {}, keys = {};  ///< what its rows are called; empty = numbers
  std::string_view words = {};                       ///< that find it
};
std::span<const WorkedExample> worked_examples();

}  // namespace headscope
