#pragma once
// The words of an edit as something to fill in. The form of an edit ("ablate zero | mean | resample SEED") is read into
// a tree of words, choices, optional parts and fields; masks and mechanisms bring the forms of their catalogues along.
// Answers to those print as a line of words, and a line of words reads back into answers, so that a chooser needs to
// know no edit by itself. Whether a line is good says parse_edit_action alone: here it is only known where in it each
// value stands. A new edit needs nothing here: its form says what its capitals are called.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/edits/edit_action.h"
#include "core/edits/edit_field.h"

namespace headscope {

/// A piece of a form. Choices, optional parts and fields have an `id` of their own, unique in the tree.
struct EditPart {
  enum class Kind { word, field, sequence, optional, choice } kind = Kind::sequence;
  int id = -1;
  std::string text = {};  ///< word: as it stands in the line
  bool glued = false;     ///< word: what follows stands right behind it, as in "map=elu"
  bool always = false;    ///< optional: written always; left out in a line it means the first of its choice
  EditField field = {};
  std::string title = {}, meaning = {}, group = {};  ///< of an alternative, or of an optional part
  std::vector<EditPart> parts = {};  ///< choice: its alternatives, sequences; else what follows one another
};

/// By a part's id: what is written in a field, the index of the alternative, "1" for an optional part that is there.
/// Answers of parts that are not chosen stay, so that one can go back to them.
using EditAnswers = std::map<int, std::string>;

/// The tree of a form; the same object for the same form.
const EditPart& grammar_of(const EditForm& form);
/// An answer for every part: those of the form's usual edit, and sensible ones for what it does not use.
EditAnswers usual_answers(const EditForm& form);
/// "ablate resample 5"
std::string words_of(const EditPart& part, const EditAnswers& answers);
/// Where the values of `words` (as text_of(action) writes them) stand; what they do not say is taken from `before`.
/// nullopt when they are not of this form.
std::optional<EditAnswers> answers_in(const EditPart& part, std::string_view words, EditAnswers before);
/// The same of an edit, in the tree of its form.
EditAnswers answers_of(const EditAction& action, EditAnswers before);

/// Number of the alternative that is chosen.
std::size_t chosen(const EditPart& choice, const EditAnswers& answers);

}  // namespace headscope
