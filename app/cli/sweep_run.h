#pragma once
// How a command goes through a Sweep, and ends when it was interrupted on the way.

#include "app/cli/console.h"
#include "app/cli/output.h"
#include "core/analysis/sweep.h"

namespace headscope::cli {

/// Steps through the sweep; on a terminal one line says how far it is. `what` is counted: "heads". Interrupted, it
/// returns false: what is known can still be printed.
bool go_through(Console& console, Sweep& sweep, const char* what);

/// Prints what is known, then ends as an interrupted command does. `report(result)` says it.
template <class Result>
void finish(Console& console, const Output& output, bool whole, const Result& result, const auto& report) {
  if (result) console.print(report(*result).printed(output.form()));
  if (!whole) throw Cancelled();
}

}  // namespace headscope::cli
