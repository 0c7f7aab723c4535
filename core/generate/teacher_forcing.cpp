#include "core/generate/teacher_forcing.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

ForcedAndFree force_and_run_free(const LoadedModel& model, std::span<const std::int32_t> ids, std::size_t given,
                                 const RunRequest& like, const Generator::Choice& choice, const Ctx& ctx) {
  if (given < 1 || given >= ids.size())
    throw Error(
        "teacher forcing",
        fmt::format("1 to {} tokens to begin with, of a text of {}", ids.empty() ? 0 : ids.size() - 1, ids.size()),
        std::to_string(given));
  ForcedAndFree out;
  out.given = given;
  out.target.assign(ids.begin() + static_cast<std::ptrdiff_t>(given), ids.end());
  const Ctx quiet{ctx.backend, ctx.tap, ctx.stop, nullptr};
  Generator forced(model, like, false), free(model, like, false);
  std::vector<std::int32_t> own(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(given));
  for (std::size_t i = 0; i < out.target.size(); ++i) {
    const auto taught = forced.step(quiet, ids.first(given + i), i, choice);
    out.guessed.push_back(taught->token);
    out.forced_loss.push_back(next_token_loss(taught->logits, out.target[i]));
    const auto wrote = free.step(quiet, own, i, choice);
    out.written.push_back(wrote->token);
    out.free_loss.push_back(next_token_loss(wrote->logits, out.target[i]));
    own.push_back(wrote->token);
    if (ctx.progress) *ctx.progress = static_cast<float>(i + 1) / static_cast<float>(out.target.size());
  }
  return out;
}

}  // namespace headscope
