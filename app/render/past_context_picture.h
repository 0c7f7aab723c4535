#pragma once
// Texts past the trained length, and the codes of positions that do not work: charts for the window, pictures for the
// command line.

#include <string>

#include "app/render/positions_picture.h"
#include "core/analysis/naive_codes.h"
#include "core/analysis/past_context.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_map.h"

namespace headscope {

/// Loss by position, one line for each way of going on; `chosen` (its title) stands out.
LineChart past_context_chart(const LongRun& run, const std::string& chosen, const Style& style);
/// Which method when: mean loss by way and by multiple of the trained length. REQUIRES a run without refusal.
MatrixMap past_context_table(const LongRun& run);
/// "YaRN is best from 256 to 512 …": what the table says, as a sentence.
std::string past_context_words(const LongRun& run);
Scene past_context_picture(const LongRun& run, Room room, const Style& style);

/// How alike two words become where they stand at the same position.
LineChart naive_likeness_chart(const NaiveCodes& codes, const Style& style);
/// How far apart neighbours are, by the length of the text.
LineChart naive_step_chart(const NaiveCodes& codes, const Style& style);
std::string naive_words(const NaiveCodes& codes);
Scene naive_picture(const NaiveCodes& codes, Room room, const Style& style);

}  // namespace headscope
