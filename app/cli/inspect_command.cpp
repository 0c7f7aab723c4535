// headscope-cli inspect: what a model or a file of tensors holds, checked as the engine checks it.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "app/cli/commands.h"
#include "app/cli/input.h"
#include "app/cli/report.h"
#include "app/cli/table_text.h"
#include "app/render/head_report.h"
#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/generate/generation.h"
#include "core/io/model_location.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/text/tokenizer.h"

namespace headscope::cli {

namespace {
namespace fs = std::filesystem;

const char* name_of(NormKind kind) {
  return kind == NormKind::layer_norm ? "LayerNorm" : "RMSNorm";
}
const char* name_of(PositionKind kind) {
  switch (kind) {
    case PositionKind::learned:
      return "learned";
    case PositionKind::rotary:
      return "rotary (RoPE)";
    case PositionKind::alibi:
      return "ALiBi";
    case PositionKind::none:
      break;
  }
  return "none";
}
const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "ReLU";
    case Activation::gelu:
      return "GELU";
    case Activation::gelu_tanh:
      return "GELU (tanh)";
    case Activation::xielu:
      return "xIELU";
    case Activation::silu:
      break;
  }
  return "SiLU";
}

struct Part {
  std::string name;
  std::int64_t parameters = 0;
};

/// Where the parameters are. Tied unembeddings count once, with the embedding.
std::vector<Part> parts_of(const RawWeights& weights, const ModelConfig& config) {
  const auto size = [](const Tensor& tensor) { return tensor.defined() ? tensor.size() : Index{0}; };
  Part attention{"attention"}, mlp{"MLP"},
      norms{"norms", size(weights.final_gain) + size(weights.final_bias) + size(weights.embedding_gain) +
                         size(weights.embedding_bias)};
  for (const RawLayer& l : weights.layers) {
    for (const Tensor* t :
         {&l.q_weight, &l.q_bias, &l.k_weight, &l.k_bias, &l.v_weight, &l.v_bias, &l.o_weight, &l.o_bias,
          &l.latents.q_weight, &l.latents.q_bias, &l.latents.kv_weight, &l.latents.kv_bias})
      attention.parameters += size(*t);
    // Zeros in place of what turns of a key.
    if (config.latent()) attention.parameters -= Index{config.dims.kv_latent} * config.dims.heads * config.rotary.width;
    for (const Tensor* t : {&l.up_weight, &l.up_bias, &l.gate_weight, &l.gate_bias, &l.down_weight, &l.down_bias})
      mlp.parameters += size(*t);
    if (l.xielu.defined()) mlp.parameters += 2;
    for (const Tensor* t :
         {&l.ln1_gain, &l.ln1_bias, &l.ln2_gain, &l.ln2_bias, &l.ln1_post_gain, &l.ln2_post_gain, &l.q_norm_gain,
          &l.q_norm_bias, &l.k_norm_gain, &l.k_norm_bias, &l.latents.q_gain, &l.latents.kv_gain})
      norms.parameters += size(*t);
  }
  std::vector<Part> parts{{config.tied_embeddings ? "token embedding (and unembedding, tied)" : "token embedding",
                           size(weights.token_embedding)}};
  if (weights.position_embedding.defined()) parts.push_back({"position embedding", size(weights.position_embedding)});
  parts.push_back(attention);
  parts.push_back(mlp);
  parts.push_back(norms);
  if (!config.tied_embeddings)
    parts.push_back({"unembedding", size(weights.unembedding) + size(weights.unembedding_bias)});
  return parts;
}

/// A file of tensors that is not a model is only that.
struct Inspected {
  std::shared_ptr<const TensorFile> file;
  std::optional<ModelConfig> config;
  std::vector<Part> parts;
  std::int64_t parameters = 0;
  std::string dtype;
  std::vector<std::string> unused;
  std::shared_ptr<const Tokenizer> tokenizer;
};

/// Whether `file` is a model, beside being tensors: in a model's folder may also lie traces and checkpoints.
bool is_model(const ModelLocation& file) {
  std::error_code ignored;
  return file.self_contained() ||
         (fs::exists(file.folder / "config.json", ignored) && locate_model(file.folder).weights == file.weights);
}

