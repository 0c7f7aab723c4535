// Every form of every edit on every stack of an encoder-decoder: it changes what the model foretells, or is refused in
// a sentence, or there is a reason why not, which stands here.

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/run/run_request.h"
#include "tests/support/every_edit.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::stacks_edit_test {

using namespace testing;

namespace {
/// Why a line that is not refused changes nothing on this stack.
std::optional<std::string> reason_for_none(const std::string& line, const std::string& stack, bool learned) {
  const auto begins = [&](std::string_view words) {
    return line == words || line.starts_with(std::string(words) + " ");
  };
  if (line == "mask causal" && stack == "dec") return "the decoder's own mask";
  if (line == "mask full" && stack != "dec") return "the stack's own mask";
  if (line == "freeze pattern") return "no edit before it changes what is frozen";
  if (line == "mechanism softmax temperature=1 scaled=on") return "the model's own attention";
  if (begins("mechanism flash") || begins("mechanism ring")) return "softmax attention, computed in another order";
  if (line.starts_with("freeze pattern from") && line.ends_with("aligned 0:0") && stack == "dec")
    return "the first row of a decoder sees itself alone, whatever the source";
  if (line == "mechanism log-length trained=16" && stack == "enc" && !learned) return "the source has 16 tokens";
  if (begins("position shift") && !learned) return "buckets know distances alone";
  return std::nullopt;
}
}  // namespace

TEST_CASE("every edit on every stack changes the logits, is refused in a sentence, or has its reason") {
  for (const std::string name : {"t5", "marian"}) {
    Backend backend{1};
    const LoadedModel loaded = load_model(reference("encoder-decoders") / name, backend);
    RunRequest plain;
    plain.model = reference("encoder-decoders") / name;
    plain.source = "the old man sees a small dog and the dog sees the old man run";
    plain.ids = {19, 7, 30, 7, 19, 11, 26, 8, 14, 7, 30};
    plain.capture.maps = MapStorage::none;
    const auto before = run(loaded, plain, Ctx{backend});
    for (const std::string stack : {"enc", "dec", "cross"}) {
      int changed = 0;
      for (const std::string& line : every_edit_line()) {
        CAPTURE(name);
        CAPTURE(stack);
        CAPTURE(line);
        RunRequest request = plain;
        request.edits = {parse_intervention(stack + ".*: " + line, "test")};
        std::string refused;
        double change = 0;
        try {
          change = largest_difference(before->logits, run(loaded, request, Ctx{backend})->logits);
        } catch (const Error& error) {
          refused = error.what();
        }
        CAPTURE(refused);
        CAPTURE(change);
        if (!refused.empty()) {
          CHECK(refused.find("expected") != std::string::npos);
          continue;
        }
        changed += change > 1e-5;
        if (const auto reason = reason_for_none(line, stack, name == "marian"))
          CHECK_MESSAGE(change < 1e-3, *reason);
        else
          CHECK(change > 1e-5);
      }
      CHECK(changed > (stack == "cross" ? 10 : 30));
    }
  }
}

}  // namespace headscope::stacks_edit_test
