#include "core/model/expert_weights.h"

#include <cmath>
#include <utility>

#include "core/base/nth.h"

namespace headscope {

namespace {

class ExpertReader {
 public:
  ExpertReader(WeightReader& reader, const ModelConfig& config) : reader_(reader), c_(config) {}

  void linear(const std::string& name, Index in, Index out, bool bias, Tensor& weight, Tensor& into_bias) {
    reader_.take_transposed(name + ".weight", in, out, weight);
    if (bias) reader_.take(name + ".bias", {out}, into_bias);
  }

  void expert(const std::string& at, const ExpertNames& names, Index width, bool biased, RawExpert& into) {
    const Index d = c_.dims.d_model;
    const bool up = biased && c_.bias.up, down = biased && c_.bias.down;
    if (c_.gated_mlp) linear(at + names.gate, d, width, up, into.gate_weight, into.gate_bias);
    linear(at + names.up, d, width, up, into.up_weight, into.up_bias);
    linear(at + names.down, width, d, down, into.down_weight, into.down_bias);
  }

  /// The one beside all others, whose gate and up are one matrix.
  void joined(const std::string& at, const ExpertNames& names, Index width, RawExpert& into) {
    const Index d = c_.dims.d_model;
    Tensor both, none;
    linear(at + names.shared_gate_up, d, 2 * width, false, both, none);
    if (both.defined()) into.gate_weight = both.slice(1, 0, width), into.up_weight = both.slice(1, width, 2 * width);
    linear(at + names.shared + names.down, width, d, false, into.down_weight, none);
  }

  void all_in_rows(const std::string& at, const ExpertNames& names, std::vector<RawExpert>& into) {
    const Index count = c_.experts.count, d = c_.dims.d_model, width = c_.experts.width, up = c_.gated_mlp ? width : 0;
    reader_.take(at + names.gate_up_of_all, {count, up + width, d}, [&](const Tensor& all) {
      for (Index e = 0; e < count; ++e) {
        const Tensor both = all.select(0, e).transpose(0, 1);
        if (c_.gated_mlp) nth(into, e).gate_weight = both.slice(1, 0, width);
        nth(into, e).up_weight = both.slice(1, up, up + width);
      }
    });
    reader_.take(at + names.down_of_all, {count, d, width}, [&](const Tensor& all) {
      for (Index e = 0; e < count; ++e) nth(into, e).down_weight = all.select(0, e).transpose(0, 1);
    });
  }

  void all_below(const std::string& at, const ExpertNames& names, std::vector<RawExpert>& into) {
    const Index d = c_.dims.d_model, width = c_.experts.width;
    const auto take = [&](const std::string& name, auto give) {
      reader_.take(at + name, {c_.experts.count * width, d}, [&](const Tensor& all) {
        for (Index e = 0; e < c_.experts.count; ++e) give(nth(into, e), all.slice(0, e * width, (e + 1) * width));
      });
    };
    take(names.gate_below, [](RawExpert& expert, const Tensor& own) { expert.gate_weight = own.transpose(0, 1); });
    take(names.up_below, [](RawExpert& expert, const Tensor& own) { expert.up_weight = own.transpose(0, 1); });
    take(names.down_below, [](RawExpert& expert, const Tensor& own) { expert.down_weight = own; });
  }

