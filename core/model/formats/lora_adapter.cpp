#include "core/model/formats/lora_adapter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <optional>
#include <tuple>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/pytorch_file.h"
#include "core/io/safetensors.h"
#include "core/model/config_reader.h"
#include "core/model/weight_reader.h"
#include "core/model/weights.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const RowMajor>;

View view(const Tensor& x) {
  return {x.data(), x.dim(0), x.dim(1)};
}

// ---- the configuration

/// Keys that change numbers and are not followed: each off where it is absent, null, false, or empty.
constexpr const char* refused[] = {"use_dora",
                                   "use_qalora",
                                   "lora_bias",
                                   "layer_replication",
                                   "target_parameters",
                                   "use_bdlora",
                                   "arrow_config",
                                   "alora_invocation_tokens",
                                   "megatron_config",
                                   "velora_config",
                                   "trainable_token_indices"};
/// Ways to begin that change the base model's own weights.
constexpr const char* changes_base[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

/// What a module's path is matched with: a name at its end, or (behind ^) all of it.
struct Pattern {
  std::string name;
  bool whole = false;
  double value = 0;
  bool fits(const std::string& path) const {
    if (path == name) return true;
    return !whole && path.ends_with("." + name);
  }
};

struct Settings {
  std::string base;
  int rank = 8;
  double alpha = 8;
  bool by_root = false, transposed = false;
  std::vector<Pattern> ranks, alphas;
  std::vector<std::string> saved_modules;

  template <class Patterns>
  static std::optional<double> of(const Patterns& patterns, const std::string& path) {
    const auto found = std::ranges::find_if(patterns, [&](const Pattern& each) { return each.fits(path); });
    return found == patterns.end() ? std::nullopt : std::optional(found->value);
  }
  int rank_of(const std::string& path) const { return static_cast<int>(of(ranks, path).value_or(rank)); }
  double scale_of(const std::string& path) const {
    const double r = rank_of(path), a = of(alphas, path).value_or(alpha);
    return a / (by_root ? std::sqrt(r) : r);
  }
};

std::vector<Pattern> patterns(const JsonView& all, const char* key, double low, double high) {
  std::vector<Pattern> out;
  const auto table = all.find(key);
  if (!table) return out;
  for (const auto& [name, value] : table->members()) {
    const bool whole = name.starts_with('^');
    const std::string bare = name.substr(whole, name.size() - whole - (name.ends_with('$') ? 1 : 0));
    const bool plain = !bare.empty() && std::ranges::all_of(bare, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
             c == '-';
    });
    if (!plain)
      table->refuse("names of modules, such as q_proj or ^model.layers.0.self_attn.q_proj",
                    "\"" + excerpt(name, 60) + "\"", "other patterns are not read");
    out.push_back({bare, whole, value.number(low, high)});
  }
  return out;
}

Settings read_settings(const fs::path& file) {
  const nlohmann::json json = read_json_file(file);
  const JsonView all(json, file.string());
  Settings s;
  if (const JsonView type = all.at("peft_type"); type.text() != "LORA")
    type.refuse("LORA, the method that is known", type.shown());
  const auto on = [](const nlohmann::json& value) {
    return !value.is_null() && value != nlohmann::json(false) && !(value.is_structured() && value.empty());
  };
  for (const char* key : refused)
    if (const auto value = all.find(key); value && on(value->json()))
      value->refuse("null or false: what this key asks for is not followed", value->shown(),
                    "merge the adapter with peft (merge_and_unload) and open the merged model");
  if (const auto bias = all.find("bias"); bias && bias->text() != "none")
    bias->refuse("\"none\": biases that were trained along are not read", bias->shown());
  if (const auto begin = all.find("init_lora_weights"); begin && begin->is_text())
    for (const char* way : changes_base)
      if (begin->text().starts_with(way))
        begin->refuse("a way to begin that leaves the base model as it is", begin->shown(),
                      "save the adapter converted to a usual one (path_initial_model_for_weight_conversion)");
  s.base = all.text_or("base_model_name_or_path", "");
  if (const auto rank = all.find("r")) s.rank = rank->small(1, config_limits::d_model);
  if (const auto alpha = all.find("lora_alpha")) s.alpha = alpha->number(-1e9, 1e9);
  s.by_root = all.flag_or("use_rslora", false);
  s.transposed = all.flag_or("fan_in_fan_out", false);
  s.ranks = patterns(all, "rank_pattern", 1, config_limits::d_model);
  s.alphas = patterns(all, "alpha_pattern", -1e9, 1e9);
  if (const auto saved = all.find("modules_to_save"))
    for (const JsonView& each : saved->elements("names")) s.saved_modules.push_back(each.text());
  return s;
}

