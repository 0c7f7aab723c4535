#pragma once
// The kinds of edit, in the order in which a chooser shows them. A new one is a file <id>_edit.cpp beside this one that
// defines `const EditKind& <id>_edit()`, and one line here.

// clang-format off
#define HEADSCOPE_EDITS(X) \
  X(temperature)           \
  X(mask)                  \
  X(scale_by_length)       \
  X(drop_first)            \
  X(pattern)               \
  X(weight)                \
  X(freeze_pattern)        \
  X(ablate)                \
  X(patch)                 \
  X(switch_off)            \
  X(post_norm)             \
  X(position)              \
  X(share_keys)            \
  X(latent_keys)           \
  X(singular)              \
  X(quantize)              \
  X(adapter)               \
  X(mechanism)             \
  X(hide_patches)
// clang-format on

namespace headscope {

struct EditKind;
#define HEADSCOPE_DECLARE(id) const EditKind& id##_edit();
HEADSCOPE_EDITS(HEADSCOPE_DECLARE)
#undef HEADSCOPE_DECLARE

}  // namespace headscope