Inspected inspect(const fs::path& path) {
  std::error_code ignored;
  const ModelLocation place = locate_model(path);
  if (!fs::is_directory(path, ignored) && !is_model(place))
    return {std::make_shared<TensorFile>(open_tensors(place)), {}, {}, 0, "", {}, nullptr};
  const ModelConfig config = load_config(path);
  ModelFiles files = ModelFiles::open(place);
  Inspected result{files.tensors, config, {}, 0, "", {}, load_tokenizer(path)};
  const RawWeights weights = read_weights(*files.weights, config);
  result.parts = parts_of(weights, config);
  result.parameters = weights.parameters;
  result.dtype = weights.dtype;
  result.unused = weights.unused;
  return result;
}

/// What this model does that GPT-2 and Llama do not, in words.
std::string switches(const ModelConfig& c) {
  std::vector<std::string> words;
  const auto say = [&](bool holds, std::string text) {
    if (holds) words.push_back(std::move(text));
  };
  say(c.dims.parallel, c.shared_norm ? "attention and MLP in parallel behind one norm"
                                     : "attention and MLP in parallel behind a norm each");
  say(c.norm_place == NormPlace::both, "norms before and behind attention and MLP");
  say(c.norm_place == NormPlace::behind, "norms behind attention and MLP only");
  say(!c.norm_weights, "norms without weights");
  say(c.norm_gain_plus_one, "norm gains added to 1");
  say(c.embedding_norm, "a norm behind the embedding");
  say(c.latent(),
      fmt::format("keys and values of {} dimensions made of a latent of {} numbers per token{}", c.dims.value_width(),
                  c.dims.kv_latent, c.dims.q_latent > 0 ? fmt::format(", queries of one of {}", c.dims.q_latent) : ""));
  say(c.rotary.scaling == RotaryConfig::Scaling::yarn,
      fmt::format("rotations stretched {}-fold (YaRN), queries and keys times {:.4g}", c.rotary.factor,
                  rotary_magnitude(c.rotary)));
  say(c.qk_norm != QkNorm::none,
      fmt::format("queries and keys normalised {}", c.qk_norm == QkNorm::per_head ? "by head" : "over all heads"));
  say(c.clip_qkv > 0, fmt::format("queries, keys and values cut to ± {}", c.clip_qkv));
  if (c.position == PositionKind::rotary) {
    say(c.rotary.width > 0, fmt::format("{} of {} dimensions of a head rotated", c.rotary.width, c.dims.d_head));
    say(c.rotary.layout == RotaryLayout::interleaved, "adjacent pairs rotated");
    say(!c.layer_rotary.empty(), "layers with a window rotated by another base");
    say(!c.layer_turns.empty(),
        fmt::format("{} of {} layers not rotated", std::ranges::count(c.layer_turns, false), c.dims.layers));
  }
  if (!c.windows.empty()) {
    const auto windowed = std::ranges::count_if(c.windows, [](int window) { return window > 0; });
    say(true,
        fmt::format("{} of {} layers see a window of {} tokens", windowed, c.dims.layers, std::ranges::max(c.windows)));
  }
  say(c.score_scale.has_value(), fmt::format("scores times {:.6g}", c.score_scale.value_or(0)));
  say(c.family != "gpt2" && !c.score_scale && !c.scale_by_inverse_sqrt_d, "scores not divided by √d_head");
  say(c.score_cap > 0, fmt::format("scores bent by a soft cap of {}", c.score_cap));
  say(c.logit_cap > 0, fmt::format("logits bent by a soft cap of {}", c.logit_cap));
  say(c.embedding_scale != 1, fmt::format("embeddings times {:.6g}", c.embedding_scale));
  say(c.residual_scale != 1, fmt::format("what blocks add times {:.6g}", c.residual_scale));
  say(c.logit_scale != 1, fmt::format("logits times {:.6g}", c.logit_scale));
  return fmt::format("{}", fmt::join(words, ", "));
}

Cell config_json(const ModelConfig& c) {
  Cell out{{"layers", c.dims.layers},        {"heads", c.dims.heads},          {"kv_heads", c.dims.kv_heads},
           {"d_head", c.dims.d_head},        {"d_model", c.dims.d_model},      {"d_mlp", c.dims.d_mlp},
           {"vocab", c.dims.vocab},          {"context", c.context},           {"norm", name_of(c.norm)},
           {"norm_epsilon", c.norm_epsilon}, {"position", name_of(c.position)}};
  if (c.position == PositionKind::rotary) out["rope_base"] = c.rotary.base;
  out["activation"] = name_of(c.activation);
  out["gated_mlp"] = c.gated_mlp;
  out["tied_embeddings"] = c.tied_embeddings;
  if (const std::string other = switches(c); !other.empty()) out["switches"] = other;
  return out;
}

