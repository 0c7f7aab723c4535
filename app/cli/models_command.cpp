// headscope-cli models: what lies on this machine, whether it opens, and why not.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/commands.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "app/model_places.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/model/formats/found_models.h"
#include "core/trace/model_heads.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

std::string shape(const ModelDims& dims) {
  return dims.layers == 0 ? "" : fmt::format("{} × {}", dims.layers, heads_text(dims));
}

Report models_report(const std::vector<ModelPlace>& places, const std::stop_token& stop) {
  Report out;
  Report::Table& table = out.table("models", {{"name", "model"},
                                              "family",
                                              for_people("layers × heads"),
                                              only_in(Form::scripts, "layers"),
                                              only_in(Form::scripts, "heads"),
                                              only_in(Form::scripts, "parameters"),
                                              only_in(Form::scripts, "bytes"),
                                              for_people("size"),
                                              "format",
                                              {"place", "found in"},
                                              {"opens", "opens"},
                                              only_in(Form::scripts, "path"),
                                              only_in(Form::scripts, "refusal")});
  std::vector<std::string> refusals, remarks;
  for (const ModelPlace& place : places) {
    const FoundModels found = find_models(place.folder, stop);
    for (const FoundModel& model : found.models) {
      const bool opens = model.refusal.empty();
      table.add({excerpt(model.name, 60), excerpt(model.family, 40), shape(model.dims), model.dims.layers,
                 model.dims.heads, model.parameters, model.bytes, model.bytes ? byte_size(model.bytes) : "",
                 model.format, place.kind, opens ? "yes" : "no", model.path.string(), model.refusal});
      if (!opens) refusals.push_back(fmt::format("{}: {}", excerpt(model.name, 60), model.refusal));
    }
    if (!found.remark.empty()) remarks.push_back(found.remark);
  }
  if (table.rows.empty()) out.line("no models found");
  if (!refusals.empty()) out.line("Why they do not open:");
  for (const std::string& line : refusals) out.line("  " + line);
  for (const std::string& line : remarks) out.line(line);
  std::vector<std::string> looked;
  for (const ModelPlace& place : places) looked.push_back(place.folder.string());
  out.line("Looked in " + fmt::format("{}", fmt::join(looked, ", ")) +
           "; configuration and tensors' names were read, tokenizers and weights are when a model opens.");
  out.data("looked_in", looked);
  return out;
}

}  // namespace

void add_models(Command& app, Console& console) {
  struct Options {
    std::vector<std::string> folders;
    bool csv = false, json = false;
  };
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("models", "The models on this machine, and whether they open");
  command.add_option("folder", options->folders,
                     "Further folders to look in, beside bundled models and the Hugging Face cache");
  const Option csv = command.add_flag("--csv", options->csv, "CSV instead of a table");
  command.add_flag("--json", options->json, "JSON instead of a table").excludes(csv);
  command.does([options, &console] {
    const Form form = options->json ? Form::json : options->csv ? Form::csv : Form::text;
    for (const std::string& folder : options->folders)
      if (std::error_code gone; !fs::exists(folder, gone))
        throw Error(folder, "a folder of models", "nothing of that name");
    const auto places = model_places({options->folders.begin(), options->folders.end()});
    console.print(models_report(places, console.stop()).printed(form));
  });
}

}  // namespace headscope::cli
