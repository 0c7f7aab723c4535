#pragma once
// What a command prints: a table for people, CSV or JSON for scripts.

#include "app/cli/options.h"

namespace headscope::cli {

enum class Form { table, csv, json };

/// --json and --csv.
struct Output {
  bool json = false, csv = false;

  void add_to(Command& command) {
    const Option as_json = command.add_flag("--json", json, "JSON instead of a table");
    command.add_flag("--csv", csv, "CSV instead of a table").excludes(as_json);
  }
  Form form() const { return json ? Form::json : csv ? Form::csv : Form::table; }
  /// A script takes all there is; a person what fits on a screen.
  bool for_scripts() const { return json || csv; }
};

}  // namespace headscope::cli
