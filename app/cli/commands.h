#pragma once
// The subcommands. A new one is a file of its own and its name twice below.

#include <string_view>

#include "app/cli/command_options.h"
#include "app/cli/console.h"

namespace headscope::cli {

/// Adds a subcommand with its options to `app`, and what it does when the user chose it.
using AddCommand = void(Command& app, Console& console);

AddCommand add_run, add_capture, add_metrics, add_render, add_mechanism, add_read, add_inspect, add_positions,
    add_mask /* and cache */, add_bench, add_corpus, add_train, add_generate, add_sample, add_compare, add_eval,
    add_card, add_models, add_pull, add_sweep, add_detect, add_tour, add_verify, add_watch, add_pictures, add_streaming,
    add_scan, add_devices, add_lesson, add_animate, add_trial, add_flops, add_expert, add_word_tables;

/// In the order of the help.
inline constexpr AddCommand* all_commands[] = {
    add_run,       add_capture, add_metrics, add_render,   add_mechanism, add_read,       add_inspect,
    add_positions, add_mask,    add_bench,   add_corpus,   add_train,     add_generate,   add_sample,
    add_compare,   add_eval,    add_card,    add_models,   add_pull,      add_sweep,      add_detect,
    add_tour,      add_verify,  add_watch,   add_pictures, add_streaming, add_scan,       add_devices,
    add_lesson,    add_animate, add_trial,   add_flops,    add_expert,    add_word_tables};

/// Those that write nothing but the picture or film of -o: what a stranger's file may ask for (render --again).
inline constexpr std::string_view picture_commands[] = {
    "render", "mechanism", "read", "mask", "cache", "positions", "compare", "generate", "animate", "sweep", "flops"};

}  // namespace headscope::cli
