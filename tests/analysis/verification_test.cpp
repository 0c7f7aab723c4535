#include "core/analysis/verification.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "tests/model/parity.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::verification_test {

using namespace testing;

namespace {
namespace fs = std::filesystem;
const fs::path gemma = reference("families") / "gemma2";

/// The capture of gemma2 with its tokens as given, its logits moved, and no patterns.
fs::path capture(const std::string& name, std::vector<std::int32_t> ids, float moved, bool logits = true) {
  const auto file = SafetensorsFile::open(gemma / "expected.safetensors");
  SafetensorsWriter writer;
  writer.add("tokens", DType::i32, {static_cast<std::int64_t>(ids.size())}, [ids](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(4 * ids.size()));
  });
  Tensor values = file.tensor("logits").copy();
  values.ref(5, 3) += moved;
  if (logits) writer.add("logits", values);
  const fs::path path = scratch_dir("verification-" + name) / "capture.safetensors";
  writer.write(path);
  return path;
}
}  // namespace

TEST_CASE("a witness that differs in one cell is told by its layer, head, query and key") {
  const Subject subject(gemma);
  const ReferenceCapture truth = read_reference(gemma / "expected.safetensors", subject.loaded.model->config());
  for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
    const auto trace = subject.trace(truth.ids, storage, false);
    const Verification same = verify(*trace, truth.values);
    CHECK(same.agrees());
    CHECK(same.patterns.size() == truth.values.patterns.size());
    CHECK(same.logits->bound == doctest::Approx(1e-4 * same.spread));
    plain::Pass other = truth.values;
    other.patterns.at(1).at(2).at(7, 4) += 1e-3;
    const Verification found = verify(*trace, other);
    CHECK_FALSE(found.agrees());
    CHECK(found.patterns[0].agrees());
    const Gap& gap = found.patterns[1];
    CHECK(gap.value == doctest::Approx(1e-3).epsilon(0.01));
    CHECK(gap.layer == 1);
    CHECK(gap.head == 2);
    CHECK(gap.query == 7);
    CHECK(gap.key == 4);
    other = truth.values;
    other.logits.at(3, 2) = std::numeric_limits<double>::quiet_NaN();
    CHECK_FALSE(verify(*trace, other).logits->agrees());
    other = truth.values;
    const std::int32_t next = truth.ids[5];
    other.logits.at(4, next) += 0.5;
    const Verification lost = verify(*trace, other);
    CHECK_FALSE(lost.losses->agrees());
    CHECK(lost.losses->query == 4);
    CHECK(lost.logits->value == doctest::Approx(0.5).epsilon(0.001));
    CHECK(lost.logits->key == next);
  }
}

TEST_CASE("a capture of a batch of one, with bridges' name for logits, is read as one of the text alone") {
  const Subject subject(gemma);
  const ModelConfig& config = subject.loaded.model->config();
  const auto file = SafetensorsFile::open(gemma / "expected.safetensors");
  const ReferenceCapture plain = read_reference(gemma / "expected.safetensors", config);
  const auto count = static_cast<std::int64_t>(plain.ids.size());
  SafetensorsWriter writer;
  writer.add("tokens", DType::i32, {1, count}, [ids = plain.ids](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(4 * ids.size()));
  });
  const Tensor maps = file.tensor("blocks.1.attn.hook_pattern"), logits = file.tensor("logits");
  writer.add("blocks.1.attn.hook_pattern", maps.reshape({1, maps.dim(0), maps.dim(1), maps.dim(2)}));
  writer.add("unembed.hook_out", logits.reshape({1, logits.dim(0), logits.dim(1)}));
  const fs::path path = scratch_dir("verification-batch") / "capture.safetensors";
  writer.write(path);
  const ReferenceCapture found = read_reference(path, config);
  CHECK(found.ids == plain.ids);
  CHECK(found.values.logits.values == plain.values.logits.values);
  REQUIRE(found.values.patterns.size() == plain.values.patterns.size());
  CHECK(found.values.patterns[0].empty());
  REQUIRE(found.values.patterns[1].size() == plain.values.patterns[1].size());
  CHECK(found.values.patterns[1][2].values == plain.values.patterns[1][2].values);
  CHECK(verify(*subject.trace(found.ids, MapStorage::dense, false), found.values).agrees());
}

TEST_CASE("verify prints every difference, and ends with 1 where a reference disagrees") {
  const auto file = SafetensorsFile::open(gemma / "expected.safetensors");
  const auto ids = file.entry("tokens").items<std::int32_t>();
  const Finished good = run_cli({"verify", gemma.string(), "--reference", capture("good", ids, 0).string(), "--json"});
  REQUIRE(good.code == 0);
  const auto json = nlohmann::json::parse(good.out);
  CHECK(json["agrees"] == true);
  CHECK(json["checks"].size() == 5 + 5 + 2);  // three layers, logits, losses, twice; logits and losses of the reference
  const Finished bad =
      run_cli({"verify", gemma.string(), "--reference", capture("bad", ids, 0.25f).string(), "--json"});
  CHECK(bad.code == 1);
  CHECK(nlohmann::json::parse(bad.out)["agrees"] == false);
  CHECK(bad.err.find("capture.safetensors") != std::string::npos);
  CHECK(nlohmann::json::parse(bad.out)["checks"][10]["where"] == "query 5, token 3");

  auto outside = ids;
  outside[2] = 1 << 20;
  const Finished ids_wrong = run_cli({"verify", gemma.string(), "--reference", capture("ids", outside, 0).string()});
  CHECK(ids_wrong.code == 1);
  CHECK(ids_wrong.first_error().find("1048576") != std::string::npos);
  const Finished empty = run_cli({"verify", gemma.string(), "--reference", capture("none", ids, 0, false).string()});
  CHECK(empty.first_error().find("neither") != std::string::npos);
  CHECK(run_cli({"verify", "induction"}).code == 0);
}

TEST_CASE("a capture's logits are those of all tokens or of the last alone, of this vocabulary") {
  const Subject subject(gemma);
  const ModelConfig& config = subject.loaded.model->config();
  const auto file = SafetensorsFile::open(gemma / "expected.safetensors");
  const auto ids = file.entry("tokens").items<std::int32_t>();
  const auto n = static_cast<Index>(ids.size());
  const auto read = [&](const Tensor& logits) {
    SafetensorsWriter writer;
    writer.add("tokens", DType::i32, {n}, [ids](std::ostream& out) {
      out.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(4 * ids.size()));
    });
    writer.add("logits", logits);
    const fs::path path = scratch_dir("verification-shape") / "capture.safetensors";
    writer.write(path);
    return read_reference(path, config);
  };
  const Tensor all = file.tensor("logits");
  const ReferenceCapture last = read(all.slice(0, n - 1, n).copy());
  CHECK(last.values.logits.rows == 1);
  const auto trace = subject.trace(ids, MapStorage::dense, false);
  const Verification found = verify(*trace, last.values);
  CHECK(found.agrees());
  CHECK(found.patterns.empty());
  CHECK(found.logits->query == n - 1);
  CHECK_FALSE(found.losses);
  for (const Shape& wrong : {Shape{2, config.dims.vocab}, Shape{1, config.dims.vocab + 1}, Shape{n, 3}}) {
    CAPTURE(wrong.str());
    CHECK_THROWS_WITH_AS(read(Tensor::zeros(wrong)), doctest::Contains("as this model has it"), Error);
  }
}

}  // namespace headscope::verification_test
