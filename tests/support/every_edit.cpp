#include "tests/support/every_edit.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace headscope::testing {

using Part = EditPart::Kind;

void visit(const EditPart& part, const std::function<void(const EditPart&)>& see) {
  see(part);
  for (const EditPart& each : part.parts) visit(each, see);
}

void open(const EditPart& root, int id, EditAnswers& answers) {
  const std::function<bool(const EditPart&)> inside = [&](const EditPart& part) {
    if (part.id == id) return true;
    for (std::size_t k = 0; k < part.parts.size(); ++k) {
      if (!inside(part.parts[k])) continue;
      if (part.kind == Part::optional) answers[part.id] = "1";
      if (part.kind == Part::choice) answers[part.id] = std::to_string(k);
      return true;
    }
    return false;
  };
  REQUIRE(inside(root));
}

EditAnswers first_answers(const EditForm& form) {
  EditAnswers answers = usual_answers(form);
  visit(grammar_of(form), [&](const EditPart& part) {
    if (part.kind == Part::field && part.field.kind == EditField::Kind::text) answers[part.id] = "Another text.";
  });
  return answers;
}

std::vector<std::string> every_edit_line() {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) {
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  };
  for (const EditForm& form : edit_forms()) {
    const EditPart& root = grammar_of(form);
    add(words_of(root, first_answers(form)));
    visit(root, [&](const EditPart& part) {
      const std::size_t alternatives = part.kind == Part::choice ? part.parts.size() : part.kind == Part::optional;
      for (std::size_t i = 0; i < alternatives; ++i) {
        EditAnswers answers = first_answers(form);
        open(root, part.id, answers);
        answers[part.id] = part.kind == Part::optional ? "1" : std::to_string(i);
        add(words_of(root, answers));
      }
    });
  }
  return lines;
}

}  // namespace headscope::testing
