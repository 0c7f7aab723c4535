#include "core/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <set>

#include "core/attention/sinusoids.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/model/family.h"
#include "core/model/formats/model_files.h"
#include "core/train/state_space_start.h"

namespace headscope {
namespace {

/// Gives a reader every tensor it asks for, new: so its names and shapes are learnt.
class NewWeights final : public WeightSource {
 public:
  /// `like`: whose names are taken where a family has had several; null: the newest.
  explicit NewWeights(const WeightSource* like = nullptr) : like_(like) {}
  std::string where() const override { return "new weights"; }
  std::vector<std::string> names() const override { return like_ ? like_->names() : std::vector<std::string>(); }
  bool contains(const std::string& name) const override { return !like_ || like_->contains(name); }
  Tensor take(const std::string& name, const Shape& shape) const override {
    const auto known = std::ranges::find(made_, name, &Parameter::name);  // both stacks may read one embedding
    if (known != made_.end()) return known->value;
    if (like_ && like_->contains(name))
      (void)like_->take(name, shape);  // of another shape it is the reader that asks on
    made_.push_back({name, Tensor::zeros(shape)});
    return made_.back().value;
  }
  std::string dtype(const std::string&) const override { return "F32"; }
  std::vector<Parameter> made() && { return std::move(made_); }

 private:
  const WeightSource* like_;
  mutable std::vector<Parameter> made_;  // in the order asked for
};

/// Tensors that are there already.
class GivenWeights final : public WeightSource {
 public:
  explicit GivenWeights(const std::vector<Parameter>& all) {
    for (const Parameter& each : all) tensors_.emplace(each.name, each.value);
  }
  std::string where() const override { return "trained weights"; }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }
  bool contains(const std::string& name) const override { return tensors_.contains(name); }
  Tensor take(const std::string& name, const Shape& shape) const override {
    const Tensor& tensor = tensors_.at(name);
    if (tensor.shape() != shape)
      throw Error("parameter " + name, "shape " + shape.str(), "shape " + tensor.shape().str());
    return tensor;
  }
  std::string dtype(const std::string&) const override { return "F32"; }

 private:
  std::map<std::string, Tensor> tensors_;
};

/// Row by row, through whatever view the family's reader made of a stored tensor.
void draw(Tensor weight, double deviation, Random& random) {
  if (!weight.defined()) return;
  for (Index i = 0; i < weight.dim(0); ++i)
    for (Index j = 0; j < weight.dim(1); ++j) weight.ref(i, j) = static_cast<float>(deviation) * random.normal();
}

/// As large as random ones of that deviation: the mean square of a sinusoid is a half.
void lay_sinusoids(Tensor positions, double deviation) {
  if (!positions.defined()) return;
  const Tensor waves = sinusoidal_positions(0, positions.dim(0), positions.dim(1));
  const auto size = static_cast<float>(deviation * std::sqrt(2.0));
  for (Index i = 0; i < positions.dim(0); ++i)
    for (Index j = 0; j < positions.dim(1); ++j) positions.ref(i, j) = size * waves.at(i, j);
}

/// Those of a layer, with the one that takes every token.
std::vector<RawExpert> all_of(const RawExperts& experts) {
  std::vector<RawExpert> all = experts.each;
  all.push_back(experts.shared);
  return all;
}

void ones(Tensor gain) {
  if (gain.defined()) std::ranges::fill(gain.mutable_values(), 1.0f);
}

using Initial = Parameters::Initial;

void draw_layer(RawLayer& layer, const ModelConfig& config, const Initial& how, double residual, Random& random) {
  for (Tensor* gain : {&layer.ln1_gain, &layer.ln2_gain, &layer.ln1_post_gain, &layer.ln2_post_gain, &layer.q_norm_gain,
                       &layer.k_norm_gain})
    ones(*gain);
  if (config.state_space) return draw_state_space(layer, config, random);
  for (const Tensor* weight : {&layer.q_weight, &layer.k_weight, &layer.v_weight}) draw(*weight, how.deviation, random);
  draw(layer.z_gate_weight, how.deviation, random);
  draw(layer.o_weight, residual, random);
  draw(layer.gate_weight, how.deviation, random);
  draw(layer.up_weight, how.deviation, random);
  draw(layer.down_weight, residual, random);
  draw(layer.experts.router_weight, how.deviation, random);
  draw(layer.experts.shared_gate, how.deviation, random);
  for (const RawExpert& expert : all_of(layer.experts)) {
    draw(expert.gate_weight, how.deviation, random);
    draw(expert.up_weight, how.deviation, random);
    draw(expert.down_weight, residual, random);
  }
}

/// One stack, then the encoder that it reads. `drawn`: the embedding is another stack's, too, which drew it.
void draw_stack(RawWeights& raw, const ModelConfig& config, const Initial& how, Random& random, bool drawn = false) {
  const double residual = how.by_depth ? how.deviation / std::sqrt(2.0 * config.dims.layers) : how.deviation;
  if (!drawn) draw(raw.token_embedding, how.deviation, random);
  draw(raw.patch_embedding, how.deviation, random);
  for (const Tensor& token : raw.leading_tokens) draw(token, how.deviation, random);
  if (how.positions == Parameters::FirstPositions::sinusoids)
    lay_sinusoids(raw.position_embedding, how.deviation);
  else if (!config.sinusoids)
    draw(raw.position_embedding, how.deviation, random);
  for (RawLayer& layer : raw.layers) draw_layer(layer, config, how, residual, random);
  for (RawLayer& layer : raw.cross) draw_layer(layer, config, how, residual, random);
  for (Tensor* gain : {&raw.embedding_gain, &raw.final_gain, &raw.head_norm_gain}) ones(*gain);
  draw(raw.segment_embedding, how.deviation, random);
  draw(raw.head_weight, how.deviation, random);
  if (!config.tied_embeddings && config.predicts) draw(raw.unembedding, how.deviation, random);
  if (raw.encoder)
    draw_stack(*raw.encoder, *config.encoder, how, random,
               raw.encoder->token_embedding.storage() == raw.token_embedding.storage());
}

/// Marks what a reader made of them as paces.
void mark_paces(const RawWeights& raw, std::vector<Parameter>& all) {
  for (const RawLayer& layer : raw.layers)
    for (Parameter& each : all)
      each.pace |= layer.state_space.decay_log.defined() &&
                   each.value.storage().first == layer.state_space.decay_log.storage().first;
}

}  // namespace

