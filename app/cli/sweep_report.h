#pragma once
// What the sweeps found out, as tables, CSV and JSON. Each takes what is known, whole or not.

#include "app/cli/output.h"
#include "app/cli/shell.h"
#include "core/engine/activation_patching.h"
#include "core/engine/head_ablation.h"
#include "core/engine/head_circuit.h"
#include "core/engine/temperature_sweep.h"

namespace headscope::cli {

void print_ablation(Shell& shell, Form form, const LoadedModel& loaded, const HeadAblation& result, bool whole);
void print_patching(Shell& shell, Form form, const LoadedModel& loaded, const Patching& result, bool whole);
void print_temperatures(Shell& shell, Form form, const TemperatureSweep& result, bool whole);
/// `threshold`: the share of the logit difference that the named set shall keep.
void print_circuit(Shell& shell, Form form, const LoadedModel& loaded, const HeadCircuit& result, double threshold,
                   bool whole);

}  // namespace headscope::cli