// ---- names of tensors

/// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": the module, and which half of it. Between lora_A
/// and weight older files have the adapter's name.
struct Half {
  std::string module;
  bool a = false, embedding = false;
};
std::optional<Half> half_of(const std::string& name) {
  for (const auto& [mark, a, embedding] : {std::tuple{".lora_A", true, false},
                                           {".lora_B", false, false},
                                           {".lora_embedding_A", true, true},
                                           {".lora_embedding_B", false, true}}) {
    const std::size_t at = name.find(mark);
    if (at == std::string::npos) continue;
    const std::string rest = name.substr(at + std::string_view(mark).size());
    const bool known = embedding ? rest.empty() || (rest.starts_with('.') && rest.find('.', 1) == std::string::npos)
                                 : rest.ends_with(".weight") && std::ranges::count(rest, '.') <= 2;
    if (known) return Half{name.substr(0, at), a, embedding};
  }
  return std::nullopt;
}

/// Of a module that was trained whole: its tensor in the base.
std::optional<std::string> saved_of(std::string name, const std::vector<std::string>& modules) {
  bool whole = false;
  for (const std::string_view part : {std::string_view(".modules_to_save.default"), std::string_view(".base_layer")})
    if (const std::size_t at = name.find(part); at != std::string::npos) name.erase(at, part.size()), whole = true;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string module = name.substr(0, dot);
  const auto named = [&](const std::string& each) { return module == each || module.ends_with("." + each); };
  // Embeddings are saved along when the vocabulary has grown.
  static const std::vector<std::string> embeddings{"embed_tokens", "lm_head", "wte", "embed_in", "embed_out"};
  if (whole || std::ranges::any_of(modules, named) || std::ranges::any_of(embeddings, named)) return name;
  return std::nullopt;
}

TensorFile open_weights(const fs::path& folder) {
  std::error_code ignored;
  const fs::path safe = folder / "adapter_model.safetensors", pickled = folder / "adapter_model.bin";
  if (fs::exists(safe, ignored)) return SafetensorsFile::open(safe);
  if (fs::exists(pickled, ignored)) return open_pytorch(pickled);
  throw Error(folder.string(), "adapter_model.safetensors or adapter_model.bin", "neither");
}

}  // namespace

std::shared_ptr<const LoraAdapter> LoraAdapter::open(const fs::path& folder) {
  const Settings settings = read_settings(folder / "adapter_config.json");
  const auto adapter = std::make_shared<LoraAdapter>();
  adapter->folder_ = folder;
  adapter->base_ = settings.base;
  adapter->file_ = std::make_shared<TensorFile>(open_weights(folder));
  const TensorFile& file = *adapter->file_;
  constexpr std::string_view wrapped = "base_model.model.";
  for (const auto& [stored, entry] : file.tensors()) {
    const std::string name = stored.starts_with(wrapped) ? stored.substr(wrapped.size()) : stored;
    const std::string where = file.path().string() + ": tensor " + excerpt(stored);
    const std::optional<Half> half = half_of(name);
    if (!half) {
      const auto saved = saved_of(name, settings.saved_modules);
      if (!saved)
        throw Error(where, "lora_A or lora_B of a module, or a module of modules_to_save", "another tensor",
                    "leaving it out would compute something else than this adapter");
      adapter->saved_.insert_or_assign(*saved, stored);
      continue;
    }
    if (entry.shape.size() != 2)
      throw Error(where, "a matrix", fmt::format("shape {}", entry.shape), "adapters of convolutions are not read");
    Module& module = adapter->modules_[half->module];
    (half->a ? module.a : module.b) = file.tensor(stored).packed();
    // An embedding is stored (vocab, d_model): its inputs are rows.
    module.transposed = settings.transposed || half->embedding;
  }
  for (auto& [path, module] : adapter->modules_) {
    const std::string where = file.path().string() + ": " + excerpt(path);
    if (!module.a.defined() || !module.b.defined())
      throw Error(where, "lora_A and lora_B", module.a.defined() ? "lora_A alone" : "lora_B alone");
    const int rank = settings.rank_of(path);
    if (module.a.dim(0) != rank || module.b.dim(1) != rank)
      throw Error(where, fmt::format("halves of rank {}, as adapter_config.json says", rank),
                  fmt::format("lora_A {}, lora_B {}", module.a.shape().str(), module.b.shape().str()));
    module.scale = settings.scale_of(path);
  }
  if (adapter->modules_.empty() && adapter->saved_.empty())
    throw Error(file.path().string(), "lora_A and lora_B of modules", "no tensors");
  return adapter;
}

