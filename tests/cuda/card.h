#pragma once
// The card that these tests compare with the processor, where there is one.

#include <doctest/doctest.h>

#include <memory>

#include "core/cuda/cuda_backend.h"

namespace headscope::testing {

/// Null, and a line that says "skipped" and why, on a machine without a card.
inline std::unique_ptr<Backend> card(Precision precision = Precision::f32) {
  if (const std::string why = why_no_cuda(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return nullptr;
  }
  return make_cuda_backend(2, 0, precision);
}

}  // namespace headscope::testing

#define HEADSCOPE_NEEDS_CARD(variable)              \
  const auto variable = headscope::testing::card(); \
  if (!variable) return;
