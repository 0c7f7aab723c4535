#include "core/attention/layer_complexity.h"

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

LayerComplexity self_attention_layer(Index n, Index d) {
  const double tokens = static_cast<double>(n), width = static_cast<double>(d);
  return {said("self-attention"), 2 * tokens * tokens * width, 1, n > 1 ? 1.0 : 0.0, "O(n² d)", "O(1)", "O(1)"};
}

LayerComplexity recurrent_layer(const std::string& name, Index n, Index d, Index products) {
  const double tokens = static_cast<double>(n), width = static_cast<double>(d);
  return {name, static_cast<double>(products) * tokens * width * width, tokens, tokens - 1, "O(n d²)", "O(n)", "O(n)"};
}

LayerComplexity convolution_layer(Index n, Index d, Index k) {
  const double tokens = static_cast<double>(n), width = static_cast<double>(d);
  // Not by logarithms, whose rounding would add a layer at exact powers.
  double layers = 0;
  for (Index reach = 1; reach < n; reach *= k) ++layers;
  return {say("convolution, k = {}", k),
          static_cast<double>(k) * tokens * width * width,
          1,
          layers,
          "O(k n d²)",
          "O(1)",
          "O(log_k n)"};
}

std::vector<LayerComplexity> layers_beside(std::string_view mechanism, Index n, Index d) {
  const LayerComplexity attention = self_attention_layer(n, d), convolution = convolution_layer(n, d);
  if (mechanism == "rnn") return {recurrent_layer("RNN", n, d, 2), attention, convolution};
  if (mechanism == "lstm") return {recurrent_layer("LSTM", n, d, 8), attention, convolution};
  if (mechanism == "softmax") return {attention, recurrent_layer("RNN", n, d, 2), convolution};
  return {};
}

}  // namespace headscope