std::string LoraAdapter::summary() const {
  std::set<std::string> kinds;
  std::set<Index> ranks;
  for (const auto& [path, module] : modules_) {
    kinds.insert(path.substr(path.rfind('.') + 1));
    ranks.insert(module.rank());
  }
  return fmt::format("LoRA of rank {}, {} matrices ({}){}", fmt::join(ranks, ", "), modules_.size(),
                     fmt::join(kinds, ", "), saved_.empty() ? "" : fmt::format(", {} tensors whole", saved_.size()));
}

namespace {

/// `path` as the base calls it: files leave out the outermost module ("transformer."), or have one more.
std::optional<std::string> name_in(const WeightSource& base, const std::string& path) {
  for (std::string name = path;;) {
    if (base.contains(name)) return name;
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) break;
    name.erase(0, dot + 1);
  }
  for (const char* outer : {"model.", "transformer.", "gpt_neox."})
    if (base.contains(outer + path)) return outer + path;
  return std::nullopt;
}

/// Whether a matrix of this shape stands (in, out). Throws Error at `where` when it is not the module's.
bool inputs_first(const LoraAdapter::Module& module, const Shape& shape, const std::string& where) {
  const Index in = module.a.dim(1), out = module.b.dim(0);
  const bool first = in == out ? module.transposed : shape.rank() == 2 && shape[0] == in;
  const Shape expected = first ? Shape{in, out} : Shape{out, in};
  if (shape != expected)
    throw Error(where, fmt::format("a matrix of {}, as the base model has it", shape.str()),
                fmt::format("halves of {} inputs and {} outputs", in, out), "was it trained on another model?");
  return first;
}

/// Zeros that cost no memory until they are read.
Tensor untouched(const Shape& shape) {
  void* const memory = std::calloc(static_cast<std::size_t>(std::max<Index>(shape.size(), 1)), sizeof(float));
  if (!memory) throw std::bad_alloc();
  return Tensor::borrow(static_cast<const float*>(memory), shape, std::shared_ptr<const void>(memory, &std::free));
}

/// What the family's reader is given to find out where modules went. A reader slices, joins and turns matrices along
/// their outputs alone, so it may be given ones of fewer inputs.
class FewerInputs final : public WeightSource {
 public:
  using Modules = std::map<std::string, const LoraAdapter::Module*>;
  using Rows = std::function<Tensor(const LoraAdapter::Module&)>;  // (rows, out)
  FewerInputs(const WeightSource& real, const Modules& modules, Rows rows)
      : real_(real), modules_(modules), rows_(std::move(rows)) {}
  std::string where() const override { return real_.where(); }
  std::vector<std::string> names() const override { return real_.names(); }
  bool contains(const std::string& name) const override { return real_.contains(name); }
  std::string dtype(const std::string& name) const override { return real_.dtype(name); }
  Tensor take(const std::string& name, const Shape& shape) const override {
    const auto found = modules_.find(name);
    if (found == modules_.end()) return untouched(shape);
    const Tensor rows = rows_(*found->second);
    return inputs_first(*found->second, shape, name) ? rows : rows.transpose(0, 1);
  }

 private:
  const WeightSource& real_;
  const Modules& modules_;
  Rows rows_;
};

Tensor& matrix_in(RawLayer& layer, WeightMatrix matrix) {
  Tensor* const all[weight_matrix_count] = {&layer.q_weight,  &layer.k_weight,    &layer.v_weight,   &layer.o_weight,
                                            &layer.up_weight, &layer.gate_weight, &layer.down_weight};
  return *all[static_cast<int>(matrix)];
}

}  // namespace

AdaptedWeights::AdaptedWeights(std::unique_ptr<WeightSource> base, std::shared_ptr<const LoraAdapter> adapter)
    : base_(std::move(base)), adapter_(std::move(adapter)) {
  std::vector<std::string> strangers;
  const auto place = [&](auto& into, const std::string& name, const std::string& path, const auto& value) {
    if (const auto found = name_in(*base_, name))
      into.emplace(*found, value);
    else
      strangers.push_back(excerpt(path, 60));
  };
  for (const auto& [path, module] : adapter_->modules()) place(modules_, path + ".weight", path, &module);
  for (const auto& [name, stored] : adapter_->saved()) place(saved_, name, name, stored);
  if (strangers.empty()) return;
  const std::size_t count = strangers.size();
  if (strangers.size() > 3) strangers.resize(3);
  throw Error(adapter_->folder().string(), "an adapter of this model's matrices",
              fmt::format("{} that {} does not have: {}", count, base_->where(), fmt::join(strangers, ", ")),
              adapter_->base().empty() ? "it was trained on another model"
                                       : "it was trained on " + excerpt(adapter_->base(), 60));
}

