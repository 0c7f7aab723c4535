#pragma once
// One function per subcommand: adds it with its options to `app`, and sets shell.command when the user chose it.
// A new subcommand is one file and one line in main.cpp.

#include <CLI/CLI.hpp>

#include "app/cli/shell.h"

namespace headscope::cli {

void add_run(CLI::App& app, Shell& shell);
void add_capture(CLI::App& app, Shell& shell);
void add_metrics(CLI::App& app, Shell& shell);
void add_render(CLI::App& app, Shell& shell);
void add_mechanism(CLI::App& app, Shell& shell);
void add_read(CLI::App& app, Shell& shell);
void add_inspect(CLI::App& app, Shell& shell);
void add_bench(CLI::App& app, Shell& shell);
void add_positions(CLI::App& app, Shell& shell);
void add_mask(CLI::App& app, Shell& shell);  ///< and cache
void add_corpus(CLI::App& app, Shell& shell);
void add_train(CLI::App& app, Shell& shell);
void add_generate(CLI::App& app, Shell& shell);
void add_sample(CLI::App& app, Shell& shell);
void add_compare(CLI::App& app, Shell& shell);
void add_eval(CLI::App& app, Shell& shell);
void add_card(CLI::App& app, Shell& shell);
void add_sweep(CLI::App& app, Shell& shell);
void add_detect(CLI::App& app, Shell& shell);
void add_tour(CLI::App& app, Shell& shell);

}  // namespace headscope::cli
