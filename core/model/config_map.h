#pragma once
// A family's config.json as one function that reads and writes: each line names a key and the field of ModelConfig that
// it stands for. So what is written is what is read, and a key that nobody reads can be told.

#include <optional>
#include <string>
#include <vector>

#include "core/model/config_reader.h"

namespace headscope {

class ConfigMap {
 public:
  explicit ConfigMap(const ConfigReader& json) : in_(&json) {}
  explicit ConfigMap(ConfigWriter& json) : out_(&json) {}
  bool reading() const { return in_ != nullptr; }
  const ConfigReader& json() const { return *in_; }  ///< REQUIRES reading()

  /// Without a fallback the key must be there. Errors as ConfigReader's.
  void integer(const std::string& key, int& value, int low, int high, std::optional<int> fallback = {});
  void number(const std::string& key, double& value, double low, double high, std::optional<double> fallback = {});
  void flag(const std::string& key, bool& value, bool fallback);
  void activation(const std::string& key, Activation& value, const std::string& fallback);
  /// Of an MLP with a gate: what its gate goes through.
  void gated_mlp(const std::string& key, ModelConfig& c, const std::string& fallback);
  /// No biases but those of queries, keys, values and what attention writes, all or none of them; and likewise those of
  /// the MLP, where a key is named for them.
  void biases(ModelConfig& c, const std::string& attention_key, const std::string& mlp_key = "");
  void text(const std::string& key, std::string& value, const std::string& fallback);
  void token(const std::string& key, std::optional<std::int32_t>& value, int vocab);
  /// A switch that only `value` is known of; `otherwise` says in a sentence what the other would need.
  void only(const std::string& key, bool value, const char* otherwise);

  void optional(const std::string& key, int value);  ///< 0 is written as null. REQUIRES !reading()
  void put(const std::string& key, const ConfigWriter& nested) { out_->put(key, nested); }      ///< REQUIRES !reading()
  void put(const std::string& key, const std::vector<int>& values) { out_->put(key, values); }  ///< likewise
  void put(const std::string& key, const std::vector<double>& values) { out_->put(key, values); }
  void put(const std::string& key, const std::vector<std::string>& values) { out_->put(key, values); }
  /// A number above 0; null = 0, which means none.
  void cap(const std::string& key, double& value, double fallback);

  /// What most decoders call their extents. An empty name: not in the file.
  struct Extents {
    std::string layers = "num_hidden_layers", heads = "num_attention_heads", kv_heads = "num_key_value_heads",
                width = "hidden_size", d_head = "head_dim", mlp = "intermediate_size",
                context = "max_position_embeddings", vocab = "vocab_size";
    int mlp_factor = 0;      ///< > 0: d_mlp is that times the width where `mlp` is absent
    int usual_kv_heads = 0;  ///< where `kv_heads` is absent; 0: as many as heads
  };
  void extents(ModelConfig& c, const Extents& names);
  void norm(ModelConfig& c, NormKind kind, const std::string& key, double fallback);
  /// rope_theta with rope_scaling, or rope_parameters; `share` of the head that turns, by its key or else by `share`.
  void rotary(ModelConfig& c, double base, double share = 1, const std::string& share_key = "partial_rotary_factor",
              const std::string& base_key = "rope_theta");
  /// What rope_parameters says of this rotation in heads of that width.
  static ConfigWriter written(const RotaryConfig& rotary, int d_head);
  /// rope_parameters by kind of layer ("full_attention", "sliding_attention"), or `base_key` with rope_scaling for the
  /// one and `local_key` for the other. Layers are told apart by their window.
  /// `share` of the head turns, by its key (at the top or within) or else by `share`. An odd number of dimensions is
  /// refused or, `round_up`, makes one more turn: RotaryConfig::odd.
  void rotary_by_window(ModelConfig& c, double base, double local_base, const std::string& local_key,
                        const std::string& base_key = "rope_theta", double share = 1, const std::string& share_key = "",
                        bool round_up = false);
  /// layer_types with one window for all "sliding_attention" layers; `sliding(layer)` where the list is absent.
  template <class Sliding>
  void layer_types(ModelConfig& c, int window, Sliding sliding) {
    std::vector<bool> local;
    for (int layer = 0; layer < c.dims.layers; ++layer) local.push_back(window > 0 && sliding(layer));
    layer_types(c, window, std::move(local));
  }
  /// The same: sliding_window in all layers but every so manieth, as sliding_window_pattern says where it is there.
  void windows_every(ModelConfig& c, int window, int pattern);
  /// Where use_sliding_window says so: sliding_window in the layers from the one on that `key` names, or as layer_types
  /// says.
  void windows_from(const std::string& key, ModelConfig& c, int usual = 28);
  /// sliding_window of every layer; null = none.
  void one_window(ModelConfig& c, std::optional<int> fallback = {});
  /// [[["global", "local"], 2], …]: the local layers have the window.
  void layers_repeated(const std::string& key, ModelConfig& c, int window);
  /// 1 for every layer that rotates, 0 for others; where absent, every `interval`-th (or as no_rope_layer_interval
  /// says) does not.
  void layers_that_turn(const std::string& key, ModelConfig& c, int interval);
  /// Whether the file has a matrix to logits: files of a bare encoder, or of a classifier, have none.
  void predicts(ModelConfig& c);
  /// Of models of pictures: image_size, patch_size, num_channels, and the names of the classes, of which dims.vocab is
  /// the number. REQUIRES c.vision, with the usual preparation of the family.
  void picture(ModelConfig& c);
  /// Tied embeddings, first and last tokens.
  void ends(ModelConfig& c, bool tied);

 private:
  void classes(ModelConfig& c);
  void layer_types(ModelConfig& c, int window, std::vector<bool> local);
  RotaryConfig read_rotary(const ConfigReader& at, const ConfigReader& root, const ModelConfig& c, double base,
                           double share, const std::string& share_key, const std::string& base_key,
                           bool round_up = false) const;

  const ConfigReader* in_ = nullptr;
  ConfigWriter* out_ = nullptr;
};

/// Throws Error naming the first key of config.json that is known to change numbers in some family, has a value that
/// does, and was read by nobody.
void refuse_unread(const ConfigReader& json);

}  // namespace headscope
