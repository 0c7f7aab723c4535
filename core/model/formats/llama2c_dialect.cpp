#include "core/model/formats/llama2c_dialect.h"

#include "core/base/json.h"

namespace headscope {

ConfigReader llama2c_config(const std::filesystem::path& path) {
  const Llama2cHeader header = Llama2cHeader::read(*InputFile::open(path));
  const nlohmann::json config = {{"model_type", "llama"},
                                 {"hidden_size", header.dim},
                                 {"intermediate_size", header.hidden_dim},
                                 {"num_hidden_layers", header.layers},
                                 {"num_attention_heads", header.heads},
                                 {"num_key_value_heads", header.kv_heads},
                                 {"vocab_size", header.vocab},
                                 {"max_position_embeddings", header.context},
                                 {"rms_norm_eps", 1e-5},
                                 {"rope_theta", 10000.0},
                                 {"tie_word_embeddings", header.shares_classifier},
                                 {"bos_token_id", 1},
                                 {"eos_token_id", 2}};
  return ConfigReader::parse(config.dump(), path.string(),
                             {{"hidden_size", "dim"},
                              {"intermediate_size", "hidden_dim"},
                              {"num_hidden_layers", "n_layers"},
                              {"num_attention_heads", "n_heads"},
                              {"num_key_value_heads", "n_kv_heads"},
                              {"max_position_embeddings", "seq_len"}});
}

std::unique_ptr<WeightSource> llama2c_weights(std::shared_ptr<const TensorFile> file) {
  const Llama2cHeader header = Llama2cHeader::read(*file->tensors().begin()->second.file);
  std::map<std::string, RenamedWeights::Stored> by_name{{"model.embed_tokens.weight", {"token_embedding_table"}},
                                                        {"model.norm.weight", {"rms_final_weight"}}};
  if (!header.shares_classifier) by_name["lm_head.weight"] = {"wcls"};
  for (int layer = 0; layer < header.layers; ++layer) {
    const std::string number = std::to_string(layer), block = "model.layers." + number + ".";
    const auto put = [&](const char* name, const char* stored, Turn turn = Turn::none, int heads = 1) {
      by_name[block + name + ".weight"] = {std::string(stored) + "." + number, turn, heads};
    };
    put("input_layernorm", "rms_att_weight");
    put("self_attn.q_proj", "wq", Turn::rotary_pairs, header.heads);
    put("self_attn.k_proj", "wk", Turn::rotary_pairs, header.kv_heads);
    put("self_attn.v_proj", "wv");
    put("self_attn.o_proj", "wo");
    put("post_attention_layernorm", "rms_ffn_weight");
    put("mlp.gate_proj", "w1");
    put("mlp.down_proj", "w2");
    put("mlp.up_proj", "w3");
  }
  return std::make_unique<RenamedWeights>(std::move(file), std::move(by_name));
}

}  // namespace headscope
