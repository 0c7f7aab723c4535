// headscope-cli capture: run a model on a text and keep the trace in a safetensors file.

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/again.h"
#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/output.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/trace_file.h"

namespace headscope::cli {

namespace {
struct CaptureOptions {
  Input input;
  std::string out, again, storage = "auto", budget, names = "transformer-lens";
  std::vector<std::string> sites;
  std::vector<int> layers;
  bool list_sites = false, last_logits = false;
};

/// "512M", "2G", "1500000": bytes with an optional power-of-1024 unit.
std::size_t parse_bytes(const std::string& text) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  double factor = 0;
  if (unit.empty() || unit == "B") factor = 1;
  if (unit == "K" || unit == "KB" || unit == "KiB" || unit == "k" || unit == "kB") factor = 1024.0;
  if (unit == "M" || unit == "MB" || unit == "MiB") factor = 1024.0 * 1024;
  if (unit == "G" || unit == "GB" || unit == "GiB") factor = 1024.0 * 1024 * 1024;
  if (used == 0 || factor == 0 || !(value > 0) || value * factor > 0x1p60)
    throw UsageError(fmt::format("--budget: expected a size such as 512M or 2G, found \"{}\"", text));
  return static_cast<std::size_t>(value * factor);
}

/// `model` is asked for its sites only when --sites is "all".
CaptureSpec spec_of(const CaptureOptions& options, const Model& model) {
  CaptureSpec spec;
  if (options.storage == "dense") spec.maps = MapStorage::dense;
  if (options.storage == "factored") spec.maps = MapStorage::factored;
  if (options.storage == "none") spec.maps = MapStorage::none;
  for (const std::string& name : options.sites) {
    if (name == "all") {
      for (const SiteKind kind : model.sites()) spec.sites.insert(kind);
    } else {
      spec.sites.insert(parse_site_kind(name).value());
    }
  }
  // Patterns are written anyway, from whatever storage: naming them is no reason to hold them dense.
  spec.sites.erase(SiteKind::pattern);
  spec.layers.insert(options.layers.begin(), options.layers.end());
  spec.all_logits = !options.last_logits;
  if (!options.budget.empty()) spec.byte_budget = parse_bytes(options.budget);
  return spec;
}

HookNames names_of(const CaptureOptions& options, const Model& model) {
  if (options.names != "bridge") return HookNames::transformer_lens;
  return model.config().gated_mlp ? HookNames::bridge_gated : HookNames::bridge;
}

void check(const CaptureOptions& options) {
  if (options.out.empty()) throw UsageError("-o is required: the file to write");
  for (const std::string& name : options.sites)
    if (name != "all" && !parse_site_kind(name))
      throw UsageError(fmt::format("--sites: no site is called \"{}\"; capture --list-sites names them", name));
  if (!options.budget.empty()) parse_bytes(options.budget);
  expect_writable(options.out);
}

void capture(Console& console, const CaptureOptions& options) {
  check(options);
  RunRequest request = options.input.request();
  const LoadedModel loaded = load_model(request.model, console.backend());
  const bool of_encoder = loaded.model->encoder() && options.input.stack() == Stack::encoder;
  request.capture = spec_of(options, of_encoder ? *loaded.model->encoder() : *loaded.model);
  Opened opened = run_request(console, loaded, request);
  opened.trace = part_of(std::move(opened.trace), options.input.stack());

  TraceFileOptions file;
  file.sites = request.capture.sites;
  const std::vector<SiteKind> fires = loaded.model->sites(options.input.stack());
  if (loaded.model->encoder())  // each part has sites of its own
    std::erase_if(file.sites, [&](SiteKind kind) { return std::ranges::find(fires, kind) == fires.end(); });
  if (!opened.trace->maps.empty()) file.sites.insert(SiteKind::pattern);
  file.names = names_of(options, *loaded.model);
  if (!console.plain_pictures) file.recipe = to_json(recipe_of(console, options.out, &options.input));
  console.with_progress("writing", [&](const Ctx& ctx) {
    file.progress = [&](std::size_t done, std::size_t total) {
      if (ctx.stop.stop_requested()) throw Cancelled();
      if (total > 0) ctx.progress->store(static_cast<float>(done) / static_cast<float>(total));
    };
    write_trace(*opened.trace, options.out, file);
  });
  std::error_code unknown;
  const auto size = std::filesystem::file_size(options.out, unknown);
  console.print_line(fmt::format("{}  {}, {} tokens, {}", options.out, unknown ? "size unknown" : byte_size(size),
                                 opened.trace->tokens.size(), opened.trace->plan.summary));
}

Report sites_report() {
  Report out;
  auto& rows = out.table("", {"site", "of a bridge", "shape", "meaning"});
  for (const SiteInfo& site : site_table()) {
    const auto bridge = [&](HookNames names) {
      std::string text = name({site.kind, site.per_layer ? 0 : -1}, names);
      if (site.per_layer) text.replace(text.find('0'), 1, "{i}");
      return text;
    };
    const std::string plain = bridge(HookNames::bridge), gated = bridge(HookNames::bridge_gated);
    rows.add({site.pattern, plain == gated ? plain : plain + "; with a gate " + gated, site.shape, site.meaning});
  }
  return out;
}
}  // namespace

void add_capture(Command& app, Console& console) {
  auto options = std::make_shared<CaptureOptions>();
  Command command = app.add_subcommand("capture", "Run a model on a text and write the trace to a safetensors file");
  options->input.add_to(command);
  command.add_option("-o,--out", options->out, "The file to write").type_name("FILE.safetensors");
  command
      .add_option("--sites", options->sites,
                  "What to write besides the patterns: q, k, v, z, resid_post, logits, … or all")
      .delimiter(',')
      .type_name("SITE,…");
  command.add_option("--layers", options->layers, "Only these layers (default: all)").delimiter(',').type_name("N,…");
  command
      .add_option("--storage", options->storage,
                  "How maps are kept while the model runs: auto, dense, factored, or none (no patterns)")
      .check(one_of({"auto", "dense", "factored", "none"}))
      .type_name("STORAGE")
      .show_default();
  command
      .add_option("--names", options->names,
                  "What tensors are called: TransformerLens' hook names up to version 3, or those of its bridges (4)")
      .check(one_of({"transformer-lens", "bridge"}))
      .type_name("transformer-lens|bridge")
      .show_default();
  command.add_option("--budget", options->budget, "Memory the trace may take, such as 512M (default 1G)")
      .type_name("SIZE");
  command.add_flag("--last-logits", options->last_logits, "Keep the logits of the last position only");
  if (!command.strangers())
    command
        .add_option("--again", options->again,
                    "Capture once more as this file says it was, and compare; with -o into another file")
        .type_name("FILE.safetensors");
  command.add_flag("--list-sites", options->list_sites, "List the sites: name, shape, meaning");
  command.does([options, &console] {
    if (options->list_sites) return console.print(sites_report().printed(Form::text));
    if (!options->again.empty()) return capture_again(console, options->again, options->out);
    capture(console, *options);
  });
}

}  // namespace headscope::cli
