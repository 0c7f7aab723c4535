#include "core/edits/edit_action.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "core/base/error.h"
#include "core/edits/all.h"
#include "core/edits/edit.h"
#include "core/edits/temperature_edit.h"
#include "core/tensor/tensor.h"

namespace headscope {

EditAction::EditAction() : EditAction(SetTemperature{}) {}

bool EditAction::operator==(const EditAction& other) const {
  return edit_ == other.edit_ || edit_->equals(*other.edit_);
}

namespace {
const std::vector<const EditKind*>& kinds() {
  static const std::vector<const EditKind*> all{
#define HEADSCOPE_KIND(id) &id##_edit(),
      HEADSCOPE_EDITS(HEADSCOPE_KIND)
#undef HEADSCOPE_KIND
  };
  return all;
}
}  // namespace

std::span<const std::reference_wrapper<const EditForm>> edit_forms() {
  static const auto forms = [] {
    std::vector<std::reference_wrapper<const EditForm>> all;
    for (const EditKind* kind : kinds()) all.emplace_back(kind->form);
    return all;
  }();
  return forms;
}

const EditForm& form_of(const EditAction& action) {
  return action->kind().form;
}

std::string text_of(const EditAction& action) {
  return action->text();
}

EditAction parse_edit_action(std::string_view text, const std::string& where) {
  for (const EditKind* kind : kinds()) {
    EditWords words(text, where, kind->form.form);
    if (!words.take(kind->form.lead)) continue;
    EditAction action = kind->read(words);
    words.end();
    check(action, where);
    return action;
  }
  std::vector<std::string_view> forms;
  for (const EditForm& form : edit_forms()) forms.push_back(form.form);
  throw Error(where, "an edit", fmt::format("\"{}\"", text), fmt::format("edits are: {}", fmt::join(forms, "; ")));
}

void check(const EditAction& action, const std::string& where) {
  action->check(where);
}

EditAction Edit::paired(TextPairing) const {
  throw Error("edit " + text(), "one that takes from another text", "none");
}

std::string Edit::note(const HeadTarget&, const ModelInfo&, int) const {
  return "";
}

bool Edit::row_by_row(int) const {
  return false;
}

Tensor Edit::written_with(const Model&, int, const Tensor& o, const std::string&) const {
  return o;
}

}  // namespace headscope
