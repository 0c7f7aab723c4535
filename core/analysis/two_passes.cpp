#include "core/analysis/two_passes.h"

#include <algorithm>
#include <cmath>

#include "core/analysis/singular_tuning.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

FirstPass first_pass(const LoadedModel& loaded, const ExpertSet& set, const RunRequest& prompt, const Ctx& ctx) {
  check_fits(set, *loaded.model, "experts");
  const auto with = [&](const SingularExpert* expert) {
    RunRequest request = prompt;
    request.edits = expert ? expert_edits(*expert) : std::vector<Intervention>{};
    request.capture = {};
    request.capture.maps = MapStorage::none;
    return run(loaded, request, Ctx{ctx.backend, nullptr, ctx.stop});
  };
  FirstPass out;
  for (std::size_t e = 0; e <= set.experts.size(); ++e) {
    const auto trace = with(e ? &set.experts[e - 1].z : nullptr);
    if (trace->ids().size() < 2)
      throw Error("prompt", "at least two tokens, the second of which is told", std::to_string(trace->ids().size()));
    out.losses.push_back(mean_loss(*trace));
    if (ctx.progress) *ctx.progress = static_cast<float>(e + 1) / static_cast<float>(set.experts.size() + 2);
  }
  out.by_prompt = static_cast<std::size_t>(std::ranges::min_element(out.losses) - out.losses.begin());
  if (!set.classifier) return out;
  const auto trace = with(&*set.classifier);
  const Tensor row = trace->logits.select(0, trace->logits.dim(0) - 1);
  const double all = log_sum_exp(row);
  for (const std::int32_t label : set.labels) {
    out.labels.push_back(std::exp(static_cast<double>(row.at(label)) - all));
    out.said += out.labels.back();
  }
  out.by_classifier = 1 + static_cast<std::size_t>(std::ranges::max_element(out.labels) - out.labels.begin());
  for (double& each : out.labels) each /= out.said;
  return out;
}

}  // namespace headscope
