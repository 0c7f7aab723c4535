// The gated short convolution against its sum in float64, and against a layer of the `transformers` library
// (tests/reference/make_mixers.py).

#include "core/attention/short_convolution.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/attention/state_patterns.h"
#include "core/io/safetensors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::short_convolution_test {

using testing::check_gradients;
using testing::GradientCheck;
using testing::Numbers;
using testing::random_tensor;

namespace {

constexpr Index taps = 3;

ShortConvolution random_convolution(Index n, Index channels, bool biased, std::uint64_t seed) {
  const Tensor all = random_tensor({n, 3 * channels}, seed);  // slices of one product
  return {all.slice(1, 0, channels),
          all.slice(1, channels, 2 * channels),
          all.slice(1, 2 * channels, 3 * channels),
          random_tensor({channels, taps}, seed + 1),
          biased ? random_tensor({channels}, seed + 2) : Tensor(),
          {}};
}

double at(const Numbers& of, Index i) {
  return of[static_cast<std::size_t>(i)];
}

/// α of a channel from row t to row s of the same text.
double alpha(const Numbers& b, const Numbers& c, const Numbers& weight, Index channels, Index t, Index s,
             Index channel) {
  return t - s >= taps ? 0
                       : at(c, t * channels + channel) * at(weight, channel * taps + taps - 1 - (t - s)) *
                             at(b, s * channels + channel);
}

/// y row-major from b, c, x, weight and, where there is one, bias.
Numbers definition(const std::vector<Numbers>& in, const std::vector<Index>& lengths, Index channels) {
  Numbers out;
  Index begin = 0;
  for (const Index n : lengths) {
    for (Index t = begin; t < begin + n; ++t)
      for (Index channel = 0; channel < channels; ++channel) {
        double sum = in.size() > 4 ? at(in[1], t * channels + channel) * at(in[4], channel) : 0;
        for (Index s = begin; s <= t; ++s)
          sum += alpha(in[0], in[1], in[3], channels, t, s, channel) * at(in[2], s * channels + channel);
        out.push_back(sum);
      }
    begin += n;
  }
  return out;
}

Numbers numbers(const Tensor& t) {
  Numbers out;
  const Tensor whole = t.packed();
  for (const float x : whole.values()) out.push_back(static_cast<double>(x));
  return out;
}

}  // namespace

TEST_CASE("the gated short convolution, and the gradients of all that makes it") {
  const std::vector<Index> lengths{4, 1, 6};
  for (const bool biased : {true, false}) {
    const Index channels = 5;
    ShortConvolution in = random_convolution(11, channels, biased, 3);
    in.lengths = lengths;
    GradientCheck check;
    check.inputs = {in.b, in.c, in.x, in.weight};
    if (biased) check.inputs.push_back(in.bias);
    check.op = [&](Backend& backend) { return convolve_gated(backend, in); };
    check.definition = [&](const std::vector<Numbers>& inputs) { return definition(inputs, lengths, channels); };
    check_gradients(check, 8);
  }
}

TEST_CASE("a text in pieces is the text under the short convolution") {
  Backend backend(2);
  const ShortConvolution in = random_convolution(9, 4, true, 5);
  const Tensor whole = convolve_gated(backend, in);
  for (Index cut = 1; cut < 9; ++cut) {
    ShortConvolution rest = in;
    for (Tensor* each : {&rest.b, &rest.c, &rest.x}) *each = each->slice(0, cut, 9);
    Tensor before = Tensor::zeros({taps - 1, 4});
    for (Index back = 1; back < taps && back <= cut; ++back)
      for (Index channel = 0; channel < 4; ++channel)
        before.ref(taps - 1 - back, channel) = in.b.at(cut - back, channel) * in.x.at(cut - back, channel);
    const Tensor y = convolve_gated(backend, rest, before), truth = whole.slice(0, cut, 9);
    CHECK(std::ranges::equal(y.packed().values(), truth.packed().values()));
  }
}

