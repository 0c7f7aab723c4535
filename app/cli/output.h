#pragma once
// Options that say in which form a report is wanted.

#include <optional>
#include <string>

#include "app/cli/command_options.h"
#include "app/cli/console.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/render/picture.h"
#include "app/state/picture_recipe.h"

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
  /// Throws UsageError on a file that is no picture, Error on one that cannot be written; before the work, so that a
  /// typo costs nothing.
  void check() const;
  /// Where it is wanted; says what was written. `input`, `model_note`: as of recipe_of(), note_of(). Throws Error from
  /// the file system.
  void write(Console& console, const std::function<Scene(const Style&)>& picture, const Input* input = nullptr,
             const std::string& model_note = {}) const;
};

/// How the picture is made that this command line draws into `out`; of a model's run with what a window would show of
/// it. `input` after its request() was made.
PictureRecipe recipe_of(const Console& console, const std::string& out, const Input* input = nullptr);
/// What a picture's file tells; without the recipe where none is wanted.
PictureNote note_of(const Console& console, const PictureRecipe& recipe, const std::string& model_note = {});

}  // namespace headscope::cli
