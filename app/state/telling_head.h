#pragma once
// Which head to show first: one that says something about this text, or about what is done with weights.

#include <optional>

#include "app/state/results.h"

namespace headscope {

/// The head with the most evidence above chance, (score − chance) / (1 − chance), for the most interesting class that
/// some head shows clearly (at least half of what is possible above chance). Interest, falling: induction, duplicate
/// token, previous token, fixed offset, then what looks the same on any text: self, local, sink, uniform. When no head
/// shows anything clearly, the one with the most evidence for whatever class it has; nullopt when none has one.
std::optional<HeadId> telling_head(const HeadFacts& facts);

/// The head whose mean entropy lies nearest to half of an even one's: its rows are neither one key nor all of them, so
/// that what becomes of soft weights can be seen on it. nullopt where no head's weights are probabilities.
std::optional<HeadId> softer_head(const HeadFacts& facts);

}  // namespace headscope
