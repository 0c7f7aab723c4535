#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/edits/edit.h"
#include "core/edits/text_pairing.h"
#include "core/trace/site.h"

namespace headscope {

/// Activation patching (Vig et al., Causal Mediation Analysis, 2020; Meng et al., Locating and Editing Factual
/// Associations, 2022): the activations of another text at aligned positions.
struct Patch {
  using Align = TextPairing::By;
  TextPairing align = {};
  SiteKind site = SiteKind::z;
  std::string text;
  bool operator==(const Patch&) const = default;
};
std::shared_ptr<const Edit> edit_of(Patch value);

/// The sites that can be patched.
std::span<const SiteKind> patch_sites();

}  // namespace headscope
