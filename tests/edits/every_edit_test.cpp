// No edit quietly does nothing: every form of every edit changes what both families that are bundled foretell, or there
// is a reason why not, which stands here.

#include "tests/support/every_edit.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/run/run_request.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::every_edit_test {

using namespace testing;

namespace {
/// Why a line changes nothing in this model, or is refused by it; nullopt = it must change something.
std::optional<std::string> reason_for_none(const std::string& line, const ModelConfig& config) {
  const auto begins = [&](std::string_view words) {
    return line == words || line.starts_with(std::string(words) + " ");
  };
  const bool rotary = config.position == PositionKind::rotary;
  if (line == "mask causal") return "the model's own mask";
  if (line == "freeze pattern") return "no edit before it changes what is frozen";
  if (begins("freeze pattern from \"Another text.\" aligned 0:0"))
    return "a first token sees itself alone in every text";
  if (begins("patch z from \"Another text.\" aligned 0:0")) return "both texts begin with the same token";
  if (line == "mechanism softmax temperature=1 scaled=on") return "the model's own attention";
  if (begins("mechanism flash") || begins("mechanism ring")) return "softmax attention, computed in another order";
  if (begins("position shift") && rotary) return "a rotation knows distances alone";
  if (begins("position chunks") && !rotary) return "refused: learned positions know no distances to map again";
  if (begins("adapter")) return "refused: there is none";
  if (line.starts_with("patch router")) return "refused: no experts";
  if (begins("hide patches")) return "refused: no pictures";
  if (begins("singular mlp_gate") && !config.gated_mlp) return "refused: no such matrix";
  return std::nullopt;
}
}  // namespace

TEST_CASE("every form of every edit changes the logits of both families, or says why it cannot") {
  for (const char* name : {"tiny-gpt2", "tiny-llama"}) {
    Backend backend{1};
    const LoadedModel loaded = load_model(source_dir() / "models" / name, backend);
    RunRequest plain;
    plain.model = source_dir() / "models" / name;
    plain.text =
        "Ben sold the red ball to Anna, and Anna gave the ball back to Ben. Then Ben took it home, sat down, "
        "and told Anna what he had seen on the way to the old house by the river. She did not believe a word "
        "of it, but she laughed, gave him his tea and asked him to tell it to her once more from the start.";
    plain.capture.maps = MapStorage::none;
    const auto before = run(loaded, plain, Ctx{backend});
    for (const std::string& line : every_edit_line()) {
      CAPTURE(name);
      CAPTURE(line);
      RunRequest request = plain;
      request.edits = {parse_intervention("*: " + line, "test")};
      std::string refused;
      double change = 0;
      try {
        change = largest_difference(before->logits, run(loaded, request, Ctx{backend})->logits);
      } catch (const Error& error) {
        refused = error.what();
      }
      CAPTURE(refused);
      CAPTURE(change);
      const auto reason = reason_for_none(line, loaded.model->config());
      if (!reason) {
        CHECK(refused.empty());
        CHECK(change > 1e-3);
      } else {
        CHECK_MESSAGE(change < 1e-3, *reason);
        CHECK_MESSAGE(refused.empty() != reason->starts_with("refused"), *reason);
      }
    }
  }
}

}  // namespace headscope::every_edit_test
