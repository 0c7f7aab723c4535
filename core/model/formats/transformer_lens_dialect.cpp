#include "core/model/formats/transformer_lens_dialect.h"

#include <fmt/format.h>

#include <initializer_list>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t config_bytes_limit = std::size_t{16} << 20;
constexpr const char* first_queries = "blocks.0.attn.W_Q";

/// What a configuration leaves unsaid, from the tensors' names and shapes.
class Derived {
 public:
  Derived(json& config, const TensorFile& file) : config_(config), file_(file) {}

  void extents() {
    std::set<std::string> layers;
    for (const auto& [name, entry] : file_.tensors())
      if (name.starts_with("blocks.")) layers.insert(name.substr(7, name.find('.', 7) - 7));
    put("n_layers", static_cast<std::int64_t>(layers.size()));
    from(first_queries, 3, {{"n_heads", 0}, {"d_model", 1}, {"d_head", 2}});
    from("blocks.0.attn._W_K", 3, {{"n_key_value_heads", 0}});
    from("embed.W_E", 2, {{"d_vocab", 0}});
    from("unembed.W_U", 2, {{"d_vocab_out", 1}});
    from("pos_embed.W_pos", 2, {{"n_ctx", 0}});
    from("blocks.0.attn.mask", 2, {{"n_ctx", 0}});
    from("blocks.0.attn.rotary_cos", 2, {{"n_ctx", 0}});
    from("blocks.0.mlp.W_in", 2, {{"d_mlp", 1}});
    if (unsaid("attn_only")) config_["attn_only"] = !file_.contains("blocks.0.mlp.W_in");
    if (unsaid("gated_mlp")) config_["gated_mlp"] = file_.contains("blocks.0.mlp.W_gate");
    if (unsaid("n_ctx")) ask("n_ctx (the longest text)", {{"n_ctx", 1024}});
  }

  void activation() {
    if (!unsaid("act_fn") || config_["attn_only"] == json(true)) return;
    if (file_.contains("blocks.0.mlp.ln.w"))
      config_["act_fn"] = "solu_ln";
    else
      ask("act_fn (relu, gelu, gelu_new, silu, solu or solu_ln)", {{"act_fn", "gelu_new"}});
  }

  void norms() {
    const bool gains = file_.contains("blocks.0.ln1.w"), biases = file_.contains("blocks.0.ln1.b");
    if (unsaid("final_rms"))  // a last norm without the bias that the others have
      config_["final_rms"] = biases && file_.contains("ln_final.w") && !file_.contains("ln_final.b");
    // Where nothing is said: null would be an answer.
    if (!config_.contains("normalization_type")) {
      if (gains)
        config_["normalization_type"] = biases ? "LN" : "RMS";
      else
        ask("normalization_type (LNPre, RMSPre, or null for none)", {{"normalization_type", "LNPre"}});
      return;
    }
    // Weights that were folded after the configuration was written.
    if (json& kind = config_["normalization_type"]; !gains && (kind == "LN" || kind == "RMS"))
      kind = kind.get<std::string>() + "Pre";
  }

  void positions() {
    if (!unsaid("positional_embedding_type")) return;
    if (file_.contains("pos_embed.W_pos")) {
      config_["positional_embedding_type"] = "standard";
      return;
    }
    if (!file_.contains("blocks.0.attn.rotary_cos"))
      return ask("positional_embedding_type (rotary or alibi)", {{"positional_embedding_type", "rotary"}});
    config_["positional_embedding_type"] = "rotary";
    from("blocks.0.attn.rotary_cos", 2, {{"rotary_dim", 1}});
    if (unsaid("rotary_base")) ask("rotary_base", {{"rotary_base", 10000}});
    if (unsaid("rotary_adjacent_pairs"))
      ask("rotary_adjacent_pairs (true or false)", {{"rotary_adjacent_pairs", false}});
  }

  /// Throws when something was asked for.
  void done(const fs::path& beside) const {
    if (asked_.empty()) return;
    throw Error(file_.path().string(), "in " + beside.string() + ": " + asked_,
                config_said_ ? "a configuration without" : "no configuration",
                fmt::format("write that file, with what the model was trained with, such as {}", example_.dump()));
  }
  void has_configuration() { config_said_ = true; }

 private:
  bool unsaid(const char* key) const { return !config_.contains(key) || config_.at(key).is_null(); }
  void put(const char* key, std::int64_t value) {
    if (unsaid(key)) config_[key] = value;
  }
  void from(const char* tensor, std::size_t rank, std::initializer_list<std::pair<const char*, std::size_t>> keys) {
    const auto found = file_.tensors().find(tensor);
    if (found == file_.tensors().end() || found->second.shape.size() != rank) return;
    for (const auto& [key, axis] : keys) put(key, found->second.shape[axis]);
  }
  void ask(const std::string& what, const json& example) {
    asked_ += (asked_.empty() ? "" : "; ") + what;
    example_.update(example);
  }

  json& config_;
  const TensorFile& file_;
  std::string asked_;
  json example_ = json::object();
  bool config_said_ = false;
};

}  // namespace

bool is_transformer_lens(const TensorFile& file) {
  return file.contains("embed.W_E") && file.contains(first_queries);
}

ConfigReader transformer_lens_config(const ModelLocation& model, const TensorFile& file) {
  const fs::path beside = model.folder / "config.json";
  std::error_code ignored;
  json config = json::object();
  std::string where = model.weights.string();
  Derived derived(config, file);
  if (fs::is_regular_file(beside, ignored)) {
    where = beside.string();
    config = parse_strict_json(read_file(beside, config_bytes_limit), where);
    if (!config.is_object()) throw Error(where, "a JSON object", config.type_name());
    derived.has_configuration();
  } else if (const auto inside = file.metadata().find("config"); inside != file.metadata().end()) {
    where += ": config";
    config = parse_strict_json(inside->second, where);
    if (!config.is_object()) throw Error(where, "a dict", config.type_name());
    derived.has_configuration();
  }
  // As its author's own models spell it.
  if (config.contains("normalization") && !config.contains("normalization_type"))
    config["normalization_type"] = config["normalization"];
  derived.extents();
  derived.activation();
  derived.norms();
  derived.positions();
  derived.done(beside);
  config["model_type"] = "transformer_lens";
  return ConfigReader::parse(config.dump(), where);
}

}  // namespace headscope