  /// Views of the tensors that hold all experts.
  void all_in_one(const std::string& at, const ExpertNames& names, std::vector<RawExpert>& into) {
    const Index count = c_.experts.count, d = c_.dims.d_model, width = c_.experts.width;
    if (names.rows) return all_in_rows(at, names, into);
    const auto each = [&](auto give) {
      return [&into, give](const Tensor& all) {
        for (std::size_t e = 0; e < into.size(); ++e) give(into[e], all.select(0, static_cast<Index>(e)));
      };
    };
    if (names.halves) {
      reader_.take(at + names.gate_up_of_all, {count, d, 2 * width}, each([&](RawExpert& expert, const Tensor& both) {
                     expert.gate_weight = both.slice(1, 0, width), expert.up_weight = both.slice(1, width, 2 * width);
                   }));
      return reader_.take(at + names.down_of_all, {count, width, d},
                          each([](RawExpert& expert, const Tensor& own) { expert.down_weight = own; }));
    }
    const auto every_second = [](const Tensor& t, Index first) {  // along the last axis
      const Shape halves = t.rank() == 1 ? Shape{t.dim(0) / 2, 2} : Shape{t.dim(0), t.dim(1) / 2, 2};
      return t.reshape(halves).select(t.rank(), first).copy();  // a product wants one number behind the other
    };
    reader_.take(at + names.gate_up_of_all, {count, d, 2 * width}, each([&](RawExpert& expert, const Tensor& both) {
                   const Tensor numbers = both.floats();  // at once: stored ones take long to read one by one
                   expert.gate_weight = every_second(numbers, 0), expert.up_weight = every_second(numbers, 1);
                 }));
    reader_.take(at + names.down_of_all, {count, width, d},
                 each([](RawExpert& expert, const Tensor& own) { expert.down_weight = own; }));
    if (c_.bias.up)
      reader_.take(at + names.gate_up_of_all + "_bias", {count, 2 * width},
                   each([&](RawExpert& expert, const Tensor& both) {
                     const Tensor numbers = both.floats();
                     expert.gate_bias = every_second(numbers, 0), expert.up_bias = every_second(numbers, 1);
                   }));
    if (c_.bias.down)
      reader_.take(at + names.down_of_all + "_bias", {count, d},
                   each([](RawExpert& expert, const Tensor& own) { expert.down_bias = own; }));
  }

 private:
  WeightReader& reader_;
  const ModelConfig& c_;
};

void scale_output(RawExpert& expert, double factor) {
  for (Tensor* written : {&expert.down_weight, &expert.down_bias}) *written = scaled_by(*written, factor);
}

}  // namespace

void read_experts(WeightReader& reader, const ModelConfig& config, const ExpertNames& names, const std::string& at,
                  RawExperts& into) {
  const ExpertConfig& c = config.experts;
  ExpertReader read(reader, config);
  read.linear(at + names.router, config.dims.d_model, c.count, c.router_bias, into.router_weight, into.router_bias);
  if (c.correction && names.correction_is_row)
    reader.take(at + names.correction, {1, c.count}, [&](const Tensor& row) { into.correction = row.select(0, 0); });
  else if (c.correction)
    reader.take(at + (names.correction_too.empty() || reader.contains(at + names.correction) ? names.correction
                                                                                             : names.correction_too),
                {c.count}, into.correction);
  into.each.resize(static_cast<std::size_t>(c.count));
  // Other formats of a family that has them in one may keep them apart.
  const bool apart = names.gate_up_of_all.empty() || (!reader.contains(at + names.gate_up_of_all) &&
                                                      reader.contains(at + names.expert + "0." + names.up + ".weight"));
  if (!names.gate_below.empty())
    read.all_below(at, names, into.each);
  else if (!apart)
    read.all_in_one(at, names, into.each);
  else
    for (int e = 0; e < c.count; ++e)
      read.expert(at + names.expert + std::to_string(e) + ".", names, c.width, c.own_bias, nth(into.each, e));
  if (c.shared_width > 0 && !names.shared_gate_up.empty())
    read.joined(at, names, c.shared_width, into.shared);
  else if (c.shared_width > 0)
    read.expert(at + names.shared, names, c.shared_width, true, into.shared);
  if (c.beside) {
    const Index d = config.dims.d_model;
    reader.take(at + names.router_gain, {d}, into.router_gain);
    into.router_gain = scaled_by(into.router_gain, 1 / std::sqrt(static_cast<double>(d)));
    reader.take(at + names.in_norm, {d}, into.in_gain);
    reader.take(at + names.out_norm, {d}, into.out_gain);
    reader.take(at + names.dense_norm, {d}, into.dense_gain);
  }
  if (c.weigh_output) reader.take(at + names.output_weight, {c.count}, into.output_weight);
  if (c.shared_gate)
    reader.take_transposed(at + names.shared_gate + ".weight", config.dims.d_model, 1, into.shared_gate);
  for (RawExpert& each : into.each) scale_output(each, config.residual_scale * config.multipliers.mlp_out);
  scale_output(into.shared, config.residual_scale * config.multipliers.mlp_out * c.shared_scale);
}

}  // namespace headscope
