// DeBERTa (He et al., DeBERTa: Decoding-enhanced BERT with Disentangled Attention, 2021): BERT whose scores are those
// of contents with contents and of either with distances, which have vectors of their own
// (core/attention/positions/disentangled.h). Its published files add no positions to the embeddings.

#include "core/model/families/deberta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/model/families/bert.h"

namespace headscope {

namespace {
/// "c2p" and "p2c", as a list or as "c2p|p2c".
std::vector<std::string> terms_of(const ConfigReader& json) {
  std::vector<std::string> terms;
  if (json.is_text("pos_att_type")) {
    std::string word;
    for (const char c : json.text("pos_att_type") + "|") {
      if (c != '|' && c != ' ') word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      if (c == '|' && !word.empty()) terms.push_back(std::exchange(word, ""));
    }
  } else if (json.has("pos_att_type")) {
    terms = json.texts("pos_att_type").value_or(terms);
  }
  for (const std::string& term : terms)
    if (term != "c2p" && term != "p2c")
      throw json.error("pos_att_type", "\"c2p\" (content to position) and \"p2c\" (position to content)",
                       "\"" + term + "\"");
  return terms;
}

/// conv_kernel_size, conv_groups and conv_act: of DeBERTa-v2 XL and XXL.
void first_convolution(ConfigMap& keys, ModelConfig& c) {
  FirstConvolution own = c.convolution.value_or(FirstConvolution{.tokens = 0});
  keys.integer("conv_kernel_size", own.tokens, 0, 1 << 10, 0);
  if (own.tokens == 0) return;
  keys.integer("conv_groups", own.groups, 1, config_limits::d_model, 1);
  keys.activation("conv_act", own.activation, "tanh");
  if (!keys.reading()) return;
  if (own.tokens % 2 == 0)
    throw keys.json().error("conv_kernel_size", "an odd number of tokens", std::to_string(own.tokens),
                            "of an even one there is a row less than tokens");
  if (c.dims.d_model % own.groups != 0)
    throw keys.json().error("conv_groups", fmt::format("a divisor of hidden_size = {}", c.dims.d_model),
                            std::to_string(own.groups));
  c.convolution = own;
  c.dims.convolves_first = true;
}

void check_same(const ConfigReader& json, const char* key, int own, int found, const char* hint) {
  if (own != found) throw json.error(key, std::to_string(own), std::to_string(found), hint);
}
}  // namespace

void deberta_keys(ConfigMap& keys, ModelConfig& c, bool v2) {
  keys.extents(c, {.kv_heads = "", .d_head = v2 ? "attention_head_size" : ""});
  keys.norm(c, NormKind::layer_norm, "layer_norm_eps", 1e-7);
  bert_like(keys, c, "hidden_act", "gelu");
  keys.integer("type_vocab_size", c.segments, 0, 1 << 16, 0);
  bool biased = c.position == PositionKind::learned, relative = c.distances.has_value();
  keys.flag("position_biased_input", biased, true);
  keys.flag("relative_attention", relative, false);
  DistanceConfig own = c.distances.value_or(DistanceConfig{});
  if (keys.reading()) {
    const ConfigReader& json = keys.json();
    c.position = biased ? PositionKind::learned : PositionKind::none;
    if (!v2) c.bias.k = false;
    const std::vector<std::string> terms = terms_of(json);
    const auto has = [&](const char* term) { return std::ranges::find(terms, term) != terms.end(); };
    own.content_to_position = has("c2p"), own.position_to_content = has("p2c");
    own.key_bias = v2;
    const int parts = v2 ? 1 + own.content_to_position + own.position_to_content : 1 + static_cast<int>(terms.size());
    c.score_scale = 1 / std::sqrt(static_cast<double>(c.dims.d_head) * parts);
  } else {
    // As many as the scale counts, whether or not there are distances.
    const int parts = static_cast<int>(std::lround(1 / (*c.score_scale * *c.score_scale * c.dims.d_head))) - 1;
    const bool both = parts > 1;
    std::vector<std::string> terms;
    if (both || (parts > 0 && own.content_to_position)) terms.emplace_back("c2p");
    if (both || (parts > 0 && terms.empty())) terms.emplace_back("p2c");
    keys.put("pos_att_type", terms);
  }
  int farthest = std::max(own.max_distance, own.span), buckets = own.max_distance > 0 ? own.span : -1;
  keys.integer("max_relative_positions", farthest, -1, config_limits::context, -1);
  if (v2) {
    std::string norms = own.norm ? "layer_norm" : "none";
    keys.integer("position_buckets", buckets, -1, config_limits::context, -1);
    keys.flag("share_att_key", own.shared, false);
    keys.text("norm_rel_ebd", norms, "none");
    own.norm = norms.find("layer_norm") != std::string::npos;
  }
  if (keys.reading()) {
    const ConfigReader& json = keys.json();
    own.span = farthest < 1 ? c.context : farthest;
    if (v2 && buckets > 0) {
      own.max_distance = own.span;
      own.span = buckets;
      if (relative && (buckets < 2 || own.max_distance <= buckets / 2 + 1))
        throw json.error("position_buckets",
                         fmt::format("from 2 to {}, of distances up to {}", 2 * own.max_distance - 3, own.max_distance),
                         std::to_string(buckets));
    }
    if (v2) {
      check_same(json, "attention_head_size", c.dims.d_model / c.dims.heads, c.dims.d_head,
                 "heads that are together wider than the stream are not read");
    }
    check_same(json, "embedding_size", c.dims.d_model,
               json.integer("embedding_size", 1, config_limits::d_model, c.dims.d_model),
               "embeddings of a width of their own are not read in this family");
    if (relative && (own.content_to_position || own.position_to_content)) c.distances = own;
  }
  if (v2) first_convolution(keys, c);
  if (!v2) keys.only("talking_head", false, "heads whose scores are mixed are not read");
  keys.ends(c, true);
}

WeightNames deberta_names() {
  WeightNames names = bert_names("deberta.");
  names.distances = "encoder.rel_embeddings";
  names.distance_norm = "encoder.LayerNorm";
  names.convolution = "encoder.conv.conv";
  names.convolution_norm = "encoder.conv.LayerNorm";
  names.head_too = {"lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm", "lm_predictions.lm_head.bias"};
  return names;
}

Family deberta_family();  // declared with all others in family.cpp
Family deberta_family() {
  return usual_family(
      "deberta", "DebertaForMaskedLM",
      to_say("an encoder: BERT whose contents and distances have vectors of their own"),
      [](ConfigMap& keys, ModelConfig& c) { deberta_keys(keys, c, false); },
      [](const ModelConfig&) {
        WeightNames names = deberta_names();
        names.qkv = "attention.self.in_proj";
        names.fused = FusedQkv::by_group;
        names.q_bias = "attention.self.q_bias";
        names.v_bias = "attention.self.v_bias";
        names.distance_k = "attention.self.pos_proj";
        names.distance_q = "attention.self.pos_q_proj";
        return names;
      });
}

}  // namespace headscope
