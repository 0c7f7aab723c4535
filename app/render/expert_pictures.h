#pragma once
// Which expert took which token, as pictures: one place for the command line and for the window's page. All functions
// are pure.

#include <memory>

#include "core/analysis/expert_routing.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

/// Experts down, tokens across, the weight as colour; what an expert did not take is grey.
Matrix routing_matrix(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace);
/// Layers down, experts across: the load, around chance.
Matrix load_matrix(const RoutingReport& report);
/// Load and weight of every expert of a layer, beside the even share.
LineChart load_chart(const RoutingReport& report, const ExpertRouting& routing, const Style& style);
/// The matrix of tokens above the chart of loads.
Scene routing_scene(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace,
                    double width, double height, const Style& style);

}  // namespace headscope
