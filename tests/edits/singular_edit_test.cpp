// The edit of singular values against the model that has the other matrix in its file.

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/edits/singular_edit.h"
#include "core/io/safetensors.h"
#include "core/model/family.h"
#include "core/run/run_request.h"
#include "tests/support/jacobi.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::singular_edit_test {

using testing::jacobi;
using testing::largest_difference;
using testing::reference;

namespace {

const std::vector<std::int32_t> ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};

struct Bench {
  explicit Bench(const char* name) : folder(reference(name)), loaded(load_model(folder, backend)) {}
  std::shared_ptr<const Trace> operator()(const std::vector<std::string>& edits, std::set<SiteKind> sites = {}) {
    return headscope::run(loaded, request(edits, std::move(sites)), Ctx{backend});
  }
  RunRequest request(const std::vector<std::string>& edits, std::set<SiteKind> sites = {}) const {
    RunRequest wanted;
    wanted.model = folder;
    wanted.ids = ids;
    wanted.capture.maps = MapStorage::dense;
    wanted.capture.sites = std::move(sites);
    for (const std::string& edit : edits) wanted.edits.push_back(parse_intervention(edit, "test"));
    return wanted;
  }
  /// The run of the model whose file would hold `weight` in that place.
  std::shared_ptr<const Trace> with(int layer, WeightMatrix matrix, const Tensor& weight) {
    const ModelConfig config = load_config(folder);
    const SafetensorsFile file = SafetensorsFile::open(folder);
    RawWeights raw = read_weights(file, config);
    RawLayer& l = raw.layers[static_cast<std::size_t>(layer)];
    Tensor* const places[] = {&l.q_weight,  &l.k_weight,    &l.v_weight,   &l.o_weight,
                              &l.up_weight, &l.gate_weight, &l.down_weight};
    *places[static_cast<int>(matrix)] = weight;
    const LoadedModel other{Model::build(config, raw, "test", backend), nullptr};
    return headscope::run(other, request({}), Ctx{backend});
  }
  Backend backend{1};
  std::filesystem::path folder;
  LoadedModel loaded;
};

}  // namespace

TEST_CASE("scaled singular values: the pass of the model that holds U diag(z σ) Vᵀ") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    Bench bench(name);
    const auto plain = bench({});
    for (int which = 0; which < weight_matrix_count; ++which) {
      const auto matrix = static_cast<WeightMatrix>(which);
      const Tensor own = bench.loaded.model->projection(1, matrix).weight;
      if (!own.defined()) {
        CHECK(matrix == WeightMatrix::mlp_gate);
        CHECK_THROWS_WITH_AS(bench({"1.*: singular mlp_gate 1=0"}), doctest::Contains("a matrix that"), Error);
        continue;
      }
      CAPTURE(name);
      CAPTURE(symbol_of(matrix));
      const auto parts = jacobi(own);
      std::vector<double> z(parts.values.size(), 1.0);
      z[0] = 0, z[1] = 2.5;
      for (std::size_t i = 4; i < z.size(); ++i) z[i] = 0.5;
      const std::string edit = "1.*: " + text_of(EditAction(ScaleSingular::of(matrix, z)));
      const auto edited = bench({edit}), wanted = bench.with(1, matrix, parts.scaled(z));
      CHECK(largest_difference(edited->logits, wanted->logits) < 2e-4);
      CHECK(largest_difference(edited->logits, plain->logits) > 1e-2);
      for (int head = 0; head < plain->model.dims.heads; ++head) {
        CHECK(largest_difference(edited->map({1, head}).to_dense(), wanted->map({1, head}).to_dense()) < 1e-4);
        CHECK(largest_difference(edited->map({0, head}).to_dense(), plain->map({0, head}).to_dense()) == 0);
      }
      // Nothing scaled is the model itself, bit for bit.
      CHECK(largest_difference(bench({"1.*: singular " + std::string(name_of(matrix)) + " 1..=1"})->logits,
                               plain->logits) == 0);
    }
  }
}

