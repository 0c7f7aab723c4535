#pragma once
// The window's program at work for the command line, with nobody in front of it.

#include <string>
#include <vector>

#include "app/cli/console.h"

namespace headscope::cli {

/// Runs `headscope` of this build or installation with these words and the options of `console`; our standard streams
/// are its own, and a stop is passed on. Throws Error at `where` when there is no such program, Cancelled, and Ended
/// where it failed.
void run_window_program(Console& console, const std::string& where, std::vector<std::string> words);

}  // namespace headscope::cli
