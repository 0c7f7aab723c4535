#pragma once
// Beside the model's name: whether it computes here what its definition says. Thread rule: the UI thread.

#include <optional>
#include <string>
#include <vector>

#include "app/state/certificate_controller.h"
#include "app/widgets/ui.h"

namespace headscope {

struct ModelBadge {
  enum class Look { unknown, working, good, bad } look = Look::unknown;
  std::string words, brief;             ///< "checked, max |Δ| 3.4e-6"; "3.4e-6"
  float progress = 0;                   ///< of what is under way, 0 … 1
  std::vector<std::string> provenance;  ///< for the tooltip
};
/// nullopt while no model is open.
std::optional<ModelBadge> model_badge_of(const CertificateController& certificates);

/// Window pixels; `brief`: in the few words.
float model_badge_width(const Ui& ui, const ModelBadge& badge, bool brief);
/// A mark and its words, named "model check"; true when it was pressed.
bool model_badge(const Ui& ui, const ModelBadge& badge, bool brief, float height);

}  // namespace headscope