TEST_CASE("all singular values at zero leave the bias alone; positions outside the edit keep the own matrix") {
  Bench bench("gpt2-random");
  const Tensor bias = bench.loaded.model->projection(0, WeightMatrix::v).bias;
  const Tensor plain = bench({}, {SiteKind::v})->sites.at({SiteKind::v, 0}),
               killed = bench({"0.*@2..4: singular v 1..=0"}, {SiteKind::v})->sites.at({SiteKind::v, 0});
  for (Index i = 0; i < plain.dim(0); ++i)
    for (Index h = 0; h < plain.dim(1); ++h)
      for (Index c = 0; c < plain.dim(2); ++c)
        CHECK(killed.at(i, h, c) == (i >= 2 && i <= 4 ? bias.at(h * plain.dim(2) + c) : plain.at(i, h, c)));
  // Without its queries a head looks evenly.
  Bench unbiased("llama-gqa");
  const auto even = unbiased({"0.*: singular q 1..=0"});
  for (Index j = 0; j <= 7; ++j) CHECK(even->map({0, 1}).weight(7, j) == doctest::Approx(1.0 / 8));
}

TEST_CASE("what each head adds still sums to what the block adds") {
  Bench bench("gpt2-random");
  const std::string edit = "1.*: singular o 1=0 3..=0.5";
  const auto apart_heads = bench({edit}, {SiteKind::result, SiteKind::attn_out}),
             whole = bench({edit}, {SiteKind::attn_out});
  const Tensor sum = apart_heads->sites.at({SiteKind::attn_out, 1});
  CHECK(largest_difference(sum, whole->sites.at({SiteKind::attn_out, 1})) < 1e-4);
  const Tensor result = apart_heads->sites.at({SiteKind::result, 1}),
               bias = bench.loaded.model->projection(1, WeightMatrix::o).bias;
  for (Index j = 0; j < sum.dim(1); ++j) {
    double total = static_cast<double>(bias.at(j));
    for (Index head = 0; head < result.dim(1); ++head) total += static_cast<double>(result.at(5, head, j));
    CHECK(static_cast<double>(sum.at(5, j)) == doctest::Approx(total).epsilon(1e-4));
  }
}

TEST_CASE("scales as words: ranges, later ones win, the shortest form of a vector; what is wrong is named") {
  const auto read = [](const char* words) { return *parse_edit_action(words, "edit").as<ScaleSingular>(); };
  CHECK(read("singular q 1..2=0.5 2=3 4..=0").vector(6) == std::vector<double>{0.5, 3, 1, 0, 0, 0});
  CHECK(text_of(EditAction(ScaleSingular::of(WeightMatrix::mlp_in, {1, 0.5, 0.5, 1, 0, 0}))) ==
        "singular mlp_in 2..3=0.5 5..=0");
  CHECK(text_of(EditAction(ScaleSingular::of(WeightMatrix::o, {1, 1, 2}))) == "singular o 3=2");
  CHECK(text_of(EditAction(ScaleSingular::of(WeightMatrix::o, {1, 1}))) == "singular o 1=1");
  for (const char* bad : {"singular", "singular w 1=0", "singular q", "singular q 0=1", "singular q 3..2=1",
                          "singular q 1=", "singular q 1=x", "singular q 1..=101", "singular q 1..0=1", "singular q 1",
                          "singular q 1=0x", "singular q 99999999999=1", "singular q 1=nan"})
    CHECK_THROWS_AS(parse_edit_action(bad, "edit"), Error);
  Bench bench("gpt2-random");
  CHECK_THROWS_WITH_AS(bench({"0.*: singular q 99=0"}), doctest::Contains("W_Q"), Error);
  CHECK_THROWS_WITH_AS(bench({"0.1: singular q 1=0"}), doctest::Contains("write 0.*"), Error);
}

}  // namespace headscope::singular_edit_test
