#include "core/edits/edit_grammar.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/attention/masks.h"
#include "core/attention/mechanism.h"
#include "core/edits/edit.h"
#include "core/edits/patch_edit.h"
#include "tests/support/every_edit.h"

namespace headscope::edit_grammar_test {

using namespace testing;

namespace {
using Part = EditPart::Kind;

const EditForm& form_with(std::string_view lead) {
  return *std::ranges::find(edit_forms(), lead, [](const EditForm& form) { return form.lead; });
}

/// The first part of that kind, by its title or, of a field, its name.
const EditPart& find(const EditPart& root, Part kind, std::string_view name) {
  const EditPart* found = nullptr;
  visit(root, [&](const EditPart& part) {
    if (!found && part.kind == kind && (name.empty() || part.title == name || part.field.name == name)) found = &part;
  });
  REQUIRE_MESSAGE(found, name);
  return *found;
}

/// Through the form and back.
EditAction through_form(const EditAction& action) {
  const EditForm& form = form_of(action);
  const auto answers = answers_in(grammar_of(form), text_of(action), usual_answers(form));
  REQUIRE_MESSAGE(answers, text_of(action));
  return parse_edit_action(words_of(grammar_of(form), *answers), "edit");
}
}  // namespace

TEST_CASE("every edit's usual value goes through its form and its line and comes back the same") {
  for (const EditForm& form : edit_forms()) {
    EditAction usual = form.usual;
    if (const auto* patch = usual.as<Patch>()) usual = Patch{patch->align, patch->site, "He said \"no\"\\ and left.\n"};
    CAPTURE(text_of(usual));
    CHECK(through_form(usual) == usual);
    CHECK(form.lead == text_of(usual).substr(0, form.lead.size()));
    CHECK(form.group != "Other");
  }
}

TEST_CASE("values other than the usual ones come back as well") {
  for (const char* words : {"temperature 1e-06",
                            "mask window 4 & padding 2",
                            "mask cells 0:0 1:0-1 5-9:0-2",
                            "mask chosen 0,5 window 2",
                            "mask not (window 3 | global 1 window 2)",
                            "drop first 3 and its weight",
                            "pattern previous",
                            "weight -2 5 0.125",
                            "freeze pattern from \"a \\\"b\\\" from c\" aligned 0:0,3:4",
                            "freeze pattern from \"x\"",
                            "ablate mean",
                            "ablate resample 18000000000000000000",
                            "patch resid_mid from \"Łódź ␣\" aligned end",
                            "patch k from \"x\" aligned none",
                            "switch off ln2",
                            "position none",
                            "position rope",
                            "position rope base 500 scaling yarn 4",
                            "position rope scaling none",
                            "position rope scaling llama3 8",
                            "ablate mean",
                            "ablate mean over text",
                            "ablate mean from \"one text\" \"another\"",
                            "ablate resample 7",
                            "ablate resample 7 from \"one text\"",
                            "position sinusoidal",
                            "position alibi on top",
                            "position t5 128 bias 0.5,-1,2 on top",
                            "position chunks 32",
                            "position shift 3",
                            "singular mlp_out 1=0 2..4=0.5 9..=-2"}) {
    CAPTURE(words);
    const EditAction action = parse_edit_action(words, "edit");
    CHECK(text_of(through_form(action)) == text_of(action));
  }
  for (const MaskForm& mask : mask_forms()) {
    CAPTURE(mask.example);
    const EditAction action = parse_edit_action("mask " + std::string(mask.example), "edit");
    CHECK(through_form(action) == action);
    // In fields of its own, not as a line.
    const EditPart& root = grammar_of(form_of(action));
    const EditPart& masks = find(root, Part::choice, "");
    CHECK(masks.parts[chosen(masks, answers_of(action, {}))].title == mask.title);
  }
  for (const Mechanism& mechanism : mechanisms()) {
    if (mechanism.study) continue;
    CAPTURE(mechanism.id);
    const EditAction action = parse_edit_action("mechanism " + std::string(mechanism.id), "edit");
    CHECK(through_form(action) == action);
  }
}

TEST_CASE("every alternative of every edit, with the values that a form begins with, is a good edit") {
  for (const std::string& line : every_edit_line()) {
    CAPTURE(line);
    CHECK_NOTHROW(parse_edit_action(line, "edit"));
  }
}

TEST_CASE("a form asks for what its words say: fields in their places, with titles and ranges that are allowed") {
  const EditPart& ablate = grammar_of(form_with("ablate"));
  const EditPart& by = find(ablate, Part::choice, "");
  REQUIRE(by.parts.size() >= 3);
  CHECK(by.parts[0].title == "zero");
  CHECK(by.parts[0].parts.size() == 1);

  EditAnswers answers = usual_answers(form_with("weight"));
  const EditPart& weight = grammar_of(form_with("weight"));
  CHECK(words_of(weight, answers) == "weight -1 0 0.5");
  answers[find(weight, Part::field, "VALUE").id] = "0.75";
  CHECK(words_of(weight, answers) == "weight -1 0 0.75");

  const EditPart& position = grammar_of(form_with("position"));
  const EditPart& scaling = find(position, Part::optional, "scaling");
  const EditPart& how = find(scaling, Part::choice, "");
  REQUIRE(how.parts.size() == 5);
  CHECK(how.parts[0].title == "none");
  CHECK(how.parts[0].parts.size() == 1);
  CHECK(how.parts[3].title == "yarn");
  CHECK(how.parts[3].parts.size() == 3);  // its factor, and its ramp

  for (const EditForm& form : edit_forms()) {
    std::set<int> ids;
    visit(grammar_of(form), [&](const EditPart& part) {
      if (part.kind != Part::field) return;
      const EditField& field = part.field;
      CAPTURE(form.form);
      CAPTURE(field.name);
      CHECK_FALSE(field.title.empty());
      ids.insert(part.id);
      // Both ends of a slider can be written.
      if (field.high <= field.low) return;
      for (const double end : {field.low, field.high}) {
        EditAnswers at = first_answers(form);
        open(grammar_of(form), part.id, at);
        at[part.id] =
            field.kind == EditField::Kind::whole ? std::to_string(static_cast<long>(end)) : std::to_string(end);
        CAPTURE(at[part.id]);
        CHECK_NOTHROW(parse_edit_action(words_of(grammar_of(form), at), "edit"));
      }
    });
  }
}

TEST_CASE("what is not chosen keeps its answer") {
  const EditForm& form = form_with("ablate");
  EditAnswers answers = answers_of(parse_edit_action("ablate resample 7", "edit"), usual_answers(form));
  answers = answers_of(parse_edit_action("ablate zero", "edit"), answers);
  CHECK(words_of(grammar_of(form), answers) == "ablate zero");
  const EditPart& ways = find(grammar_of(form), Part::choice, "");
  answers[ways.id] = std::to_string(ways.parts.size() - 1);  // the last: resample
  CHECK(words_of(grammar_of(form), answers).starts_with("ablate resample 7"));
}

}  // namespace headscope::edit_grammar_test
