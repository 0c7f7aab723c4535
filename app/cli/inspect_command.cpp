// headscope-cli inspect: what a model or a file of tensors holds, checked as the engine checks it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "app/render/head_report.h"
#include "app/state/picture_recipe.h"
#include "core/analysis/model_facts.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/generate/generation.h"
#include "core/io/model_location.h"
#include "core/io/trace_file.h"
#include "core/model/formats/lora_adapter.h"
#include "core/model/formats/transformer_lens_dialect.h"
#include "core/model/kv_cache.h"
#include "core/tensor/panels.h"
#include "core/trace/layer_kinds.h"
#include "core/trace/mixer_words.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

/// A file of tensors that is not a model is only that.
struct Inspected {
  std::shared_ptr<const TensorFile> file;
  std::optional<ModelFacts> model;
};

/// Whether `file` is a model, beside being tensors: in a model's folder may also lie traces and checkpoints.
bool is_model(const ModelLocation& file) {
  std::error_code ignored;
  return file.self_contained() ||
         (fs::exists(file.folder / "config.json", ignored) && locate_model(file.folder).weights == file.weights) ||
         is_transformer_lens(open_tensors(file));
}

Inspected inspect(const fs::path& path) {
  std::error_code ignored;
  const ModelLocation place = locate_model(path);
  if (place.adapter.empty() && !fs::is_directory(path, ignored) && !is_model(place))
    return {std::make_shared<TensorFile>(open_tensors(place)), std::nullopt};
  ModelFacts facts = model_facts(path);
  return {facts.tensors, std::move(facts)};
}

std::string position_words(const ModelConfig& c) {
  return c.sinusoids ? "sinusoidal" : positions_of(c);
}

Cell config_json(const ModelConfig& c) {
  Cell out{{"layers", c.dims.layers},        {"heads", c.dims.heads},        {"kv_heads", c.dims.kv_heads},
           {"d_head", c.dims.d_head},        {"d_model", c.dims.d_model},    {"d_mlp", c.dims.d_mlp},
           {"vocab", c.dims.vocab},          {"context", c.context},         {"norm", name_of(c.norm)},
           {"norm_epsilon", c.norm_epsilon}, {"position", position_words(c)}};
  if (c.dims.state_heads > 0) out["state_heads"] = c.dims.state_heads;
  if (c.position == PositionKind::rotary) out["rope_base"] = c.rotary.base;
  out["activation"] = name_of(c.activation);
  out["gated_mlp"] = c.gated_mlp;
  out["tied_embeddings"] = c.tied_embeddings;
  for (const Mixer mixer : c.dims.mixers) out["mixers"].push_back(name_in(mixer_names, mixer));
  for (const LayerWidths& each : c.dims.widths)
    out["widths"].push_back(Cell{{"kv_heads", each.kv_heads}, {"d_head", each.d_head}, {"d_mlp", each.d_mlp}});
  if (const std::string other = switches(c); !other.empty()) out["switches"] = other;
  if (c.encoder) out["encoder"] = config_json(*c.encoder);
  return out;
}

/// What it says about numbers, and what it says that changes none.
void add_keys(Report& out, const std::vector<ConfigKey>& keys) {
  auto& table = out.table("config_keys",
                          {for_people("config key", "", Column::Align::left), only_in(Form::json, "key"), "value",
                           only_in(Form::json, "used")},
                          Form::text | Form::json);
  std::string ignored;
  for (const ConfigKey& each : keys) {
    if (each.used) table.add({each.key, each.key, each.value, true});
    if (!each.used) ignored += (ignored.empty() ? "" : ", ") + each.key;
  }
  Cell all = Cell::object();
  for (const ConfigKey& each : keys)
    if (!each.used) all[each.key] = each.value;
  if (!ignored.empty()) out.line("keys that change nothing: " + ignored);
  out.data("ignored_config_keys", std::move(all));
}

