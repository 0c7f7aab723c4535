#pragma once
// What the Positions workspace knows, without a window: what is looked at, the vectors of the selected head before any
// rotation, and what another way of knowing positions does to the model. Work runs on the worker; the last
// good results stay until newer ones come. Thread rule: the UI thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/render/disentangled_picture.h"
#include "app/render/rotary_picture.h"
#include "app/state/answer.h"
#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "core/analysis/naive_codes.h"
#include "core/analysis/past_context.h"
#include "core/attention/rotary.h"
#include "core/base/words.h"
#include "core/edits/position_edit.h"

namespace headscope {

/// What is looked at. Plain values; panels write them.
struct PositionsView {
  std::string method = "rope";  ///< id of position_methods(); the three relative ones have pages of one card
  enum class Rope { dials, map, wavelengths } rope = Rope::dials;
  std::optional<Index> query, key;  ///< absent = the pinned cell, else the last token and what it sees most of
  int shift = 0;
  double base = 0;  ///< 0 = the model's own
  RotaryConfig::Scaling scaling = RotaryConfig::Scaling::none;
  double factor = 4;
  RotaryConfig::Ramp ramp = RotaryConfig::Ramp::whole_pairs;  ///< of YaRN
  RotaryLayout layout = RotaryLayout::half_split;  ///< of random and typed vectors; a model's own is half-split
  enum class Source { head, random, typed } source = Source::head;
  std::uint64_t seed = 1;
  std::string typed_query = "1 0 1 0 1 0 1 0", typed_key = "1 0 1 0 1 0 1 0";
  bool past_context = false;                          ///< loss per position of texts longer than those of training
  int table_shift = 0;                                ///< learned positions
  bool centered = false;                              ///< their likeness, without what all share
  bool in_model = true;                               ///< whether what is chosen runs in the model
  int dimensions = 32, positions = 64, position = 5;  ///< sinusoids
  int window = 4;                                     ///< Shaw
  int buckets = 32, max_distance = 128;               ///< T5
  bool both_directions = false;
  bool fitted = false;  ///< T5's numbers from the selected head, in the model
  int chunk = 0;        ///< dual chunk; 0 = three quarters of the context
  int head = 0;         ///< ALiBi: whose map
  bool on_top = false;  ///< ALiBi: beside the model's own positions
};

/// Whether a method's page (position_methods()) shows queries and keys: of a head, random or typed.
bool needs_vectors(std::string_view method);
/// Numbers that go with each other only: sines in pairs, buckets in halves of two halves, and a largest distance behind
/// those that have a bucket of their own.
void keep_possible(PositionsView& view);

/// Queries and keys of one head, as they are before a rotation.
struct HeadVectors {
  HeadId head;
  std::shared_ptr<const Trace> of;  ///< the run on screen; its tokens name the rows
  Tensor q, k;                      ///< (token, d_head)
  Tensor turned_q, turned_k;        ///< as the pass went on with; undefined where the model does not rotate
  double scale = 1;
  std::shared_ptr<const DisentangledScores> disentangled;  ///< of a model whose distances have vectors (DeBERTa)
  std::string source;                                      ///< "blocks.2.attn.hook_q[:, 3, :], f32"
  Index tokens() const { return q.dim(0); }
};

/// The model with other positions, on the text on screen.
struct PositionsEffect {
  std::shared_ptr<const Trace> of;  ///< the trace on screen, without it
  std::string words;                ///< of the edit
  std::vector<double> after;        ///< loss per token, nats
  double kl = 0;                    ///< of the next-token distributions after the last token
};

/// Without positions and mask: how far the outputs of the permuted text are from the permuted outputs.
struct PermutedRun {
  std::vector<std::string> labels;           ///< of the text's first tokens
  std::vector<int> order;                    ///< the permutation: token order[i] stands at i
  std::vector<double> open, causal, placed;  ///< per token: largest difference of the last residual stream
  double size = 0;                           ///< mean length of that stream's rows, to compare with
};

class PositionsController {
 public:
  PositionsController(JobRunner& jobs, DocumentEditor& editor, const RunController& run)
      : jobs_(jobs), editor_(editor), run_(run) {}
  const Results& results() const { return run_.results(); }
  PositionsView view;