Parameters Parameters::initial(const ModelConfig& config, const Initial& how) {
  NewWeights source;
  RawWeights raw = read_weights(source, config);
  Random random(how.seed);
  draw_stack(raw, config, how, random);
  Parameters parameters;
  parameters.config_ = config;
  parameters.all_ = std::move(source).made();
  mark_paces(raw, parameters.all_);
  return parameters;
}

Parameters Parameters::load(const std::filesystem::path& folder) {
  Parameters parameters;
  parameters.config_ = load_config(folder);
  const ModelFiles files = ModelFiles::open(locate_model(folder));
  const WeightSource& file = *files.weights;
  (void)read_model_weights(file, parameters.config_);  // all there, of the right shapes
  NewWeights wanted(&file);  // under the names that the file has, where a family has had several
  const RawWeights raw = read_weights(wanted, parameters.config_);
  parameters.all_ = std::move(wanted).made();
  mark_paces(raw, parameters.all_);
  for (Parameter& each : parameters.all_) {
    // Files of the bare decoder leave out the prefix that the family's full names have.
    const std::string bare = each.name.substr(each.name.find('.') + 1);
    const Tensor stored = file.take(file.contains(each.name) ? each.name : bare, each.value.shape()).packed();
    std::memcpy(each.value.mutable_data(), stored.data(), stored.bytes());
  }
  return parameters;
}

std::int64_t Parameters::count() const {
  std::int64_t sum = 0;
  for (const Parameter& each : all_) sum += each.value.size();
  return sum;
}

Parameters Parameters::clone() const {
  Parameters copy = *this;
  for (Parameter& each : copy.all_) each.value = each.value.copy();
  return copy;
}

