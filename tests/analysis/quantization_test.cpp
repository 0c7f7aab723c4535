// Few bits: the rounding by hand, the edit as a product made again, outliers kept apart, and the runs.

#include "core/analysis/quantization.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/edits/quantize_edit.h"
#include "core/metrics/next_token.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::quantization_test {

using namespace testing;

namespace {
struct Bench {
  explicit Bench(const char* name) : loaded(load_model(reference(name), backend)) {
    request.model = reference(name);
    request.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};
    request.capture.sites = quantization_sites(*loaded.model);
    request.capture.sites.insert(SiteKind::q);
  }
  std::shared_ptr<const Trace> with(const char* words) {
    RunRequest edited = request;
    edited.edits = {parse_intervention(words, "test")};
    return run(loaded, edited, ctx);
  }
  Backend backend{1};
  Ctx ctx{backend};
  LoadedModel loaded;
  RunRequest request;
};
}  // namespace

TEST_CASE("rounding: absmax, one step for all or for each row and column, by hand") {
  // 3 bits: whole numbers −3 … 3.
  const Tensor x = Tensor::from({2, 2}, std::vector<float>{3, 1.4f, 0.6f, -0.3f}),
               w = Tensor::from({2, 2}, std::vector<float>{6, 1, -3, 0.2f});
  const QuantizedFactors all = quantized_factors(x, w, {.bits = 3, .vectors = false});
  // Steps 1 and 2: 1.4 → 1, 0.6 → 1, −0.3 → 0; 1 ÷ 2 rounds away to 1 → 2, −3 ÷ 2 → −2 → −4, 0.2 → 0.
  const float x_all[] = {3, 1, 1, 0}, w_all[] = {6, 2, -4, 0};
  for (Index i = 0; i < 4; ++i) {
    CHECK(all.x.at(i / 2, i % 2) == x_all[i]);
    CHECK(all.w.at(i / 2, i % 2) == w_all[i]);
  }
  const QuantizedFactors each = quantized_factors(x, w, {.bits = 3, .vectors = true});
  // Rows of x: steps 1 and 0.2; columns of w: 2 and 1/3.
  const double x_each[] = {3, 1, 0.6, -0.4}, w_each[] = {6, 1, -4, 1.0 / 3};
  for (Index i = 0; i < 4; ++i) {
    CHECK(each.x.at(i / 2, i % 2) == doctest::Approx(x_each[i]));
    CHECK(each.w.at(i / 2, i % 2) == doctest::Approx(w_each[i]));
  }
  CHECK(quantized_factors(x, w, {.bits = 3, .activations = false}).x.at(0, 1) == 1.4f);
  // Apart from 2: dimension 0 stays, in x and in w, and takes no part in the steps.
  const QuantizedFactors apart = quantized_factors(x, w, {.bits = 3, .vectors = false, .apart = 2});
  CHECK(apart.apart == std::vector<Index>{0});
  CHECK(apart.x.at(1, 0) == 0.6f);
  CHECK(apart.w.at(0, 1) == 1);
  CHECK(apart.x.at(0, 1) == doctest::Approx(1.4));       // 3 steps of 1.4/3
  CHECK(apart.x.at(1, 1) == doctest::Approx(-1.4 / 3));  // −0.3 is 0.64 steps
  CHECK(apart.w.at(1, 0) == doctest::Approx(-3));
  CHECK(apart.w.at(1, 1) == 0);
}

TEST_CASE("the edit multiplies with rounded numbers: q by its definition, in both families") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench b(name);
    const auto before = run(b.loaded, b.request, b.ctx), after = b.with("0.*: quantize 4 both vector 0");
    const Projection own = b.loaded.model->projection(0, WeightMatrix::q);
    const Tensor x = before->sites.at({input_site(b.loaded.model->config(), WeightMatrix::q, 0), 0});
    const QuantizedFactors by = quantized_factors(x, own.weight, {.bits = 4});
    const Tensor& q = after->sites.at({SiteKind::q, 0});
    double most = 0;
    for (Index i = 0; i < x.dim(0); ++i)
      for (Index c = 0; c < own.weight.dim(1); ++c) {
        double sum = own.bias.defined() ? static_cast<double>(own.bias.at(c)) : 0;
        for (Index a = 0; a < x.dim(1); ++a)
          sum += static_cast<double>(by.x.at(i, a)) * static_cast<double>(by.w.at(a, c));
        most = std::max(most, std::abs(sum - static_cast<double>(q.at(i, c / q.dim(2), c % q.dim(2)))));
      }
    CHECK(most < 1e-4);
    CHECK(largest_difference(before->logits, after->logits) > 1e-3);
    // A threshold that everything reaches leaves the model as it is; one position leaves those before it.
    CHECK(largest_difference(before->logits, b.with("*: quantize 2 both vector 0.0000001")->logits) < 1e-3);
  }
}

