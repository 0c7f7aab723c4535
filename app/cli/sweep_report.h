#pragma once
// What the sweeps found out. Each takes what is known, whole or not.

#include "app/cli/report.h"
#include "core/analysis/activation_patching.h"
#include "core/analysis/head_ablation.h"
#include "core/analysis/head_circuit.h"
#include "core/analysis/linear_layers.h"
#include "core/analysis/temperature_sweep.h"

namespace headscope::cli {

Report ablation_report(const LoadedModel& loaded, const HeadAblation& result, bool whole);
Report patching_report(const LoadedModel& loaded, const Patching& result, bool whole);
Report temperature_report(const TemperatureSweep& result, bool whole);
/// `threshold`: the share of the logit difference that the named set shall keep.
Report circuit_report(const LoadedModel& loaded, const HeadCircuit& result, double threshold, bool whole);
/// `allowed`: by how much the loss, or the KL where that is kept low, may rise, nats.
Report linear_layers_report(const LoadedModel& loaded, const LinearLayers& result, double allowed, bool whole);

}  // namespace headscope::cli
