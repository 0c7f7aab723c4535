#pragma once
// The classes of one map by itself.

#include <vector>

#include "core/metrics/head_class.h"

namespace headscope::testing {

/// As head_classes() tells them of a trace that holds nothing else. `rules` must outlive the result.
inline HeadClasses classes_of(const MetricInput& head, const std::vector<ClassRule>& rules) {
  Trace alone;
  alone.maps.push_back(head.map);
  return head_classes(alone, head.text, head_table(alone, head.text), rules).front();
}

}  // namespace headscope::testing