std::vector<std::string> AdaptedWeights::names() const {
  return base_->names();
}

bool AdaptedWeights::contains(const std::string& name) const {
  return base_->contains(name);
}

std::string AdaptedWeights::dtype(const std::string& name) const {
  return base_->dtype(name);
}

Tensor AdaptedWeights::take(const std::string& name, const Shape& shape) const {
  taken_.insert(name);
  const auto saved = saved_.find(name);
  Tensor out =
      saved == saved_.end() ? base_->take(name, shape) : FileWeights(adapter_->file()).take(saved->second, shape);
  const auto found = modules_.find(name);
  if (found == modules_.end()) return out;
  const LoraAdapter::Module& module = *found->second;
  const bool first = inputs_first(module, shape, adapter_->folder().string() + ": " + name);
  out = out.copy();
  Eigen::Map<RowMajor> merged(out.mutable_data(), shape[0], shape[1]);
  const auto scale = static_cast<float>(module.scale);
  if (first)
    merged.noalias() += scale * (view(module.a).transpose() * view(module.b).transpose());
  else
    merged.noalias() += scale * (view(module.b) * view(module.a));
  return out;
}

void AdaptedWeights::finish(const ModelConfig& config, RawWeights& weights) const {
  const auto must_be_used = [&](const std::string& name) {
    if (!taken_.contains(name))
      throw Error(adapter_->folder().string(), "an adapter of tensors that this model uses", name,
                  config.tied_embeddings ? "its unembedding is its embedding" : "");
  };
  for (const auto& [name, module] : modules_) must_be_used(name);
  for (const auto& [name, stored] : saved_) must_be_used(name);

  // Which module each matrix of a block came from, told by its number; and its outputs' half.
  std::vector<const LoraAdapter::Module*> numbered;
  std::map<const LoraAdapter::Module*, float> number;
  for (const auto& [name, module] : modules_) {
    numbered.push_back(module);
    number[module] = static_cast<float>(numbered.size());
  }
  ModelConfig unscaled = config;
  unscaled.multipliers = {};
  unscaled.residual_scale = unscaled.value_scale = 1;  // a number is none any more when it is multiplied
  const auto read = [&](const ModelConfig& as, FewerInputs::Rows rows) {
    return family(config.family, where()).read_weights(FewerInputs(*base_, modules_, std::move(rows)), as);
  };
  RawWeights numbers = read(unscaled, [&](const LoraAdapter::Module& module) {
    return Tensor::full({1, module.b.dim(0)}, number.at(&module));
  });
  RawWeights halves = read(config, [](const LoraAdapter::Module& module) {
    Tensor up = module.b.transpose(0, 1).copy();
    for (float& v : up.mutable_values()) v = static_cast<float>(module.scale * static_cast<double>(v));
    return up;
  });
  const auto made_by = [&](const Tensor& told) -> const LoraAdapter::Module* {
    // By its last output: the first ones of a key may be 0 (RawLayer::latents).
    const float which = told.defined() ? told.at(0, told.dim(1) - 1) : 0;
    return which < 1 ? nullptr : numbered[static_cast<std::size_t>(which) - 1];
  };
  // `further`: modules that also make what is no matrix of a block, and would stay when those are taken back.
  std::set<const LoraAdapter::Module*> in_blocks, further{nullptr};
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
    for (int i = 0; i < weight_matrix_count; ++i) {
      const auto matrix = static_cast<WeightMatrix>(i);
      const LoraAdapter::Module* const module = made_by(matrix_in(numbers.layers[layer], matrix));
      if (!module) continue;
      in_blocks.insert(module);
      const bool of_distances = config.distances && config.distances->shared;
      if (of_distances && (matrix == WeightMatrix::q || matrix == WeightMatrix::k)) further.insert(module);
      weights.layers[layer].adapted[matrix] = {module->a.transpose(0, 1), matrix_in(halves.layers[layer], matrix)};
      if (matrix == WeightMatrix::k && config.value_is_key(static_cast<int>(layer)))
        weights.layers[layer].adapted[WeightMatrix::v] = weights.layers[layer].adapted[matrix];
    }
  for (const RawLayer& layer : numbers.layers)
    for (const Tensor* other : {&layer.z_gate_weight, &layer.distance_k_weight, &layer.distance_q_weight})
      further.insert(made_by(*other));
  for (const auto& [name, module] : modules_)
    if (!in_blocks.contains(module) || further.contains(module)) weights.adapted_elsewhere.push_back(name);
  for (const auto& [name, stored] : saved_) weights.adapted_elsewhere.push_back(name);
}

}  // namespace headscope