void add_config(Report& out, const Inspected& model) {
  const ModelConfig& c = *model.config;
  out.line(fmt::format("{}  ({}: {})", c.name, c.family, family(c.family, c.name).summary));
  out.line(fmt::format(
      "  {} layers, {} heads of {}{}, width {}, MLP {}{}, vocabulary {}, context {}", c.dims.layers, c.dims.heads,
      c.dims.d_head, c.dims.kv_heads != c.dims.heads ? fmt::format(" on {} key-value heads", c.dims.kv_heads) : "",
      c.dims.d_model, c.dims.d_mlp, c.gated_mlp ? " gated" : "", grouped(c.dims.vocab), grouped(c.context)));
  out.line(fmt::format("  {} (epsilon {}), positions {}{}, {}, embeddings {}", name_of(c.norm), c.norm_epsilon,
                       name_of(c.position),
                       c.position == PositionKind::rotary ? fmt::format(" base {}", c.rotary.base) : "",
                       name_of(c.activation), c.tied_embeddings ? "tied" : "not tied"));
  if (const std::string other = switches(c); !other.empty()) out.line("  " + other);
  out.line(model.tokenizer ? fmt::format("  tokenizer: {}, {}", model.tokenizer->describe(),
                                         model.tokenizer->adds_bos() ? "adds BOS" : "adds no BOS")
                           : "  no tokenizer: runs on --ids only");
  out.line(fmt::format("  key-value cache {} per token", byte_size(cache_bytes(c.dims, 1))));
  if (c.latent())
    out.line(fmt::format("  of which {} would do: {} numbers of the latent and {} of the key that turns, per layer",
                         byte_size(sizeof(float) * static_cast<std::uint64_t>(c.dims.layers) *
                                   static_cast<std::uint64_t>(c.cached_numbers())),
                         c.dims.kv_latent, c.rotary.width));

  auto& table = out.table("", {"parameters", for_people(""), for_people("share")}, Form::text);
  Cell parts = Cell::object();
  for (const Part& part : model.parts) {
    const double share = 100.0 * static_cast<double>(part.parameters) / static_cast<double>(model.parameters);
    table.add({part.name, grouped(part.parameters), number(share, 1) + " %"});
    parts[part.name] = part.parameters;
  }
  table.add({"total (" + model.dtype + ")", grouped(model.parameters), ""});

  out.data("name", c.name);
  out.data("family", c.family);
  out.data("config", config_json(c));
  out.data("parameters", {{"total", model.parameters}, {"parts", std::move(parts)}});
  out.data("dtype", model.dtype);
  out.data("tokenizer", model.tokenizer ? Cell{{"kind", model.tokenizer->describe()},
                                               {"vocab", model.tokenizer->vocab_size()},
                                               {"adds_bos", model.tokenizer->adds_bos()}}
                                        : Cell());
  out.data("unused_tensors", model.unused);
}

Report inspect_report(const Inspected& model, const fs::path& path) {
  Report out;
  out.data("path", path.string());
  if (model.config) add_config(out, model);
  out.data("format", model.file->format());
  if (!model.file->metadata().empty()) out.data("metadata", model.file->metadata());
  auto& table = out.table("tensors", {for_people("tensor", "", Column::Align::left), only_in(Form::json, "name"),
                                      "dtype", for_people("shape", "", Column::Align::left),
                                      only_in(Form::json, "shape"), for_people("size"), only_in(Form::json, "bytes")});
  std::uint64_t total = 0;
  std::map<std::string, int> stored;  // by type
  for (const auto& [name, entry] : model.file->tensors()) {
    table.add({excerpt(name), name, dtype_name(entry.dtype), fmt::format("[{}]", fmt::join(entry.shape, ", ")),
               entry.shape, byte_size(entry.size), entry.size});
    total += entry.size;
    ++stored[dtype_name(entry.dtype)];
  }
  std::string types;
  for (const auto& [type, count] : stored) types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
  out.data("stored", stored);
  out.line(fmt::format("{}: {} tensors ({}), {}", model.file->format(), model.file->tensors().size(), types,
                       byte_size(total)));
  std::string unused;
  for (const std::string& name : model.unused) unused += (unused.empty() ? "" : ", ") + excerpt(name);
  if (!unused.empty()) out.line("not used by the model: " + unused);
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
  command.add_flag("--json", options->json, "JSON instead of text");
  command.does([options, &console] {
    if (options->input.model.empty()) options->input.model = options->path;
    const fs::path folder = options->input.model_folder();
    console.print(inspect_report(inspect(folder), folder).printed(options->json ? Form::json : Form::text));
  });
}

}  // namespace headscope::cli