/// Lines about one stack.
void add_stack(Report& out, const ModelConfig& c) {
  const char* const which = c.stack == Stack::encoder ? "encoder: " : c.stack == Stack::decoder ? "decoder: " : "";
  const std::string keys = across_layers(c.dims, &LayerWidths::kv_heads);
  out.line(fmt::format("  {}{} layers, {} heads of {}{}, width {}, MLP {}{}, {} {}, context {}", which, c.dims.layers,
                       c.dims.heads, across_layers(c.dims, &LayerWidths::d_head),
                       keys != std::to_string(c.dims.heads) ? fmt::format(" on {} key-value heads", keys) : "",
                       c.dims.d_model, across_layers(c.dims, &LayerWidths::d_mlp), c.gated_mlp ? " gated" : "",
                       c.vision  ? "classes"
                       : c.sound ? "mels"
                                 : "vocabulary",
                       grouped(c.sound ? c.sound->mels : c.dims.vocab), grouped(c.context)));
  out.line(fmt::format("  {} (epsilon {}), positions {}{}, {}, embeddings {}", name_of(c.norm), c.norm_epsilon,
                       position_words(c),
                       c.position == PositionKind::rotary ? fmt::format(" base {}", c.rotary.base) : "",
                       name_of(c.activation), c.tied_embeddings ? "tied" : "not tied"));
  if (const std::string other = switches(c); !other.empty()) out.line("  " + other);
  if (c.dims.hybrid()) {
    std::vector<int> attending;
    for (int layer = 0; layer < c.dims.layers; ++layer)
      if (c.dims.attends(layer)) attending.push_back(layer);
    out.line(fmt::format("  attention in layer{} {}, {} in the others", attending.size() == 1 ? "" : "s",
                         fmt::join(attending, ", "), state_words(c.dims)));
  }
}

void add_model(Report& out, const ModelFacts& model) {
  const ModelConfig& c = model.config;
  out.line(fmt::format("{}  ({}: {})", c.name, c.family, model.summary));
  add_stack(out, c);
  if (c.encoder) add_stack(out, *c.encoder);
  if (model.adapter) {
    out.line("  adapter " + model.adapter->folder().filename().string() + ": " + model.adapter->summary() +
             (model.adapter->base().empty() ? "" : ", trained on " + excerpt(model.adapter->base(), 60)));
    out.data("adapter", {{"folder", model.adapter->folder().string()},
                         {"summary", model.adapter->summary()},
                         {"base", model.adapter->base()}});
  }
  if (c.vision)
    out.line("  no tokenizer: its tokens are patches of a picture (--image)");
  else if (c.encoder && c.encoder->sound)
    out.line(fmt::format("  tokenizer: {}; its encoder reads a sound (--sound)",
                         model.tokenizer ? model.tokenizer->kind : "none, it writes ids only"));
  else
    out.line(model.tokenizer ? fmt::format("  tokenizer: {}, {}", model.tokenizer->kind,
                                           model.tokenizer->adds_bos ? "adds BOS" : "adds no BOS")
                             : "  no tokenizer: runs on --ids only");
  for (const LayerKind& kind : c.causal ? layer_kinds(c.dims) : std::vector<LayerKind>()) {
    const auto of =
        c.dims.hybrid() || !c.dims.widths.empty() ? fmt::format(" of {} layers", kind.layers) : std::string();
    const std::uint64_t layers = sizeof(float) * static_cast<std::uint64_t>(kind.layers);
    if (kind.mixer == Mixer::state_space)
      out.line(fmt::format("  state{} {} for a text of any length ({} per layer); {} per token besides, to go back", of,
                           byte_size(layers * state_numbers(c).numbers), state_numbers(c).words,
                           byte_size(layers * kept_numbers(kind.dims).numbers)));
    else
      out.line(fmt::format(
          "  key-value cache{} {} per token, and {} for keys once more, as this machine's products read them", of,
          byte_size(cache_bytes(kind.dims, 1)), byte_size(panel_bytes(kind.dims, panels::widest) / panels::widest)));
  }
  if (!c.kv_layers.empty())
    out.line(fmt::format("  of which {} per token would do: layers that read keys and values of another need none",
                         byte_size(sizeof(float) * needed_in_all(c))));
  if (c.latent())
    out.line(fmt::format("  of which {} would do: {} numbers of the latent and {} of the key that turns, per layer",
                         byte_size(sizeof(float) * static_cast<std::uint64_t>(c.dims.layers) *
                                   static_cast<std::uint64_t>(c.cached_numbers())),
                         c.dims.kv_latent, c.rotary.width));

  auto& table = out.table("", {"parameters", for_people(""), for_people("share")}, Form::text);
  Cell parts = Cell::object();
  for (const ModelFacts::Part& part : model.parts) {
    const double share = 100.0 * static_cast<double>(part.parameters) / static_cast<double>(model.parameters);
    table.add({part.shown(), grouped(part.parameters), number(share, 1) + " %"});
    parts[part.name] = part.parameters;
  }
  table.add({"total (" + model.dtype + ")", grouped(model.parameters), ""});

  out.data("name", c.name);
  out.data("family", c.family);
  out.data("config", config_json(c));
  out.data("parameters", {{"total", model.parameters}, {"parts", std::move(parts)}});
  out.data("dtype", model.dtype);
  out.data("tokenizer", model.tokenizer ? Cell{{"kind", model.tokenizer->kind},
                                               {"vocab", model.tokenizer->vocab},
                                               {"adds_bos", model.tokenizer->adds_bos}}
                                        : Cell());
  out.data("unused_tensors", model.unused);
  add_keys(out, model.keys);
}

