#include "app/render/state_pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

namespace {
const Tensor& of(const StateSteps& steps, StepNumber number) {
  return number == StepNumber::delta ? steps.delta : number == StepNumber::kept ? steps.kept : steps.written;
}
}  // namespace

Matrix step_matrix(const std::vector<StateSteps>& steps, std::optional<int> layer, StepNumber number,
                   std::shared_ptr<const Trace> trace) {
  Matrix out;
  const bool delta_rule = trace->model.dims.state_kind == StateKind::delta;
  const auto tokens = static_cast<Index>(trace->tokens.size());
  if (layer) {
    out.values = of(*std::ranges::find(steps, *layer, &StateSteps::layer), number).transpose(0, 1).packed();
    for (Index lane = 0; lane < out.values.dim(0); ++lane) out.rows.push_back(fmt::format("{}", lane));
    out.row_title = say("layer {}, lane ↓", *layer);
  } else {
    out.values = Tensor::uninitialized({static_cast<Index>(steps.size()), tokens});
    for (Index row = 0; const StateSteps& each : steps) {
      out.rows.push_back(fmt::format("{}", each.layer));
      for (Index t = 0; t < tokens; ++t) out.values.ref(row, t) = static_cast<float>(lane_mean(of(each, number), t));
      ++row;
    }
    out.row_title = said("layer ↓");
  }
  out.column_title = said("token →");
  out.tokens = std::move(trace);
  const std::string mean = layer ? "" : said(", mean over lanes");
  switch (number) {
    case StepNumber::delta:
      out.unit = said("step Δ") + mean;
      out.provenance = said("Δ = softplus(… + bias): blocks.{i}.mixer.hook_delta");
      break;
    case StepNumber::kept:
      out.unit = said("share of a state that is left behind the token") + mean;
      out.provenance = said("mean over states of exp(Δ a), a = −exp(A_log)");
      out.low = 0, out.high = 1;
      break;
    case StepNumber::written:
      out.unit = (delta_rule ? said("β |v|: what a state takes in") : said("Δ |x|: what a state takes in")) + mean;
      out.provenance = delta_rule ? said("β times the size of v: blocks.{i}.mixer.hook_beta, hook_x")
                                  : said("Δ times the size of x: blocks.{i}.mixer.hook_delta, hook_x");
      break;
  }
  return out;
}

}  // namespace headscope