TEST_CASE("the maps of a short convolution are what it amounts to, channel by channel and in groups") {
  Backend backend(2);
  const Index n = 8, channels = 6;
  const ShortConvolution in = random_convolution(n, channels, true, 9);
  const Numbers b = numbers(in.b), c = numbers(in.c), weight = numbers(in.weight);
  const Tensor patterns = mean_patterns(backend, {in, {}}, 2, {3, in.x.dim(0)});
  REQUIRE(patterns.shape() == Shape({2, n - 3, n}));
  for (Index t = 0; t < n; ++t)
    for (Index s = 0; s < n; ++s) {
      double means[2] = {};
      for (Index channel = 0; channel < channels; ++channel) {
        const double own = s <= t ? alpha(b, c, weight, channels, t, s, channel) : 0;
        CHECK(implied_attention(in, channel).at(t, s) == doctest::Approx(own).epsilon(1e-5));
        means[channel / 3] += own / 3;
      }
      for (Index head = 0; head < 2 && t >= 3; ++head)
        CHECK(patterns.at(head, t - 3, s) == doctest::Approx(means[head]).epsilon(1e-4).scale(0.1));
    }
  GradientCheck check;
  check.inputs = {in.b, in.c, in.weight};
  check.op = [&](Backend& on) { return implied_of_all(on, in); };
  check.definition = [&](const std::vector<Numbers>& inputs) {
    Numbers out;
    for (Index t = 0; t < n; ++t)
      for (Index channel = 0; channel < channels; ++channel)
        for (Index s = 0; s < n; ++s)
          out.push_back(s <= t ? alpha(inputs[0], inputs[1], inputs[2], channels, t, s, channel) : 0);
    return out;
  };
  check_gradients(check, 4);
}

TEST_CASE("a changed cell of a short convolution's map is what its channels do then, the bias stays") {
  Backend backend(2);
  const Index n = 6, channels = 4;
  const ShortConvolution in = random_convolution(n, channels, true, 13);
  const LinearMixing mixing(in, convolution_offset(backend, in));
  const Tensor pattern = mean_patterns(backend, mixing, 2, {0, in.x.dim(0)}), whole = convolve_gated(backend, in);
  Tensor now = pattern.copy();
  now.ref(1, 4, 3) *= 3;    // what was there three times
  now.ref(1, 5, 0) = 0.5f;  // beyond the reach of the convolution: all channels alike
  Tensor y = whole.copy().reshape({n, channels, 1});
  remix(backend, mixing, pattern, now, 0, y);
  for (Index t = 0; t < n; ++t)
    for (Index channel = 0; channel < channels; ++channel) {
      double truth = static_cast<double>(whole.at(t, channel));
      if (channel >= 2 && t == 4)
        truth += 2 * alpha(numbers(in.b), numbers(in.c), numbers(in.weight), channels, 4, 3, channel) *
                 static_cast<double>(in.x.at(3, channel));
      if (channel >= 2 && t == 5) truth += 0.5 * static_cast<double>(in.x.at(0, channel));
      CHECK(y.at(t, channel, 0) == doctest::Approx(truth).epsilon(1e-4).scale(0.1));
    }
  GradientCheck check;  // of what is not edited, by way of the maps
  check.inputs = {in.b, in.c, in.x, in.weight, in.bias};
  check.op = [&](Backend& on) {
    const LinearMixing own(in, convolution_offset(on, in));
    return mixed_by(on, own, pattern, pattern);
  };
  check.definition = [&](const std::vector<Numbers>& inputs) { return definition(inputs, {n}, channels); };
  check_gradients(check, 6);
}

TEST_CASE("what the transformers library computes of a short convolution") {
  const SafetensorsFile file = SafetensorsFile::open(testing::reference("mixers/short_convolution.safetensors"));
  Backend backend(2);
  const ShortConvolution in{file.tensor("b"),      file.tensor("c"),    file.tensor("x"),
                            file.tensor("weight"), file.tensor("bias"), {}};
  const Tensor y = convolve_gated(backend, in), truth = file.tensor("output");
  REQUIRE(y.shape() == truth.shape());
  for (Index i = 0; i < y.size(); ++i) CHECK(y.data()[i] == doctest::Approx(truth.data()[i]).epsilon(1e-5).scale(0.1));
}

}  // namespace headscope::short_convolution_test
