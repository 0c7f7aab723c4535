#include "core/analysis/expert_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/fnv.h"
#include "core/base/json.h"
#include "core/edits/singular_edit.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {

constexpr const char* expert_file_type = "headscope experts";

std::vector<WeightMatrix> once_each(const std::vector<WeightMatrix>& matrices) {
  std::vector<WeightMatrix> out;
  for (const WeightMatrix each : matrices)
    if (std::ranges::find(out, each) == out.end()) out.push_back(each);
  return out;
}

WeightMatrix matrix_named(const JsonView& value) {
  const std::string name = value.text();
  for (int each = 0; each < weight_matrix_count; ++each)
    if (name_of(static_cast<WeightMatrix>(each)) == name) return static_cast<WeightMatrix>(each);
  value.refuse("one of q, k, v, o, mlp_in, mlp_gate, mlp_out");
}

nlohmann::ordered_json parts_json(const SingularExpert& expert) {
  auto out = nlohmann::ordered_json::array();
  for (const SingularExpert::Part& part : expert.parts)
    out.push_back({{"layer", part.layer}, {"matrix", std::string(name_of(part.matrix))}, {"z", part.z}});
  return out;
}

SingularExpert parts_from(const JsonView& value) {
  SingularExpert out;
  for (const JsonView& each : value.elements("parts", 1, 1 << 20)) {
    JsonFields fields(each);
    SingularExpert::Part part;
    if (!fields.read("layer", part.layer, 0, 1 << 20)) each.at("layer");
    const auto matrix = fields.find("matrix"), z = fields.find("z");
    part.matrix = matrix_named(matrix ? *matrix : each.at("matrix"));
    for (const JsonView& number : (z ? *z : each.at("z")).elements("numbers", 1, 1 << 20))
      part.z.push_back(number.number(-ScaleSingular::largest, ScaleSingular::largest));
    fields.done();
    out.parts.push_back(std::move(part));
  }
  return out;
}

}  // namespace

std::uint64_t weights_identity(const Model& model, const std::vector<WeightMatrix>& matrices) {
  std::uint64_t out = fnv1a("");
  const auto take = [&](std::uint32_t bits) {
    char bytes[4];
    for (int byte = 0; byte < 4; ++byte) bytes[byte] = static_cast<char>((bits >> (8 * byte)) & 0xFF);
    out = fnv1a({bytes, 4}, out);
  };
  for (int layer = 0; layer < model.config().dims.layers; ++layer)
    for (const WeightMatrix matrix : once_each(matrices)) {
      const Tensor weight = model.projection(layer, matrix).weight;
      if (!weight.defined()) continue;
      take(static_cast<std::uint32_t>(matrix));
      const Tensor numbers = weight.copy();
      for (const float each : numbers.values()) take(std::bit_cast<std::uint32_t>(each));
    }
  return out;
}

SingularExpert unchanged_expert(const Model& model, const std::vector<WeightMatrix>& matrices) {
  SingularExpert out;
  for (int layer = 0; layer < model.config().dims.layers; ++layer)
    for (const WeightMatrix matrix : once_each(matrices)) {
      const Tensor weight = model.projection(layer, matrix).weight;
      if (weight.defined())
        out.parts.push_back(
            {layer, matrix, std::vector<double>(static_cast<std::size_t>(std::min(weight.dim(0), weight.dim(1))), 1)});
    }
  return out;
}

SingularExpert mixed_expert(const std::vector<ExpertSet::Expert>& experts, std::span<const double> weights,
                            double most) {
  SingularExpert out = experts.front().z;
  for (std::size_t p = 0; p < out.parts.size(); ++p)
    for (std::size_t i = 0; i < out.parts[p].z.size(); ++i) {
      double z = 1;
      for (std::size_t k = 0; k < experts.size(); ++k) z += weights[k] * (experts[k].z.parts[p].z[i] - 1);
      out.parts[p].z[i] = std::clamp(z, -most, most);
    }
  return out;
}

