// headscope-cli tour: the main job on the bundled example, step by step: a sentence, its next tokens, its heads,
// pictures.

#include <fmt/format.h>

#include "app/assets.h"
#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/trace_report.h"
#include "app/render/picture.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/nth.h"
#include "viz/export/pango_text.h"
#include "viz/scene/head_map.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

RunRequest example_request() {
  const auto model = find_asset("examples/induction");
  const auto text = find_asset("examples/induction.txt");
  if (!model || !text) {
    std::vector<std::string> looked;
    for (const fs::path& folder : asset_folders()) looked.push_back(folder.string());
    throw Error("the bundled example", "examples/induction in one of the asset folders",
                fmt::format("none in {}", fmt::join(looked, ", ")),
                "set HEADSCOPE_ASSETS to the folder that holds examples/");
  }
  RunRequest request;
  request.model = *model;
  request.text = read_file(*text);
  return request;
}

/// The induction head when there is one, else the head with the largest margin over its class's threshold.
const HeadReport* most_telling(const std::vector<HeadReport>& heads) {
  const auto telling = [](const HeadReport& head) {
    if (head.verdicts.empty()) return 0.0;
    const HeadVerdict& verdict = head.verdicts.front();
    return verdict.score / verdict.rule->at_least + (verdict.rule->id == "induction" ? 1e6 : 0.0);
  };
  const HeadReport* best = nullptr;
  for (const HeadReport& each : heads)
    if (telling(each) > (best ? telling(*best) : 0.0)) best = &each;
  return best;
}

void print_evidence(Console& console, const HeadReport& head, const Trace& trace) {
  const HeadVerdict& verdict = head.verdicts.front();
  console.print_line(fmt::format("Head {}.{}: {}. Its strongest cells of that class:", head.map->layer(),
                                 head.map->head(), verdict_text(verdict)));
  for (const Evidence& cell : verdict.evidence)
    console.print_line(fmt::format("  {:.3f}  from \"{}\" at {} to \"{}\" at {}", cell.weight,
                                   nth(trace.tokens, cell.query).label, cell.query, nth(trace.tokens, cell.key).label,
                                   cell.key));
  console.print_line();
}

void tour(Console& console, const fs::path& out) {
  const fs::path grid_file = out / "heads.png";
  expect_writable_folder(out);
  expect_writable(grid_file);  // before anything is computed
  const RunRequest request = example_request();
  const Opened opened = run_request(console, load_model(request.model, console.backend()), request);
  const Trace& trace = *opened.trace;
  const auto heads = report_heads(trace, default_class_rules());

  Report report;
  report.line(headline(trace));
  report.line(fmt::format("\n  {}", request.text));
  add_next_tokens(report, trace, opened.loaded.tokenizer.get(), 5);
  report.line(loss_text(trace));
  add_heads(report, heads, trace, usual_columns(), false);
  console.print_line(report.printed(Form::text));

  const PangoText measure;
  const Style style{theme("dark"), measure};
  std::vector<std::string> written;
  HeadGridOptions grid;
  grid.classes = marks_of(heads);
  written.push_back(write_picture(head_grid_scene(trace, grid, style), grid_file, {}));
  if (const HeadReport* head = most_telling(heads)) {
    print_evidence(console, *head, trace);
    HeadMapOptions map;
    map.head = head->map->id();
    map.badge = badge_of(heads, map.head);
    map.facts = facts_of(heads, trace, map.head);
    const Scene scene = head_map_scene(trace, map, style);
    const std::string name = "head-" + to_string(map.head);
    written.push_back(write_picture(scene, out / (name + ".png"), {}));
    written.push_back(write_picture(scene, out / (name + ".svg"), {}));
  }
  console.print_line("Written:");
  for (const std::string& line : written) console.print_line("  " + line);
  console.print_line(fmt::format(
      "\nNext: headscope-cli run --model {} --text \"one two one\"   (or a model of your own: headscope-cli models)",
      request.model.string()));
}
}  // namespace

void add_tour(Command& app, Console& console) {
  auto out = std::make_shared<std::string>("headscope-tour");
  Command command = app.add_subcommand("tour", "What it is all about, on a small bundled model: text, heads, pictures");
  command.add_option("-o,--out", *out, "Folder for the pictures").type_name("DIR").show_default();
  command.does([out, &console] { tour(console, *out); });
}

}  // namespace headscope::cli
