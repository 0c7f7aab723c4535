#pragma once
// Carries interventions out. Masks, temperatures and forced patterns become rules, which leave the fused pass and
// factored maps as they are; weights, ablations and patches replace tensors at their sites.

#include <vector>

#include "core/edits/edit_pass.h"
#include "core/edits/edit_scene.h"
#include "core/edits/intervention.h"
#include "core/trace/tap.h"

namespace headscope {

/// Of one pass over the whole text, or over what of it a cache does not hold (then: edits that look at no other row).
/// Edits that make the rule by which a head looks act together (EditPass): of one kind the last that reaches a row
/// holds there. All other edits act in their order, on what that gives.
class InterventionTap final : public Tap {
 public:
  /// Throws as check() and check_targets() do. `scene` is kept by reference.
  InterventionTap(const std::vector<Intervention>& edits, const EditScene& scene) : pass_(edits, scene) {}
  bool empty() const { return pass_.steps().empty(); }
  HeadRule head_rule(HeadId head, HeadRule usual) const override { return pass_.head_rule(head, std::move(usual)); }
  bool wants(Site site) const override;
  Tensor at(Site site, const Tensor& value) override;

 private:
  mutable EditPass pass_;  // the const head_rule(), on the thread that runs the pass, notes how heads look
};

}  // namespace headscope
