#pragma once
// The Mechanisms workspace without its window: which mechanism with which values on which queries, keys and values, and
// what came of it. Thread rule: the UI thread; the work is jobs of the worker.

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/render/mechanism_steps_picture.h"
#include "app/state/answer.h"
#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "app/state/sweep_controller.h"
#include "core/analysis/mechanism_timing.h"
#include "core/attention/mechanism_report.h"
#include "core/base/words.h"

namespace headscope {

/// What a mechanism is given.
struct MechanismSource {
  enum class Kind { head, random, hand } kind = Kind::head;
  // of a head
  int first = 24;  ///< tokens of the text, from its beginning
  std::string
      other;  ///< whose keys and values it asks where a mechanism asks another text; "" = the text is cut in two
  // random
  int n = 24, d = 32;
  double spread = 1;  ///< standard deviation of every number
  std::uint64_t seed = 1;
  // random and by hand
  std::string mask = "causal";
  // by hand: small matrices
  Tensor q, k, v;
  double scale = 0;     ///< 0 = 1/√d
  std::string example;  ///< id of the worked example whose numbers these are; "" = one's own
  MatricesByHand by_hand() const { return {q, k, v, scale, mask, example}; }
};

/// What the page shows. Immutable.
struct MechanismPage : MechanismReport {
  MechanismSource::Kind source = MechanismSource::Kind::head;
  HeadId head;                         ///< where q, k, v come from, of a head
  std::shared_ptr<const Trace> trace;  ///< whose tokens name the positions; null otherwise
  Stack stack = Stack::only;           ///< that the head is of
  std::shared_ptr<const Trace> other;  ///< of the keys and values, where they are of another text
  AxisNames names;                     ///< of the positions; empty = by their numbers
  bool shares = false;                 ///< every effective weight lies within 0 … 1: one scale with softmax
  double most_different = 0;           ///< largest |this − softmax| of the weights
};
/// Works n²: for the worker.
struct MechanismOrigin {
  MechanismSource::Kind source = MechanismSource::Kind::head;
  HeadId head = {};
  std::shared_ptr<const Trace> trace = {}, other = {};
  Stack stack = Stack::only;
  std::string example = {};  ///< by hand: the worked example that it is
};
std::shared_ptr<const MechanismPage> page_of(MechanismReport report, const MechanismOrigin& from);

/// A cell of a matrix of the steps.
struct MechanismCell {
  std::string step;  ///< its id
  Index row = 0, column = 0;
  bool operator==(const MechanismCell&) const = default;
};
/// Whose arithmetic is told before anyone has chosen one: an output that few terms make up, else the largest weight of
/// the last row, else the largest number of the last row of the last step that tells how its cells came about. Nothing
/// where none does.
std::optional<MechanismCell> telling_cell(const MechanismPage& page);

/// A position of the page's text as people read it: "fox 3"; row or column of a step likewise.
std::string place(const MechanismPage& page, MechanismAxis axis, Index position);
std::string row_place(const MechanismPage& page, const MechanismStep& step, Index row);
std::string column_place(const MechanismPage& page, const MechanismStep& step, Index column);

MechanismInput input_of(const MechanismSource& source);
MatricesByHand matrices_of(const WorkedExample& example);

/// `cost`: of a whole model of such layers, where the mechanism is one of a hybrid.
enum class MechanismView { compare, steps, recurrent, model, cost };
/// "compare", "steps", "recurrent", "model", "cost"; nullopt for anything else.
std::optional<MechanismView> parse_mechanism_view(std::string_view text);

class MechanismController {
 public:
  using View = MechanismView;

  MechanismController(JobRunner& jobs, DocumentEditor& editor, const RunController& run);
  MechanismController(const MechanismController&) = delete;
  MechanismController& operator=(const MechanismController&) = delete;

  /// Once per frame; computes only while `shown`, and measures times only while no button is `held`.
  void frame(bool shown, bool held);

  /// The catalogue's entry that is on the page; an unknown id is passed over.
  void choose(const std::string& id);
  const Mechanism& mechanism() const { return *mechanism_; }
  const MechanismValues& values() const { return values_.at(std::string(mechanism_->id)); }
  MechanismChoice choice() const { return {mechanism_, values()}; }
  /// Also changes the heads of the model that run this mechanism.
  void set_value(std::string_view name, double value);
  void reset_values();
  /// Whose queries, keys and values are taken: the one that is selected; a softer one while nobody has chosen any,
  /// since most mechanisms differ from softmax where its weights are soft (run_controller.h).
  HeadId head() const;
  MechanismSource& source() { return source_; }  ///< call changed_source() after writing
  void changed_source() { ++source_version_; }
  // What is made by hand is part of the document: undo takes it back.
  void use_example(const WorkedExample& example);
  /// One's own matrices by hand, scaled by 1/√d whatever the example before them had.
  void set_numbers(const Tensor& q, const Tensor& k, const Tensor& v);
  void set_mask(const std::string& spec);  ///< of random and of hand-made matrices
  /// Raised whenever the matrices by hand become others.
  std::uint64_t numbers_version() const { return numbers_version_; }

  /// A line of the times that are measured unasked ends with the first point that takes longer.
  double unasked_seconds = 0.1;
  View view = View::compare;
  static constexpr int last_token = std::numeric_limits<int>::max();
  int token = last_token;  ///< of the recurrent view
  Index shown_token() const { return std::min<Index>(token, page() ? page()->input.n() - 1 : 0); }
  bool playing = false;                 ///< the recurrent view runs through the tokens
  std::set<std::string> folded;         ///< ids of the steps of which the page shows the title alone
  std::optional<MechanismCell> pinned;  ///< whose arithmetic stays on the page

  /// The newest page that could be computed; null before the first. It may still be of another mechanism.
  const std::shared_ptr<const MechanismPage>& page() const { return page_.last(); }
  /// Nothing that was asked for is still to come.
  bool current() const { return page() && !page_.under_way(); }
  std::string error() const { return page_.error(); }  ///< why the page cannot follow what was asked for
  const std::shared_ptr<const MechanismTimes>& times() const { return times_; }
  SweepController& timing() { return timing_; }
  void measure(double most_seconds);

  /// Puts this mechanism into (or takes it out of) heads of the model, as an edit: undoable.
  void swap_in(const std::vector<HeadId>& heads, bool in);

 private:
  struct PageOf {
    std::string choice;
    std::uint64_t source;        // version
    std::optional<HeadId> head;  // that it is of …
    bool crosses = false, projections = false;
    std::shared_ptr<const TracedRun> run;  // … or whose vocabulary it reads
    bool operator==(const PageOf&) const = default;
  };
  void take(const MatricesByHand& matrices);
  void keep();
  void ask();

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  const Mechanism* mechanism_;
  std::map<std::string, MechanismValues> values_;
  MechanismSource source_;
  std::uint64_t source_version_ = 0, numbers_version_ = 0;
  std::shared_ptr<const MatricesByHand> by_hand_;  // of the document, as last seen
  Answer<PageOf, MechanismPage> page_{{"mechanism", to_say("computing the mechanism")},
                                      Answer<PageOf, MechanismPage>::OnFailure::keep};
  SweepController timing_;
  std::string timed_;  // what the times are of
  std::shared_ptr<const MechanismTimes> times_;
};

}  // namespace headscope
