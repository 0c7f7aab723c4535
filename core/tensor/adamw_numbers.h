#pragma once
// One step of AdamW as numbers, computed in one place (AdamW::step) for the processor's loop and the card's.

namespace headscope {

/// The same for every element:
/// m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²,  w ← keep · w − rate · m / (√(second_scale · v) + ε)
struct AdamWRow {
  float gradient_scale = 1;  ///< from clipping
  float beta1 = 0, beta2 = 0;
  float rest1 = 1, rest2 = 1;  ///< 1 − β, not from rounded βs
  float rate = 0;              ///< learning rate / (1 − β₁ᵗ)
  float second_scale = 1;      ///< 1 / (1 − β₂ᵗ)
  float epsilon = 0;
  float keep = 1;  ///< 1 − learning rate · weight decay
};

}  // namespace headscope