namespace {
using Read = std::set<const float*>;  // where tensors begin that a reader did not copy

void add_layer(const RawLayer& l, Read& read) {
  const auto add = [&](const Tensor& t) {
    if (t.defined()) read.insert(t.storage().first);
  };
  for (const Tensor* t : {&l.sinks, &l.z_gate_weight, &l.z_gate_bias}) add(*t);
  for (const Tensor* t :
       {&l.experts.router_weight, &l.experts.router_bias, &l.experts.correction, &l.experts.shared_gate})
    add(*t);
  for (const RawExpert& e : all_of(l.experts))
    for (const Tensor* t : {&e.gate_weight, &e.gate_bias, &e.up_weight, &e.up_bias, &e.down_weight, &e.down_bias})
      add(*t);
  for (const Tensor* t :
       {&l.ln1_gain,    &l.ln1_bias,    &l.ln1_post_gain, &l.ln2_post_gain, &l.q_weight,    &l.q_bias,
        &l.k_weight,    &l.k_bias,      &l.v_weight,      &l.v_bias,        &l.q_norm_gain, &l.q_norm_bias,
        &l.k_norm_gain, &l.k_norm_bias, &l.o_weight,      &l.o_bias,        &l.ln2_gain,    &l.ln2_bias,
        &l.up_weight,   &l.up_bias,     &l.gate_weight,   &l.gate_bias,     &l.down_weight, &l.down_bias})
    add(*t);
  for (const Tensor& t : tensors_of(l.state_space)) add(t);
}

void add_stack(const RawWeights& raw, Read& read) {
  for (const Tensor* t : {&raw.token_embedding, &raw.position_embedding, &raw.embedding_gain, &raw.embedding_bias,
                          &raw.segment_embedding, &raw.final_gain, &raw.final_bias, &raw.head_weight, &raw.head_bias,
                          &raw.head_norm_gain, &raw.head_norm_bias, &raw.unembedding, &raw.unembedding_bias})
    if (t->defined()) read.insert(t->storage().first);
  for (const Tensor* t : {&raw.patch_embedding, &raw.patch_bias, &raw.second_unembedding, &raw.second_unembedding_bias})
    if (t->defined()) read.insert(t->storage().first);
  for (const Tensor& token : raw.leading_tokens) read.insert(token.storage().first);
  for (const auto* layers : {&raw.layers, &raw.cross})
    for (const RawLayer& layer : *layers) add_layer(layer, read);
  if (raw.encoder) add_stack(*raw.encoder, read);
}

/// Throws Error when the reader had to copy a tensor: its gradient would never come back to the parameter.
void check_views(const RawWeights& raw, const std::vector<Parameter>& all, const ModelConfig& config) {
  Read read;
  add_stack(raw, read);
  for (const Parameter& each : all)
    if (!read.contains(each.value.storage().first))
      throw Error(config.name, "weights that are used as they are stored",
                  each.name + ", which a " + config.family + " uses reordered or multiplied, or does not train",
                  "models of this family can be run and read, not trained");
}
}  // namespace

std::shared_ptr<const Model> Parameters::trainable_model(Backend& backend) const {
  const RawWeights raw = read_weights(GivenWeights(all_), config_);
  check_views(raw, all_, config_);
  return Model::build(config_, raw, config_.name, backend, Model::Weights::changing);
}

std::shared_ptr<const Model> Parameters::snapshot(Backend& backend) const {
  const Parameters copy = clone();
  return Model::build(config_, read_weights(GivenWeights(copy.all_), config_), config_.name, backend);
}

void Parameters::save(const std::filesystem::path& folder, DType type,
                      const std::map<std::string, std::string>& metadata) const {
  if (type != DType::f32 && type != DType::f16)
    throw Error(folder.string(), "weights stored as F32 or F16", dtype_name(type));
  SafetensorsWriter writer;
  writer.metadata("format", "pt");  // what Hugging Face's reader asks for
  for (const auto& [key, value] : metadata) writer.metadata(key, value);
  for (const Parameter& each : all_) {
    if (type == DType::f32) {
      writer.add(each.name, each.value);
      continue;
    }
    std::vector<std::uint16_t> halves;
    halves.reserve(static_cast<std::size_t>(each.value.size()));
    for (const float value : each.value.values()) {
      halves.push_back(float_to_half(value));
      if (!std::isfinite(half_to_float(halves.back())))
        throw Error("parameter " + each.name, "values up to 65504 for F16", fmt::format("{}", value), "save it as F32");
    }
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < each.value.rank(); ++axis) shape.push_back(each.value.dim(axis));
    writer.add(each.name, type, shape, [halves = std::move(halves)](std::ostream& out) {
      for (const std::uint16_t half : halves) {
        const char bytes[2] = {static_cast<char>(half & 0xff), static_cast<char>(half >> 8)};
        out.write(bytes, 2);
      }
    });
  }
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(folder.string(), "a folder that can be made", failure.message());
  writer.write(folder / "model.safetensors");
  write_file_atomically(folder / "config.json", write_config(config_));
}

std::map<std::string, Tensor> Parameters::state() const {
  std::map<std::string, Tensor> state;
  for (const Parameter& each : all_) state.emplace(each.name, each.value.copy());
  return state;
}

void Parameters::restore(const std::map<std::string, Tensor>& state) {
  for (const Parameter& each : all_) {
    const auto found = state.find(each.name);
    if (found == state.end())
      throw Error("parameter " + each.name, "a tensor of shape " + each.value.shape().str(), "none");
    if (found->second.shape() != each.value.shape())
      throw Error("parameter " + each.name, "shape " + each.value.shape().str(), found->second.shape().str());
  }
  for (Parameter& each : all_) {
    const Tensor from = state.at(each.name).packed();
    std::memcpy(each.value.mutable_data(), from.data(), from.bytes());
  }
}

}  // namespace headscope