/// How a capture was made, as far as its file says.
void add_recipe(Report& out, const fs::path& path) {
  if (path.extension() != ".safetensors") return;
  const std::string json = recipe_of_trace(path);
  if (json.empty()) return;
  PictureRecipe recipe;
  try {
    recipe = picture_recipe_from_json(json, path.string() + ": recipe");
  } catch (const Error& error) {
    return out.line(error.what());
  }
  std::string words;
  for (const std::string& each : recipe.command) words += " " + excerpt(each, 200);
  const std::string by = computed_by(recipe);
  out.line("captured by: headscope-cli" + words);
  out.line("  in " + excerpt(recipe.folder.string(), 200) + ", Headscope " + excerpt(recipe.program, 20) +
           (by.empty() ? "" : ", " + excerpt(by, 120)));
  out.line("  once more, and compared: headscope-cli capture --again " + path.string());
  out.data("recipe", {{"command", recipe.command},
                      {"folder", recipe.folder.string()},
                      {"program", recipe.program},
                      {"device", recipe.device},
                      {"weights", recipe.weights}});
}

Report inspect_report(const Inspected& model, const fs::path& path) {
  Report out;
  out.data("path", path.string());
  if (model.model) add_model(out, *model.model);
  out.data("format", model.file->format());
  if (!model.file->metadata().empty()) out.data("metadata", model.file->metadata());
  auto& table = out.table("tensors", {for_people("tensor", "", Column::Align::left), only_in(Form::json, "name"),
                                      "dtype", for_people("shape", "", Column::Align::left),
                                      only_in(Form::json, "shape"), for_people("size"), only_in(Form::json, "bytes")});
  for (const auto& [name, entry] : model.file->tensors())
    table.add({excerpt(name), name, dtype_name(entry.dtype), fmt::format("[{}]", fmt::join(entry.shape, ", ")),
               entry.shape, byte_size(entry.size), entry.size});
  const StoredTensors stored = stored_tensors(*model.file);
  out.data("stored", stored.types);
  out.line(
      fmt::format("{}: {} tensors ({}), {}", stored.format, stored.count, stored.in_words(), byte_size(stored.bytes)));
  if (model.model && model.model->untied)
    out.line("config.json ties the unembedding to the embedding, the file has two that differ: both are used");
  std::string unused;
  if (model.model)
    for (const std::string& name : model.model->unused) unused += (unused.empty() ? "" : ", ") + excerpt(name);
  if (!unused.empty()) out.line("not used by the model: " + unused);
  if (!model.model) add_recipe(out, path);
  return out;
}
}  // namespace

void add_inspect(Command& app, Console& console) {
  struct Options {
    Input input;
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Command command =
      app.add_subcommand("inspect", "Configuration, tensors, sizes and parameter counts of a model or file");
  const Option path =
      command.add_option("path", options->path, "A model (folder or file), or a file of tensors (a trace file too)");
  command.add_option("-m,--model", options->input.model, "The same, as the other commands name it").excludes(path);
  options->input.add_adapter_to(command);
  command.add_flag("--json", options->json, "JSON instead of text");
  command.does([options, &console] {
    if (options->input.model.empty()) options->input.model = options->path;
    const fs::path folder = options->input.model_folder();
    console.print(inspect_report(inspect(folder), folder).printed(options->json ? Form::json : Form::text));
  });
}

}  // namespace headscope::cli
