// headscope-cli read: the reading tools as tables, CSV, JSON and pictures.

#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/read_report.h"
#include "app/cli/trace_report.h"
#include "core/base/error.h"

namespace headscope::cli {

namespace {
/// What every tool is asked for.
struct ReadOptions {
  Input input;
  Output output;
  PictureOutput picture;
};

void read(Console& console, const ReadOptions& options, const ReadTool& tool) {
  options.picture.check();
  RunRequest request = options.input.request();
  LoadedModel loaded = load_model(request.model, console.backend());
  const Stack part = options.input.stack();
  const bool two = loaded.model->encoder() != nullptr, of_encoder = two && part == Stack::encoder;
  if (part == Stack::cross && !tool.reads_cross())
    throw Error("read " + tool.id, "a stack and its stream: --part enc or dec", "cross-attention",
                "what a target takes from a source: read weighted, alignment; run and metrics --part cross");
  request.capture = tool.capture(of_encoder ? *loaded.model->encoder() : *loaded.model);
  Opened opened = run_request(console, std::move(loaded), request);
  opened.trace = part_of(std::move(opened.trace), part);
  if (of_encoder) {  // a model of its own, asked by itself
    request = encoder_request(*opened.loaded.model, request);
    opened.loaded = opened.loaded.encoder();
  }
  Report out;
  out.data("tool", tool.id);
  describe(out, *opened.trace);
  out.append(tool.read(
      {console, opened.loaded, request, opened.trace, options.output.for_scripts(), options.picture.wanted()}));
  out.data("source", opened.trace->source);
  if (!options.picture.wanted()) return console.print(out.printed(options.output.form()));
  if (!out.picture) throw UsageError(fmt::format("read {} has no picture; leave -o away", tool.id));
  options.picture.write(console, out.picture, &options.input, model_note_of(options.input, opened));
}

void add_tool(Command& app, Console& console, std::shared_ptr<ReadTool> tool) {
  auto options = std::make_shared<ReadOptions>();
  Command command = app.add_subcommand(tool->id, tool->meaning);
  options->input.add_to(command);
  tool->add_options(command);
  options->output.add_to(command);
  options->picture.add_to(command, "A picture instead of a table");
  command.add_option("--width", options->picture.width, "Width of the picture in pixels")
      .check(range(1, 30000))
      .type_name("PX");
  command.does([options, tool = std::move(tool), &console] { read(console, *options, *tool); });
}
}  // namespace

void add_read(Command& app, Console& console) {
  Command command = app.add_subcommand("read", "Reading tools: logit lens, attribution, circuits, rollout, sinks, …");
  for (const ReadTools& some : {writing_tools(), layers_tools(), sink_tools(), block_tools(), state_tools(),
                                alignment_tools(), picture_tools()})
    for (const auto& tool : some) add_tool(command, console, tool);
}

}  // namespace headscope::cli
