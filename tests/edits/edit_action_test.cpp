#include "core/edits/edit_action.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/drop_first_edit.h"
#include "core/edits/edit.h"
#include "core/edits/freeze_pattern_edit.h"
#include "core/edits/intervention.h"
#include "core/edits/mask_edit.h"
#include "core/edits/mechanism_edit.h"
#include "core/edits/patch_edit.h"
#include "core/edits/pattern_edit.h"
#include "core/edits/switch_off_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/edits/weight_edit.h"

namespace headscope::edit_action_test {

namespace {
std::string refusal(const char* words) {
  try {
    parse_edit_action(words, "edit");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("every action's words read back to the same value") {
  std::vector<EditAction> actions{SetTemperature{0.1},
                                  SetTemperature{1.0 / 3},
                                  SetMask{"window 4 & padding 2"},
                                  DropFirst{3, false},
                                  SetWeight{-2, 5, 0.125},
                                  SwapMechanism{"entmax alpha=1.25"},
                                  FreezePattern{"He said \"no\"\\ and left.\n"},
                                  Ablate{Ablate::By::mean},
                                  Ablate{Ablate::By::mean, 1, true},
                                  Ablate{Ablate::By::mean, 1, false, {"one", "two \"and\" from\n", "over text"}},
                                  Ablate{Ablate::By::resample, 3, false, {"from \"x\""}},
                                  Ablate{Ablate::By::resample, 18'000'000'000'000'000'000u},
                                  Patch{Patch::Align::tokens, SiteKind::resid_mid, "Łódź ␣ \"x\""},
                                  Patch{Patch::Align::end, SiteKind::k, "a from b"}};
  for (const EditForm& form : edit_forms())
    if (!form.usual.as<Patch>()) actions.push_back(form.usual);
  for (const ForcePattern::Shape shape : {ForcePattern::Shape::uniform, ForcePattern::Shape::previous,
                                          ForcePattern::Shape::self, ForcePattern::Shape::first})
    actions.push_back(ForcePattern{shape});
  for (const SwitchOff::Part part :
       {SwitchOff::Part::attention, SwitchOff::Part::mlp, SwitchOff::Part::ln1, SwitchOff::Part::ln2})
    actions.push_back(SwitchOff{part});
  for (const SiteKind site : patch_sites()) actions.push_back(Patch{Patch::Align::start, site, "x"});
  for (const EditAction& action : actions) {
    CAPTURE(text_of(action));
    CHECK(parse_edit_action(text_of(action), "edit") == action);
  }
  for (const EditForm& form : edit_forms()) {
    CHECK(&form_of(form.usual) == &form);
    CHECK(form.form.starts_with(form.lead));
  }
}

TEST_CASE("words that are no action are refused with what would be") {
  CHECK(refusal("abate zero").find("edits are: temperature TAU; mask SPEC") != std::string::npos);
  CHECK(refusal("ablate all")
            .find("expected ablate zero | mean | mean over text | mean from \"TEXT\" … | resample SEED ") !=
        std::string::npos);
  CHECK(refusal("ablate zero now").find("found \"now\"") != std::string::npos);
  CHECK(refusal("ablate zero from \"x\"").find("found \"from") != std::string::npos);
  CHECK(refusal("ablate mean over").find("found \"over\"") != std::string::npos);
  CHECK(refusal("ablate mean over text from \"x\"").find("found \"from") != std::string::npos);
  CHECK(refusal("ablate mean from").find("ablate zero | mean") != std::string::npos);
  CHECK(refusal("ablate mean from \"\"").find("reference texts") != std::string::npos);
  CHECK(refusal("ablate mean from \"a\" b").find("found \"b\"") != std::string::npos);
  CHECK(refusal("weight 1 2").find("weight QUERY KEY VALUE") != std::string::npos);
  CHECK(refusal("weight 1 2 1.5").find("a weight from 0 to 1, found 1.5") != std::string::npos);
  CHECK(refusal("patch z from \"x").find("patch SITE from") != std::string::npos);
  CHECK(refusal("patch z from \"\"").find("a text to patch from") != std::string::npos);
  CHECK(refusal("patch logits from \"x\"").find("found \"logits\"") != std::string::npos);
  CHECK(refusal("drop first 0").find("at least 1 token") != std::string::npos);
  CHECK(refusal("scale by length 1").find("from 2") != std::string::npos);
  CHECK(refusal("mechanism lineer").find("linear") != std::string::npos);
  CHECK(refusal("").find("an edit") != std::string::npos);
}

TEST_CASE("targets with positions read back") {
  for (const char* text : {"*", "1.0", "2.*", "*.3", "1.0@3", "*@-1", "1.*@2..5", "*@3..", "0.1@-4..-2"})
    CHECK(text_of(parse_head_target(text, "edit")) == text);
  CHECK(parse_head_target("1@0..", "edit") == HeadTarget{1, {}, PositionRange{0, -1}});
  for (const char* bad : {"1.0@", "1.0@x", "@", "1.0@3..x", "1.0@..3"})
    CHECK_THROWS_AS(parse_head_target(bad, "edit"), Error);
  const Intervention edit = parse_intervention("1.*@2..5: switch off mlp", "--edit");
  CHECK(describe(edit) == "1.*@2..5: switch off mlp");
  CHECK_THROWS_AS(parse_intervention("1.0 ablate zero", "--edit"), Error);
}

}  // namespace headscope::edit_action_test