  /// Every frame that the workspace is shown: asks for what is out of date.
  void update();

  /// nullptr while nothing has come. May belong to an earlier run; `of` says so.
  std::shared_ptr<const HeadVectors> vectors() const { return vectors_.last() ? vectors_.last()->vectors : nullptr; }
  /// Why vectors() of the chosen head are not asked for, to be said(); null where they are.
  const char* refusal() const;
  const std::shared_ptr<const PositionsEffect>& effect() const { return effect_.last(); }
  const std::shared_ptr<const LongRun>& long_run() const { return long_.last(); }
  const std::shared_ptr<const NaiveCodes>& naive() const { return naive_.last(); }
  const std::shared_ptr<const PermutedRun>& permuted() const { return permuted_.last(); }
  /// T5's numbers from these vectors; empty on other pages.
  std::vector<float> fitted() const { return vectors_.last() ? vectors_.last()->fitted : std::vector<float>(); }

  /// Positions of the query and the key, inside the text; the key never after the query.
  Index query() const;
  Index key() const;
  /// The rotation that the page shows: base and scaling as chosen, on the model's own.
  RotaryConfig rotary() const;
  RotaryConfig own_rotary() const;
  bool changed() const { return !(rotary() == own_rotary()); }
  /// This query and this key as that rotation turns them; the same object while nothing of it changes. Null before
  /// vectors() have come.
  std::shared_ptr<const RotaryView> rotary_view();
  /// Tokens in a chunk of dual chunk attention, below the model's context.
  int chunk() const;
  int context() const;  ///< of the open model; 2 without one
  /// What the page's choice is as an edit; nullopt when it is what the model does anyway.
  std::optional<SetPositions> edit() const;
  /// Puts it among the document's edits, so that every workspace shows it: one step of undo.
  void keep();

 private:
  using Run = std::shared_ptr<const TracedRun>;
  struct VectorsOf {
    Run run;
    PositionsView::Source source;
    HeadId head;
    std::uint64_t seed;
    std::string query, key;  // typed
    bool fits;               // T5's numbers
    int buckets, max_distance;
    bool operator==(const VectorsOf&) const = default;
  };
  struct Vectors {
    std::shared_ptr<const HeadVectors> vectors;
    std::vector<float> fitted;
  };
  struct EffectOf {
    Run run;
    SetPositions edit;
    bool operator==(const EffectOf&) const = default;
  };
  struct LongRunOf {
    std::shared_ptr<const Model> model;
    std::vector<Intervention> edits;
    std::vector<std::int32_t> text;  ///< where it is longer than the trained length
    PastContextSettings settings;
    bool operator==(const LongRunOf&) const = default;
  };
  void ask_vectors();
  void ask_effect();
  void ask_long();
  void ask_permuted();
  void ask_naive();

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  Answer<VectorsOf, Vectors> vectors_{{"positions.vectors", to_say("comparing positions")}};
  Answer<EffectOf, PositionsEffect> effect_{{"positions.effect", to_say("comparing positions")}};
  Answer<LongRunOf, LongRun> long_{{"positions.long", to_say("comparing positions")}, Holds::numbers};
  Answer<std::shared_ptr<const Model>, NaiveCodes> naive_{{"positions.naive", to_say("comparing positions")}};
  Answer<Run, PermutedRun> permuted_{{"positions.permuted", to_say("comparing positions")}, Holds::numbers};
  std::shared_ptr<const RotaryView> rotary_;  // as last asked for …
  std::string rotary_key_;                    // … with these options
  std::shared_ptr<const HeadVectors> rotary_of_;
};

}  // namespace headscope
