#pragma once
// What an edit is. Each kind is one file *_edit.cpp: a value that people write, an Edit around it that answers what
// others ask (so that nobody asks for its type), and the EditStep that carries it out in a pass. A kind whose values
// others make has a header with the value and `edit_of(value)`. all.h has a line for each.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/edits/edit_action.h"
#include "core/edits/edit_field.h"
#include "core/edits/edit_words.h"
#include "core/edits/head_target.h"
#include "core/edits/text_pairing.h"
#include "core/trace/model_info.h"
#include "core/trace/site.h"

namespace headscope {

class EditStep;
class Model;
class Tensor;
struct EditPlace;

/// The words of a kind, as a chooser shows them.
struct EditForm {
  std::string_view form;               ///< "ablate zero | mean | resample SEED": capitals stand for what one writes
  std::string_view lead;               ///< the words it begins with: "scale by length"
  std::string_view group;              ///< the kind of change it is: "Attention weights"
  std::string_view meaning;            ///< one sentence
  EditAction usual;                    ///< a sensible start for a chooser
  bool per_head = true;                ///< may name a head; else it concerns the whole layer
  std::vector<EditField> fields = {};  ///< titles and ranges of its own capitals
};

struct EditKind {
  EditForm form;
  /// What follows the lead. Throws Error as EditWords does.
  EditAction (*read)(EditWords& words);
};

/// What an edit takes from another run: of the text (empty: this text, before any edit) the tensor at a site, or the
/// maps when that is the pattern.
struct TakenFrom {
  std::string text;
  SiteKind site;
};

class Edit {
 public:
  Edit() = default;
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;
  virtual ~Edit() = default;

  virtual const EditKind& kind() const = 0;
  virtual bool equals(const Edit& other) const = 0;
  /// Its words, lead included.
  virtual std::string text() const = 0;
  /// Throws Error at `where` when a number is out of range.
  virtual void check(const std::string& where) const = 0;
  /// Carries it out. Throws Error when this model or text cannot follow.
  virtual std::unique_ptr<EditStep> make(EditPlace place) const = 0;

  /// Whether it concerns a layer as a whole, so that it cannot name a head.
  virtual bool whole_layer() const { return !kind().form.per_head; }
  /// Positions of queries, and of keys, that it names itself, below 0 from the end.
  virtual std::vector<int> positions() const { return {}; }
  virtual std::vector<int> key_positions() const { return {}; }
  /// What it needs that cross-attention has not, whose keys are of another text: "heads that …"; "" = nothing.
  virtual std::string needs_of_one_text() const { return ""; }
  /// What it needs that a state space has not, which has neither queries and keys nor a softmax: "heads that …"; "" =
  /// nothing.
  virtual std::string needs_of_softmax() const { return ""; }
  virtual std::vector<TakenFrom> takes() const { return {}; }
  /// The text it takes from whose positions are paired with this one's, and how; null = none.
  virtual const std::string* paired_text() const { return nullptr; }
  virtual const TextPairing* pairing() const { return nullptr; }
  /// The same edit, otherwise paired. REQUIRES pairing().
  virtual EditAction paired(TextPairing by) const;
  /// What one should know before believing its numbers, one sentence, or "".
  virtual std::string note(const HeadTarget& target, const ModelInfo& model, int tokens) const;

  /// Whether a row's result needs no other row than those before it, as they were when they were computed: then the
  /// text can be continued from a cache. `context`: the longest text. What takes from another run is paired with a
  /// whole text.
  virtual bool row_by_row(int context) const;
  /// Whether it gives rows of the pattern their weights, whatever their scores were.
  virtual bool writes_weights() const { return false; }
  /// Whether, reaching all of a rotary model, it lets texts be longer than the model was trained on.
  virtual bool extends_context() const { return false; }
  /// The output matrix `o` of a layer, all heads one above the other, as this edit has heads write with it. Throws
  /// Error as the run does.
  virtual Tensor written_with(const Model& model, int layer, const Tensor& o, const std::string& where) const;
  /// Whether what it puts in place, at all positions, is what other operations made, so that a gradient flows on.
  virtual bool passes_gradients() const { return false; }
};

/// An edit around a value; what files *_edit.cpp derive from.
template <class Value>
class EditOf : public Edit {
 public:
  explicit EditOf(Value value) : value_(std::move(value)) {}
  const Value& value() const { return value_; }
  bool equals(const Edit& other) const final {
    const auto* same = dynamic_cast<const EditOf*>(&other);
    return same && same->value_ == value_;
  }

 private:
  Value value_;
};

}  // namespace headscope
