#pragma once
// One function per subcommand: adds it with its options to `app`, and what it does when the user chose it.
// A new subcommand is one file and one line in main.cpp.

#include "app/cli/options.h"
#include "app/cli/shell.h"

namespace headscope::cli {

void add_run(Command& app, Shell& shell);
void add_capture(Command& app, Shell& shell);
void add_metrics(Command& app, Shell& shell);
void add_render(Command& app, Shell& shell);
void add_mechanism(Command& app, Shell& shell);
void add_read(Command& app, Shell& shell);
void add_inspect(Command& app, Shell& shell);
void add_bench(Command& app, Shell& shell);
void add_positions(Command& app, Shell& shell);
void add_mask(Command& app, Shell& shell);  ///< and cache
void add_corpus(Command& app, Shell& shell);
void add_train(Command& app, Shell& shell);
void add_generate(Command& app, Shell& shell);
void add_sample(Command& app, Shell& shell);
void add_compare(Command& app, Shell& shell);
void add_eval(Command& app, Shell& shell);
void add_card(Command& app, Shell& shell);
void add_sweep(Command& app, Shell& shell);
void add_detect(Command& app, Shell& shell);
void add_tour(Command& app, Shell& shell);

}  // namespace headscope::cli
