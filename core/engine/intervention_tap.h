#pragma once
// Carries interventions out. Masks, temperatures and forced patterns become rules, which leave the fused pass and
// factored maps as they are; weights, ablations and patches replace tensors at their sites.

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/engine/edit_rows.h"
#include "core/engine/held_edits.h"
#include "core/engine/intervention.h"
#include "core/engine/position_tap.h"
#include "core/engine/weight_edit.h"
#include "core/model/weights.h"
#include "core/trace/tap.h"
#include "core/trace/trace.h"

namespace headscope {

struct MechanismChoice;

/// What an edit needs of another run: of the text it takes activations from, or (text "") of this text before any edit.
struct SourceNeed {
  std::string text;
  CaptureSpec capture;  ///< sites, and maps where a pattern is frozen
};
/// What the enabled edits need, each text once.
std::vector<SourceNeed> sources_of(const std::vector<Intervention>& edits);

/// The runs themselves, by text.
using EditSources = std::map<std::string, std::shared_ptr<const Trace>>;

/// The run that the edits change.
struct EditScene {
  ModelDims dims;
  std::vector<std::int32_t> ids;  ///< of the text
  EditSources sources;            ///< what sources_of() asks for
  const Model* model = nullptr;   ///< whose pass it is: edits of positions and of keys look at its weights
  int first_row = 0;              ///< position of the pass's first row: the tokens before it lie in a cache
  Backend* backend = nullptr;     ///< of the pass: computes the norms that an edit moves, so that a tape sees them
  bool heads_apart = false;       ///< somebody wants what each head adds (the site `result`)
  std::stop_token stop = {};      ///< of the pass: mechanisms that take long look at it and throw Cancelled
};

/// For every position of a text the one of `other` that stands for it, or −1. Throws Error when a pair made by hand
/// lies outside the texts.
std::vector<int> align_positions(const TextPairing& pairing, const std::vector<std::int32_t>& ids,
                                 const std::vector<std::int32_t>& other);

/// Of one pass over the whole text, or over what of it a cache does not hold (then: edits that look at no other row).
/// Edits that make the rule by which a head looks (held_edits.h: mask, positions, first tokens dropped, pattern,
/// scaling, temperature) act together: of one kind the last that reaches a row holds there. Scores are ((q·k/√d +
/// biases) · ln n / ln m) / τ, over the keys that mask and drop leave. All other edits act in their order, on what that
/// gives.
class InterventionTap final : public Tap {
 public:
  /// Throws as check() and check_targets() do. `scene` is kept by reference.
  InterventionTap(const std::vector<Intervention>& edits, const EditScene& scene);
  bool empty() const { return steps_.empty(); }
  HeadRule head_rule(HeadId head, HeadRule usual) const override;
  bool wants(Site site) const override;
  Tensor at(Site site, const Tensor& value) override;

 private:
  struct Step {
    HeadTarget target;
    EditAction action;
    int first = 0, last = 0;                           // positions reached, both included
    std::shared_ptr<const AttentionRule> mask = {};    // SetMask
    std::shared_ptr<const Trace> source = {};          // FreezePattern, Patch
    std::vector<const Trace*> references = {};         // Ablate: of its reference texts, which the scene holds
    std::vector<int> partner = {};                     // of the source: its position by position, or −1
    std::map<int, LatentProjector> latent = {};        // LatentKeys: by layer
    std::map<int, Projection> scaled = {};             // ScaleSingular: by layer
    bool hashes = false;                               // SetMask: looks at queries and keys
    std::shared_ptr<const MechanismChoice> swap = {};  // SwapMechanism
    bool after_softmax = false;  // SetWeight: an edit before it writes the row's weights, whatever its scores
  };
  bool acts_at(const Step& step, Site site) const;
  /// Whether the step multiplies what stands at this site by a matrix of its own.
  bool multiplies(const Step& step, Site site) const;
  /// Where queries and keys stand as they meet: after rotation, in a model that rotates.
  bool meeting(SiteKind site) const;
  std::shared_ptr<const AttentionRule> mask_of(const Step& step, int head) const;
  bool hides_scores(const Step& earlier, const Step& weight) const;
  /// What holds in the rows of a head.
  std::vector<HeldRows> held(HeadId head) const;
  template <class Action>
  const Action* action(const HeldRows& rows, HeldKind kind) const;  // null = none; intervention_rules.cpp
  double temperature(const HeldRows& rows) const;
  /// An edit that multiplies scores or adds to them, temperature apart.
  std::optional<HeldKind> score_edit(const HeldRows& rows) const;
  /// Who sees whom: `rule`, or the mask that stands in its place, without dropped tokens.
  RulePtr visible_rule(const HeldRows& rows, int head, RulePtr rule) const;
  /// The same with all that changes scores but temperature.
  RulePtr score_rule(const HeldRows& rows, int head, RulePtr visible) const;
  /// Positions at a site that they change.
  void place(Site site, Tensor& value);
  void act(const Step& step, Site site, Tensor& value);
  /// Puts the mechanism's effective weights into `pattern` (head, query, key), and keeps its output for the site z
  /// where that is more than weights · v.
  void swap(const Step& step, int layer, Tensor& pattern);
  /// Throws Error when an edit of scores reaches rows whose mechanism has no scores that could follow it.
  void check_scores_heard(const Step& step, HeadId head) const;
  bool swaps(int layer) const;
  /// PostNorm at a norm's site: what stood before it. Behind a sum: the norm of it. Rows that the step does not reach
  /// are `value`'s own, and so are those that `done` marks; what it reaches is marked.
  Tensor post_norm(const Step& step, Site site, const Tensor& value, std::vector<std::uint8_t>& done);

  const EditScene& scene_;
  std::vector<Step> steps_;
  std::vector<PlacedEdit> placed_;     // the same, as held_rows() reads them
  Tensor norm_input_;                  // what the next norm is given, while one is switched off or moved
  BeforeRotation before_rotation_;     // while positions are edited
  BeforeRotation meeting_;             // what masks that hash queries and keys look at
  bool rotates_ = false;               // some edit needs that
  std::map<SiteKind, Tensor> inputs_;  // of this layer's matrices, while an edit multiplies by others
  std::vector<std::pair<NormWeights, NormWeights>> norms_;  // by layer: the block's two, while they are moved
  // Of the layer that is being computed: q, k (after rotation), v, how every head looks, and the outputs that a swapped
  // mechanism's weights do not tell.
  Tensor q_, k_, v_;
  struct Looks {
    HeadRule rule;          // with all edits
    RulePtr usual;          // without any
    float temperature = 1;  // what the scale was divided by
  };
  mutable std::vector<Looks> looks_;  // filled by the const head_rule(), on the thread that runs the pass
  OwnOutputs outputs_;
};

}  // namespace headscope
