#pragma once
// Which expert took which token, as pictures: one place for the command line and for the window's page. All functions
// are pure.

#include <memory>

#include "core/analysis/expert_routing.h"
#include "viz/scene/matrix_scene.h"

namespace headscope {

/// Experts down, tokens across, the weight as colour; what an expert did not take is grey.
Matrix routing_matrix(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace);
/// Layers down, experts across: the load, around chance.
Matrix load_matrix(const RoutingReport& report);
/// A line for every expert of a layer: its load as a bar beside the even share, how many tokens it took, and their
/// words. Where there is no room for all, the busiest.
Scene load_scene(const RoutingReport& report, const ExpertRouting& routing, const Trace& trace, double width,
                 double height, const Style& style);
/// The matrix of tokens above the lines of experts.
Scene routing_scene(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace,
                    double width, double height, const Style& style);

}  // namespace headscope
