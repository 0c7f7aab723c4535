#pragma once
// What the command line says about a beam search.

#include "app/cli/report.h"
#include "core/generate/beam_search.h"
#include "core/run/run_request.h"

namespace headscope::cli {

/// The table "beams", best first; for JSON the steps too, every candidate with its parent and what became of it.
Report beam_report(const LoadedModel& loaded, const BeamTree& tree, const BeamSettings& settings,
                   const std::vector<Intervention>& edits);

}  // namespace headscope::cli
