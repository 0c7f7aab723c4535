// Whisper (Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2023; distilled: Gandhi et al.,
// Distil-Whisper, 2023): the encoder reads a sound (SoundConfig) and has stored positions, the decoder learned ones;
// norms before attention and MLP and behind the last block, keys without bias. The key scale_embedding changes nothing:
// transformers scales nothing by it.

#include "core/base/words.h"
#include "core/model/families/bart.h"

namespace headscope {

namespace {
void whisper_stack_keys(ConfigMap& keys, ModelConfig& c, const std::string& side, const std::string& positions,
                        const std::string& vocabulary) {
  keys.extents(c, {.layers = side + "layers",
                   .heads = side + "attention_heads",
                   .kv_heads = "",
                   .width = "d_model",
                   .d_head = "",
                   .mlp = side + "ffn_dim",
                   .context = positions,
                   .vocab = vocabulary});
  keys.norm(c, NormKind::layer_norm, "", 1e-5);
  c.position = PositionKind::learned;
  c.bias.k = false;
  keys.activation("activation_function", c.activation, "gelu");
}

void whisper_keys(ConfigMap& keys, ModelConfig& decoder, ModelConfig& encoder) {
  whisper_stack_keys(keys, decoder, "decoder_", "max_target_positions", "vocab_size");
  whisper_stack_keys(keys, encoder, "encoder_", "max_source_positions", "");
  if (keys.reading()) encoder.sound.emplace();
  keys.integer("num_mel_bins", encoder.sound->mels, 1, 4096, 80);
  if (keys.reading()) {
    encoder.sound->rows = encoder.context;
    encoder.sound->samples = encoder.sound->frames() * encoder.sound->hop;
  }
  decoder.shared_embedding = false;
  keys.ends(decoder, true);
  encoder.bos = decoder.bos, encoder.eos = decoder.eos;
  start_token(keys, decoder, 50257);
}

WeightNames whisper_names(const ModelConfig& stack) {
  WeightNames names = bart_names(stack);
  names.convolutions = {"conv1", "conv2"};
  names.unembedding = "proj_out";
  return names;
}
}  // namespace

Family whisper_family();  // declared with all others in family.cpp
Family whisper_family() {
  return two_stack_family("whisper", "WhisperForConditionalGeneration",
                          to_say("an encoder-decoder: reads speech as a log-mel spectrogram and writes it down"),
                          &whisper_keys, &whisper_names);
}

}  // namespace headscope
