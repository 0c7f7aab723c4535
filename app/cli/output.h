#pragma once
// Options that say in which form a report is wanted.

#include <optional>
#include <string>

#include "app/cli/command_options.h"
#include "app/cli/console.h"
#include "app/cli/report.h"

namespace headscope::cli {

/// --json and --csv.
struct Output {
  bool json = false, csv = false;

  void add_to(Command& command, const std::string& as_json = "JSON instead of a table",
              const std::string& as_csv = "CSV instead of a table");
  Form form() const { return json ? Form::json : csv ? Form::csv : Form::text; }
  /// A script takes all there is; a person what fits on a screen.
  bool for_scripts() const { return json || csv; }
};

/// -o and --theme: the picture of a report.
struct PictureOutput {
  std::string out, theme = "dark";
  std::optional<int> width;  ///< for a command that takes one

  void add_to(Command& command, const std::string& meaning);
  bool wanted() const { return !out.empty(); }
  /// Throws UsageError on a file that is no picture; before the work, so that a typo costs nothing.
  void check() const;
  /// Where it is wanted; says what was written. `model_note`: see write_picture(). Throws Error from the file system.
  void write(Console& console, const std::function<Scene(const Style&)>& picture,
             const std::string& model_note = {}) const;
};

}  // namespace headscope::cli
