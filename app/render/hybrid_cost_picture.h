#pragma once
// What softmax, lightning and hybrid models cost as the text grows (core/attention/hybrid_cost.h), as a picture: one
// place for the command line and for the window's page. Pure.

#include "core/attention/hybrid_cost.h"
#include "viz/scene/line_chart.h"

namespace headscope {

/// FLOPs per token of a training step against the length n, both by powers of ten; marked: shape.tokens.
LineChart hybrid_cost_chart(const HybridShape& shape, int every, const Style& style);

}  // namespace headscope