std::string to_json(const ExpertSet& set) {
  nlohmann::ordered_json out = {{"type", expert_file_type}, {"version", 1}, {"model", set.model}};
  out["weights"] = fmt::format("{:016x}", set.weights);
  for (const WeightMatrix each : set.matrices) out["matrices"].push_back(std::string(name_of(each)));
  for (std::size_t k = 0; k < set.experts.size(); ++k) {
    const ExpertSet::Expert& each = set.experts[k];
    nlohmann::ordered_json expert = {{"name", each.name}, {"about", each.about}};
    if (set.classifier) expert["label"] = set.labels[k];
    expert["parts"] = parts_json(each.z);
    out["experts"].push_back(std::move(expert));
  }
  if (set.classifier) out["classifier"] = parts_json(*set.classifier);
  return out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

ExpertSet expert_set_from_json(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_strict_json(text, where);
  JsonFields fields(json, where);
  const JsonView& file = fields.value();
  const auto needed = [&](const char* key) {
    const auto found = fields.find(key);
    return found ? *found : file.at(key);
  };
  if (needed("type").text() != expert_file_type) needed("type").refuse(fmt::format("\"{}\"", expert_file_type));
  needed("version").integer(1, 1);
  ExpertSet out;
  out.model = needed("model").text();
  const std::string weights = needed("weights").text();
  const auto read = std::from_chars(weights.data(), weights.data() + weights.size(), out.weights, 16);
  if (weights.size() != 16 || read.ec != std::errc() || read.ptr != weights.data() + weights.size())
    needed("weights").refuse("16 hexadecimal digits");
  for (const JsonView& each : needed("matrices").elements("matrices", 1, weight_matrix_count))
    out.matrices.push_back(matrix_named(each));
  const auto classifier = fields.find("classifier");
  if (classifier) out.classifier = parts_from(*classifier);
  std::set<std::string> names;
  for (const JsonView& each : needed("experts").elements("experts", 1, 1000)) {
    JsonFields expert(each);
    ExpertSet::Expert one;
    const auto name = expert.find("name"), parts = expert.find("parts"), label = expert.find("label");
    one.name = (name ? *name : each.at("name")).text();
    expert.read("about", one.about);
    if (!names.insert(one.name).second) each.at("name").refuse("a name that no other expert has");
    one.z = parts_from(parts ? *parts : each.at("parts"));
    if (classifier) out.labels.push_back((label ? *label : each.at("label")).small(0));
    if (!classifier && label) label->refuse("no label where there is no classifier");
    expert.done();
    out.experts.push_back(std::move(one));
  }
  if (std::set(out.labels.begin(), out.labels.end()).size() != out.labels.size())
    needed("experts").refuse("a label of its own for each expert", "one for several");
  fields.done();
  return out;
}

void check_fits(const ExpertSet& set, const Model& model, const std::string& where) {
  SingularLearner::check(model.config(), set.matrices);
  const SingularExpert own = unchanged_expert(model, set.matrices);
  const auto check = [&](const std::string& name, const SingularExpert& expert) {
    bool same = expert.parts.size() == own.parts.size();
    for (std::size_t p = 0; same && p < own.parts.size(); ++p)
      same = expert.parts[p].layer == own.parts[p].layer && expert.parts[p].matrix == own.parts[p].matrix &&
             expert.parts[p].z.size() == own.parts[p].z.size();
    if (!same)
      throw Error(where + ": " + excerpt(name),
                  fmt::format("{} numbers z of {} matrices, as {} has them", own.numbers(), own.parts.size(),
                              model.config().name),
                  fmt::format("{} of {}", expert.numbers(), expert.parts.size()));
  };
  for (const ExpertSet::Expert& each : set.experts) check(each.name, each.z);
  if (set.classifier) check("classifier", *set.classifier);
  for (const std::int32_t label : set.labels)
    if (label >= model.config().dims.vocab)
      throw Error(where + ": label", fmt::format("a token below {}", model.config().dims.vocab), std::to_string(label));
  const std::uint64_t weights = weights_identity(model, set.matrices);
  if (weights != set.weights)
    throw Error(where, fmt::format("experts of {}, whose matrices are {:016x}", model.config().name, weights),
                fmt::format("experts of {}, {:016x}", excerpt(set.model), set.weights),
                "an expert scales the directions of one model's own matrices");
}

}  // namespace headscope