TEST_CASE("few bits: fewer bits err more, vectors less than one step, and an outlier apart least") {
  Bench b("gpt2-random");
  const auto trace = run(b.loaded, b.request, b.ctx);
  const auto mean_of = [&](Quantization how, double QuantizedMatrix::*error) {
    double sum = 0;
    const QuantizationReport report = read_quantization(*b.loaded.model, *trace, how);
    for (const QuantizedMatrix& each : report.matrices)
      sum += each.*error / static_cast<double>(report.matrices.size());
    return sum;
  };
  const double eight = mean_of({.bits = 8, .apart = 6}, &QuantizedMatrix::product_error);
  const double four = mean_of({.bits = 4, .apart = 6}, &QuantizedMatrix::product_error);
  CHECK(four / eight == doctest::Approx(127.0 / 7).epsilon(0.15));  // errors go with the step
  CHECK(mean_of({.bits = 4, .vectors = false, .apart = 6}, &QuantizedMatrix::product_error) > four);
  // Everything apart: no error.
  CHECK(mean_of({.bits = 4, .apart = 1e-9}, &QuantizedMatrix::apart_error) < 1e-6);
  const QuantizationReport report = read_quantization(*b.loaded.model, *trace, {.bits = 4, .apart = 6});
  CHECK(report.matrices.size() == static_cast<std::size_t>(6 * b.loaded.model->config().dims.layers));
}

TEST_CASE("few bits: every number of a run is that of the edit; layers add up to the whole") {
  Bench b("llama-gqa");
  const Quantization how{.bits = 4, .apart = 6};
  const QuantizedRuns runs = run_quantized(b.loaded, b.request, how, b.ctx);
  CHECK(runs.runs.size() == 15);
  CHECK(runs.layers.size() == static_cast<std::size_t>(b.loaded.model->config().dims.layers));
  CHECK(runs.before.loss == doctest::Approx(mean_loss(*run(b.loaded, b.request, b.ctx))));
  CHECK(runs.chosen.loss == doctest::Approx(mean_loss(*b.with("*: quantize 4 both vector 6"))));
  CHECK(runs.layers[1].loss == doctest::Approx(mean_loss(*b.with("1.*: quantize 4 both vector 6"))));
  for (const QuantizedRuns::Run& each : runs.runs)
    if (each.bits == 3 && each.way == QuantizedRuns::tensor)
      CHECK(each.outcome.loss == doctest::Approx(mean_loss(*b.with("*: quantize 3 both tensor 0"))));
}

TEST_CASE("what a gap of one large dimension does: its own step, unless it is kept apart") {
  Tensor x = random_tensor({20, 32}, 1), w = random_tensor({32, 16}, 2);
  for (Index i = 0; i < 20; ++i) x.ref(i, 7) *= 60;
  const auto error = [&](const Quantization& how) {
    const QuantizedFactors by = quantized_factors(x, w, how);
    double off = 0;
    for (Index i = 0; i < 20; ++i)
      for (Index c = 0; c < 32; ++c)
        if (c != 7) off += std::pow(static_cast<double>(by.x.at(i, c)) - static_cast<double>(x.at(i, c)), 2);
    return std::sqrt(off);
  };
  CHECK(error({.bits = 8, .vectors = false}) > 10 * error({.bits = 8, .vectors = false, .apart = 20}));
}

TEST_CASE("few bits: the largest number of X and the typical one, of every matrix, by hand") {
  Bench b("gpt2-random");
  const auto trace = run(b.loaded, b.request, b.ctx);
  const ModelConfig& config = b.loaded.model->config();
  const QuantizationReport report = read_quantization(*b.loaded.model, *trace, {.bits = 4, .apart = 6});
  for (const QuantizedMatrix& each : report.matrices) {
    CAPTURE(each.layer);
    const Tensor site = trace->sites.at({input_site(config, each.matrix, each.layer), each.layer}).packed();
    const Index n = site.dim(0), width = site.size() / n;
    std::vector<float> most(static_cast<std::size_t>(width), 0.0f);
    for (Index i = 0; i < n; ++i)
      for (Index c = 0; c < width; ++c)
        most[static_cast<std::size_t>(c)] = std::max(most[static_cast<std::size_t>(c)],
                                                     std::abs(site.values()[static_cast<std::size_t>(i * width + c)]));
    const auto largest = std::ranges::max_element(most);
    CHECK(each.in == width);
    CHECK(std::abs(each.largest) == *largest);
    CHECK(each.largest_dimension == largest - most.begin());
    Index reach = 0;
    for (const float m : most) reach += m >= 6;
    CHECK(each.apart == reach);
    std::ranges::sort(most);
    REQUIRE(most.size() % 2 == 0);  // the median of an even count is the mean of the two middle ones
    CHECK(each.typical == doctest::Approx((most[most.size() / 2 - 1] + most[most.size() / 2]) / 2));
  }
  std::set<SiteKind> inputs;
  for (int each = 0; each < weight_matrix_count; ++each)
    if (const auto matrix = static_cast<WeightMatrix>(each); b.loaded.model->projection(0, matrix).weight.defined())
      inputs.insert(input_site(config, matrix, 0));
  CHECK(quantization_sites(*b.loaded.model) == inputs);
  // A site that was not recorded has no line.
  Trace less = *trace;
  less.sites.erase({input_site(config, WeightMatrix::q, 0), 0});
  const auto fewer = read_quantization(*b.loaded.model, less, {.bits = 4, .apart = 6});
  CHECK(fewer.matrices.size() + 3 == report.matrices.size());  // q, k and v read it
}

TEST_CASE("queries that are made of a latent read it, and nothing else does") {
  Backend backend(1);
  const auto model = Model::load(reference("families/deepseek_v3"), backend);
  REQUIRE(model->config().dims.q_latent > 0);
  const std::set<SiteKind> sites = quantization_sites(*model);
  CHECK(sites.contains(SiteKind::q_latent));
  CHECK(sites.contains(SiteKind::kv_latent));
  CHECK(sites.contains(SiteKind::z));
}

}  // namespace headscope::quantization_test
