#pragma once
// What an intervention does, as a plain value: one of the structs of the files *_edit.h here, held whatever its kind.
// Every action has words ("ablate zero", "weight 5 2 0.8") that read back to the same value; those words are its form
// in files, on the command line and on screen. What an edit is, is told in edit.h; all.h lists them.

#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace headscope {

class Edit;
template <class Value>
class EditOf;
struct EditForm;
class EditAction;

/// Has `edit_of(value)`, which its file declares.
template <class Value>
concept EditValue = !std::same_as<Value, EditAction> && requires(Value value) {
  { edit_of(value) } -> std::same_as<std::shared_ptr<const Edit>>;
};

class EditAction {
 public:
  EditAction();  ///< "temperature 1": changes nothing
  // Not explicit: a value is an action.
  template <EditValue Value>
  EditAction(Value value) : edit_(edit_of(std::move(value))) {}

  /// The value, when it is of this kind, else null.
  template <class Value>
  const Value* as() const {
    const auto* edit = dynamic_cast<const EditOf<Value>*>(edit_.get());
    return edit ? &edit->value() : nullptr;
  }
  const Edit* operator->() const { return edit_.get(); }
  const Edit& operator*() const { return *edit_; }
  bool operator==(const EditAction& other) const;

 private:
  std::shared_ptr<const Edit> edit_;
};

/// Every kind of edit, in the order in which a chooser lists them.
std::span<const std::reference_wrapper<const EditForm>> edit_forms();
const EditForm& form_of(const EditAction& action);

/// "ablate zero"; parse_edit_action reads it back to an equal value. Throws Error at `where`: lists the forms for an
/// unknown word, names the bounds for a number outside them.
std::string text_of(const EditAction& action);
EditAction parse_edit_action(std::string_view words, const std::string& where);

/// Throws Error at `where` when a number is out of range or a mask's spec does not parse.
void check(const EditAction& action, const std::string& where);

}  // namespace headscope
