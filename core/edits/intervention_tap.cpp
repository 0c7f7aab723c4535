#include "core/edits/intervention_tap.h"

#include <algorithm>
#include <span>

namespace headscope {

bool InterventionTap::wants(Site site) const {
  return std::ranges::any_of(pass_.steps(), [&](const auto& step) {
    return pass_.reaches_layer(*step, site.layer) && (step->acts(site) || step->sees(site));
  });
}

Tensor InterventionTap::at(Site site, const Tensor& value) {
  using Turn = EditStep::Turn;
  EditedTensor edited(value);
  if (site.kind == SiteKind::z && !pass_.outputs.empty()) pass_.outputs.put(edited.write());
  const std::span steps = pass_.steps();
  const auto acts_at = [&](const EditStep& step) { return pass_.reaches_layer(step, site.layer) && step.acts(site); };
  for (const Turn turn : {Turn::placed, Turn::anew, Turn::adjusted, Turn::in_order, Turn::placed_last})
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!acts_at(*steps[i]) || steps[i]->turn(site.kind) != turn) continue;
      steps[i]->act(site, edited);
      if (!steps[i]->writes_rows()) continue;
      for (const auto& earlier : steps.first(i))
        if (earlier->holds_on() && acts_at(*earlier)) earlier->act(site, edited);
    }
  for (const auto& step : steps)
    if (pass_.reaches_layer(*step, site.layer) && step->sees(site)) step->see(site, edited.read());
  return edited.read();
}

}  // namespace headscope
