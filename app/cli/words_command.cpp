// headscope-cli words: tables of words, by which the window speaks another language. check: which of a table's texts
// can be used, and which are still to be written.

#include <fmt/format.h>

#include <algorithm>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/words.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

constexpr int missing_shown = 10;

WordTable english_table() {
  const auto file = find_asset("words/en.json");
  if (!file) throw Error("words/en.json", "the English table among the program's assets", "none");
  return WordTable::read(*file);
}

void check(Console& console, const std::string& file, const Output& output) {
  const WordTable table = WordTable::read(file), english = english_table();
  Report report;
  auto& rows = report.table("texts", {"state", "english", "why"}, Form::scripts);
  int refused = 0, unknown = 0, missing = 0;
  for (const WordTable::Refused& each : table.refused()) {
    ++refused;
    rows.add({"refused", each.english, each.why});
    report.line(fmt::format("refused: “{}”: {}", excerpt(each.english), each.why));
  }
  for (const auto& [text, words] : table.entries())
    if (!english.find(text)) {
      ++unknown;
      rows.add({"unknown", text, ""});
      report.line(fmt::format("unknown: “{}”: the window has no such text", excerpt(text)));
    }
  for (const auto& [text, words] : english.entries()) {
    const auto is_this = [&text = text](const WordTable::Refused& each) { return each.english == text; };
    if (table.find(text) || std::ranges::any_of(table.refused(), is_this)) continue;
    rows.add({"missing", text, ""});
    if (++missing <= missing_shown) report.line(fmt::format("missing: “{}”", excerpt(text)));
  }
  if (missing > missing_shown)
    report.line(fmt::format("missing: and {} more (--json lists them)", missing - missing_shown));
  const std::size_t all = english.entries().size();
  const auto said = static_cast<int>(table.entries().size()) - unknown;
  report.line(
      fmt::format("{} of {} texts are said: {} missing, {} refused, {} unknown", said, all, missing, refused, unknown));
  report.data("said", said);
  report.data("all", all);
  report.data("missing", missing);
  report.data("refused", refused);
  report.data("unknown", unknown);
  console.print(report.printed(output.form()));
  if (const int wrong = refused + unknown; wrong > 0)
    throw Error("words check", "nothing wrong", fmt::format("{} {}", wrong, wrong == 1 ? "fault" : "faults"));
}
}  // namespace

void add_word_tables(Command& app, Console& console) {
  struct Options {
    std::string file;
    Output output;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("words", "Tables of words, by which the window speaks another language");
  Command checked = command.add_subcommand(
      "check", "Which texts of a table cannot be used, which the window does not have, and which are missing");
  checked.add_option("table", options->file, "assets/words/de.json, say").required().type_name("FILE.json");
  options->output.add_to(checked);
  checked.does([options, &console] { check(console, options->file, options->output); });
}

}  // namespace headscope::cli
