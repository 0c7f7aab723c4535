#include "core/train/seq2seq.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/seq2seq_ops.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"

namespace headscope {

namespace {
/// Row t · B + b of tokens that lie text by text.
std::vector<std::int32_t> step_by_step(const std::vector<std::int32_t>& tokens, int texts) {
  const std::size_t length = tokens.size() / as_size(texts);
  std::vector<std::int32_t> out;
  for (std::size_t t = 0; t < length; ++t)
    for (std::size_t b = 0; b < as_size(texts); ++b) out.push_back(tokens[b * length + t]);
  return out;
}

Tensor rows_of_step(const Tensor& all, Index step, Index texts) {
  return all.slice(0, step * texts, (step + 1) * texts);
}
}  // namespace

Seq2Seq::Seq2Seq(const Seq2SeqSettings& settings, const OptimizerSettings& optimizer, std::uint64_t seed,
                 Backend& backend)
    : settings_(settings), backend_(backend) {
  const Index d = settings.width, v = settings.vocabulary;
  if (d < 1 || v < 1 || settings.end < 0 || settings.end >= v)
    throw Error("recurrent encoder-decoder", "a width, and a vocabulary with an end token",
                fmt::format("width {}, {} tokens, end {}", d, v, settings.end));
  std::uint64_t drawn = seed;
  const auto add = [&](const char* name, Tensor value) { parameters_.all().push_back({name, std::move(value)}); };
  const auto draw = [&](const char* name, Index rows, Index columns, double deviation) {
    Random random(Random(drawn++).next());  // a stream each: what attention has more changes nothing else
    Tensor value = Tensor::uninitialized({rows, columns});
    for (float& each : value.mutable_values()) each = static_cast<float>(deviation) * random.normal();
    add(name, value);
  };
  const auto matrix = [&](const char* name, Index rows, Index columns) {
    draw(name, rows, columns, 1 / std::sqrt(static_cast<double>(rows)));
  };
  const auto gates = [&](const char* name) {
    Tensor bias = Tensor::zeros({3 * d});
    std::fill_n(bias.mutable_data(), d, 1.0f);
    add(name, bias);
  };
  draw("encoder.embedding", v, d, 1);
  matrix("encoder.input.weight", d, 3 * d);
  gates("encoder.input.bias");
  matrix("encoder.state.weight", d, 3 * d);
  add("encoder.state.bias", Tensor::zeros({3 * d}));
  draw("decoder.embedding", v, d, 1);
  matrix("decoder.start.weight", d, d);
  add("decoder.start.bias", Tensor::zeros({d}));
  matrix("decoder.input.weight", d, 3 * d);
  gates("decoder.input.bias");
  matrix("decoder.state.weight", d, 3 * d);
  add("decoder.state.bias", Tensor::zeros({3 * d}));
  matrix("decoder.context.weight", d, 3 * d);
  matrix("output.state.weight", d, d);
  add("output.state.bias", Tensor::zeros({d}));
  matrix("output.context.weight", d, d);
  matrix("output.words.weight", d, v);
  add("output.words.bias", Tensor::zeros({v}));
  if (settings.attends) {
    matrix("attention.query.weight", d, d);
    matrix("attention.key.weight", d, d);
    draw("attention.w", 1, d, 1 / std::sqrt(static_cast<double>(d)));
    Tensor& w = parameters_.all().back().value;
    w = w.reshape({d});
  }
  optimizer_ = std::make_unique<AdamW>(parameters_, optimizer);
  // Views of the parameters, which follow them.
  read_in_ = layer("encoder.input.weight", "encoder.input.bias");
  read_on_ = layer("encoder.state.weight", "encoder.state.bias");
  start_ = layer("decoder.start.weight", "decoder.start.bias");
  write_in_ = layer("decoder.input.weight", "decoder.input.bias");
  write_on_ = layer("decoder.state.weight", "decoder.state.bias");
  write_context_ = layer("decoder.context.weight", "");
  out_state_ = layer("output.state.weight", "output.state.bias");
  out_context_ = layer("output.context.weight", "");
  words_ = layer("output.words.weight", "output.words.bias");
  if (!settings.attends) return;
  query_ = layer("attention.query.weight", "");
  key_ = layer("attention.key.weight", "");
}

const Tensor& Seq2Seq::at(const std::string& name) const {
  return std::ranges::find(parameters_.all(), name, &Parameter::name)->value;
}

Linear Seq2Seq::layer(const std::string& weight, const std::string& bias) {
  return backend_.linear_weights({at(weight)}, {bias.empty() ? Tensor() : at(bias)}, true);
}

Seq2Seq::Source Seq2Seq::read(const Batch& batch, std::stop_token stop) {
  const Index texts = batch.sequences;
  if (std::ssize(batch.source_lengths) != texts)
    throw Error("recurrent encoder-decoder: batch", fmt::format("a source for each of {} texts", texts),
                fmt::format("{}", batch.source_lengths.size()));
  Source out;
  out.lengths = batch.source_lengths;
  const Index steps = std::ranges::max(out.lengths);
  std::vector<std::int32_t> tokens(as_size(steps * texts), settings_.end);
  auto from = batch.source.begin();
  for (Index b = 0; b < texts; ++b) {
    const Index n = nth(out.lengths, b);
    for (Index t = 0; t < n; ++t) {
      // Backwards the end stays where it is.
      const Index place = settings_.backwards && t < n - 1 ? n - 2 - t : t;
      nth(tokens, place * texts + b) = *from++;
    }
  }
  const Tensor gates = backend_.linear(backend_.gather(at("encoder.embedding"), tokens), read_in_);
  Tensor state = Tensor::zeros({texts, settings_.width});
  std::vector<Tensor> states;
  for (Index t = 0; t < steps; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    std::vector<std::uint8_t> alive;
    for (const Index n : out.lengths) alive.push_back(t < n);
    state = gru_step(backend_, rows_of_step(gates, t, texts), backend_.linear(state, read_on_), state, alive);
    states.push_back(state);
  }
  out.summary = state;
  if (settings_.attends) {
    out.states = stack_rows(backend_, states);
    out.keys = backend_.linear(out.states, key_);
  } else {
    out.context_gates = backend_.linear(out.summary, write_context_);
  }
  return out;
}

Tensor Seq2Seq::first_state(const Source& source) {
  return backend_.soft_cap(backend_.linear(source.summary, start_), 1);  // tanh
}

Tensor Seq2Seq::step(const Source& source, const Tensor& word_gates, Tensor& state, Tensor* weights) {
  Tensor context = source.summary, context_gates = source.context_gates;
  if (settings_.attends) {
    context = additive_context(backend_, backend_.linear(state, query_), source.keys, at("attention.w"), source.states,
                               source.lengths, weights);
    context_gates = backend_.linear(context, write_context_);
  }
  state = gru_step(backend_, backend_.add(word_gates, context_gates), backend_.linear(state, write_on_), state);
  return context;
}

Tensor Seq2Seq::logits(const Tensor& states, const Tensor& contexts) {
  const Tensor sum = backend_.add(backend_.linear(states, out_state_), backend_.linear(contexts, out_context_));
  return backend_.linear(backend_.soft_cap(sum, 1), words_);
}

Tensor Seq2Seq::forced(const Batch& batch, std::stop_token stop, std::vector<Tensor>* weights) {
  const Source source = read(batch, stop);
  const Index texts = batch.sequences;
  const Tensor words =
      backend_.linear(backend_.gather(at("decoder.embedding"), step_by_step(batch.tokens, batch.sequences)), write_in_);
  Tensor state = first_state(source);
  std::vector<Tensor> states, contexts;
  for (Index t = 0; t < batch.length; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    Tensor* const seen = weights ? &weights->emplace_back() : nullptr;
    contexts.push_back(step(source, rows_of_step(words, t, texts), state, seen));
    states.push_back(state);
  }
  return logits(stack_rows(backend_, states), stack_rows(backend_, contexts));
}

Backend::Loss Seq2Seq::loss_of(const Batch& batch, std::stop_token stop) {
  return backend_.cross_entropy(forced(batch, stop), step_by_step(batch.targets, batch.sequences));
}

StepReport Seq2Seq::learn(const Batch& batch, std::stop_token stop) {
  return gradient_step(
      parameters_, *optimizer_, backend_,
      [&](Tape& tape) {
        const Backend::Recording recording(backend_, &tape);
        return loss_of(batch, stop);
      },
      stop);
}

double Seq2Seq::loss(const Batch& batch, std::stop_token stop) {
  return loss_of(batch, stop).nats;
}

std::vector<std::vector<std::int32_t>> Seq2Seq::write(const Batch& sources, int length, std::stop_token stop) {
  const Source source = read(sources, stop);
  std::vector<std::vector<std::int32_t>> out(as_size(sources.sequences));
  std::vector<std::int32_t> last(out.size(), settings_.end);
  Tensor state = first_state(source);
  for (int t = 0; t < length; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    const Tensor words = backend_.linear(backend_.gather(at("decoder.embedding"), last), write_in_);
    const Tensor context = step(source, words, state);
    const Tensor of = logits(state, context);
    for (std::size_t b = 0; b < out.size(); ++b) {
      const auto row = of.select(0, static_cast<Index>(b)).values();
      last[b] = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
      out[b].push_back(last[b]);
    }
  }
  return out;
}

Tensor Seq2Seq::alignment(const Batch& text, std::stop_token stop) {
  std::vector<Tensor> weights;
  forced(text, stop, &weights);
  const Index sources = text.source_lengths.front();
  Tensor out = Tensor::uninitialized({std::ssize(weights), sources});
  for (Index t = 0; t < out.dim(0); ++t)
    for (Index j = 0; j < sources; ++j)
      out.ref(t, settings_.backwards && j < sources - 1 ? sources - 2 - j : j) = nth(weights, t).at(0, j);
  return out;
}

}  // namespace headscope
