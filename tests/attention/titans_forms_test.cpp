// Memory joined to attention against definitions written out here: a memory of one matrix, its updates and the softmax
// of what may be seen, in double.

#include "core/attention/titans_forms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::titans_forms_test {

using testing::gap;
using testing::Matrix;
using testing::matrix_of;
using testing::random_tensor;

namespace {

using Row = std::vector<double>;
constexpr Index n = 8, d = 3, d_v = 2, persistent = 2, span = 3;

Row unit(Row x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  for (double& v : x) v /= std::sqrt(sum);
  return x;
}

/// W (d_v × d) with its momentum.
struct NaiveMemory {
  MemoryRates rates;
  Matrix w = Matrix(d_v, Row(d, 0)), s = w;
  Row operator()(const Row& key) const {
    const Row k = unit(key);
    Row out(d_v, 0);
    for (std::size_t i = 0; i < d_v; ++i)
      for (std::size_t j = 0; j < d; ++j) out[i] += w[i][j] * k[j];
    return out;
  }
  void learn(const Row& key, const Row& value) {
    const Row said = (*this)(key), k = unit(key);
    for (std::size_t i = 0; i < d_v; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        s[i][j] = rates.momentum * s[i][j] - rates.learning * 2 * (said[i] - value[i]) * k[j];
        w[i][j] = (1 - rates.forgetting) * w[i][j] + s[i][j];
      }
  }
};

struct Seen {
  Row key, value;
};
Row attention(const Row& query, const std::vector<Seen>& seen, double scale) {
  double total = 0;
  Row out(d_v, 0);
  for (const Seen& each : seen) {
    double score = 0;
    for (std::size_t j = 0; j < d; ++j) score += scale * query[j] * each.key[j];
    total += std::exp(score);
    for (std::size_t i = 0; i < d_v; ++i) out[i] += std::exp(score) * each.value[i];
  }
  for (double& v : out) v /= total;
  return out;
}

Row normal(Row x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  const double rms = std::sqrt(sum / static_cast<double>(x.size()));
  for (double& v : x) v = rms > 0 ? v / rms : 0;
  return x;
}
/// y is narrower than a key: memory is taught and asked with zeros beside it.
Row as_key(Row y) {
  y.resize(d, 0);
  return y;
}
Row gated(const Row& y, const Row& memory, bool both = false) {
  Row out = normal(y);
  if (both)
    for (double& v : out) v = 1 / (1 + std::exp(-v));
  const Row m = normal(memory);
  for (std::size_t i = 0; i < d_v; ++i) out[i] /= 1 + std::exp(-m[i]);
  return out;
}

struct Input {
  Tensor tq = random_tensor({n, d}, 1), tk = random_tensor({n, d}, 2), tv = random_tensor({n, d_v}, 3);
  PersistentTokens always = persistent_tokens(persistent, tk, tv, 7);
  Matrix q = matrix_of(tq), k = matrix_of(tk), v = matrix_of(tv), pk = matrix_of(always.k), pv = matrix_of(always.v);
  MemoryRates rates{0.4, 0.15, 0.05};
  float scale = 0.5f;
  TitansJoined joined(TitansForm form, TitansReading reading = {}) const {
    return join_memory(form, tq, tk, tv, scale, rates, {}, always, span, reading);
  }
};

}  // namespace

TEST_CASE("memory as a context: what a segment recalls, sees and leaves behind") {
  using enum TitansReading::Context;
  using enum TitansReading::Gating;
  const Input in;
  for (const TitansReading reading : {TitansReading{output, memory}, {token, memory}, {output, both}}) {
    const TitansJoined joined = in.joined(TitansForm::context, reading);
    NaiveMemory lasting{in.rates};
    Matrix recalled, attended, out;
    for (std::size_t begin = 0; begin < n; begin += span) {
      const std::size_t end = std::min<std::size_t>(begin + span, n);
      for (std::size_t i = begin; i < end; ++i) recalled.push_back(lasting(in.q[i]));
      for (std::size_t i = begin; i < end; ++i) {
        std::vector<Seen> seen;
        for (std::size_t p = 0; p < persistent; ++p) seen.push_back({in.pk[p], in.pv[p]});
        for (std::size_t j = begin; j < end; ++j) seen.push_back({in.k[j], recalled[j]});
        for (std::size_t j = begin; j <= i; ++j) seen.push_back({in.k[j], in.v[j]});
        attended.push_back(attention(in.q[i], seen, static_cast<double>(in.scale)));
      }
      // Eq. 24, M ← M(y), and eq. 25, o = y ⊗ M(y); or the token's own key and query.
      const bool y = reading.context == output;
      for (std::size_t i = begin; i < end; ++i) lasting.learn(y ? as_key(attended[i]) : in.k[i], attended[i]);
      for (std::size_t i = begin; i < end; ++i)
        out.push_back(gated(attended[i], lasting(y ? as_key(attended[i]) : in.q[i]), reading.gating == both));
    }
    CHECK(gap(joined.recalled, recalled) < 1e-6);
    CHECK(gap(joined.attended, attended) < 1e-6);
    CHECK(gap(joined.output, out) < 1e-6);
    for (Index i = 0; i < span; ++i) CHECK(joined.recalled.at(i, 0) == 0);  // nothing was read before
    CHECK(joined.recalled.at(span, 0) != 0);
  }
}

TEST_CASE("memory as a gate, and as a layer: persistent tokens first, then a window") {
  const Input in;
  NaiveMemory memory{in.rates};
  Matrix said, told;
  for (std::size_t p = 0; p < persistent; ++p) {
    memory.learn(in.pk[p], in.pv[p]);
    told.push_back(memory(in.pk[p]));
  }
  for (std::size_t t = 0; t < n; ++t) {
    memory.learn(in.k[t], in.v[t]);
    said.push_back(memory(in.q[t]));
  }
  Matrix gate, layer;
  for (std::size_t t = 0; t < n; ++t) {
    std::vector<Seen> values, answers;
    for (std::size_t p = 0; p < persistent; ++p) {
      values.push_back({in.pk[p], in.pv[p]});
      answers.push_back({in.pk[p], told[p]});
    }
    for (std::size_t s = 0; s <= t; ++s)
      if (s + span > t) {
        values.push_back({in.k[s], in.v[s]});
        answers.push_back({in.k[s], said[s]});
      }
    gate.push_back(gated(attention(in.q[t], values, static_cast<double>(in.scale)), said[t]));
    layer.push_back(attention(in.q[t], answers, static_cast<double>(in.scale)));
  }
  CHECK(gap(in.joined(TitansForm::gate).recalled, said) < 1e-6);
  CHECK(gap(in.joined(TitansForm::gate).output, gate) < 1e-6);
  CHECK(gap(in.joined(TitansForm::layer).output, layer) < 1e-6);
  CHECK_FALSE(in.joined(TitansForm::layer).gate.defined());
  // Later tokens change nothing before them.
  Input other;
  other.tv = in.tv.copy();
  other.tv.ref(n - 1, 0) += 3;
  for (const TitansForm form : {TitansForm::gate, TitansForm::layer}) {
    const Tensor a = in.joined(form).output, b = other.joined(form).output;
    for (Index i = 0; i + 1 < n; ++i) CHECK(a.at(i, 0) == b.at(i, 0));
  }
}

TEST_CASE("without persistent tokens and of any length of segment the forms still run, and the catalogue shows them") {
  const Input in;
  const PersistentTokens none = persistent_tokens(0, in.tk, in.tv, 1);
  for (const TitansForm form : {TitansForm::context, TitansForm::gate, TitansForm::layer})
    for (const Index length : {1, 5, 64}) {
      const TitansJoined joined = join_memory(form, in.tq, in.tk, in.tv, in.scale, in.rates, {}, none, length);
      CHECK(joined.output.shape() == in.tv.shape());
      for (Index i = 0; i < n; ++i) {
        double sum = 0;
        for (Index j = 0; j < joined.weights.dim(1); ++j) sum += static_cast<double>(joined.weights.at(i, j));
        CHECK(sum == doctest::Approx(1));
      }
    }
  const MechanismInput head = headscope::testing::random_head(9, 9, 4, 4, "causal");
  for (const char* form : {"context", "gate"}) {
    const MechanismResult shown =
        headscope::testing::run(std::string("titans hidden=6 learning=0.05 form=") + form, head, Detail::steps);
    CHECK(headscope::testing::step_of(shown, "joined").value.shape() == head.v.shape());
  }
  CHECK(headscope::testing::step_of(headscope::testing::run("titans form=layer", head, Detail::steps), "attended")
            .title == "MAL: joined output");
}

TEST_CASE("keys of nothing but zeros teach and ask nothing") {
  const Input in;
  const Tensor zeros = Tensor::zeros({n, d});
  const PersistentTokens none = persistent_tokens(0, in.tk, in.tv, 1);
  const TitansJoined joined = join_memory(TitansForm::gate, in.tq, zeros, in.tv, in.scale, in.rates, {}, none, span);
  for (const float each : joined.recalled.values()) CHECK(each == 0);
  // Of a memory that says nothing the gate is σ(0).
  for (const float each : joined.gate.values()) CHECK(each == 0.5f);
  const TitansJoined asked = join_memory(TitansForm::gate, zeros, in.tk, in.tv, in.scale, in.rates, {}, none, span);
  for (const float each : asked.recalled.values()) CHECK(each == 0);
}

TEST_CASE("persistent tokens are drawn as large as keys and values are in the mean square") {
  const Input in;
  const auto size = [](const Tensor& x) {
    double sum = 0;
    for (const float v : x.packed().values()) sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  const auto like = [&](const Tensor& drawn, const Tensor& x, std::uint64_t seed) {
    const Tensor bare = mechanism::gaussian(drawn.dim(0), drawn.dim(1), seed);
    for (Index i = 0; i < drawn.dim(0); ++i)
      for (Index c = 0; c < drawn.dim(1); ++c)
        CHECK(drawn.at(i, c) == doctest::Approx(static_cast<double>(bare.at(i, c)) * size(x)).epsilon(1e-5));
  };
  like(in.always.k, in.tk, 14);
  like(in.always.v, in.tv, 15);
}

TEST_CASE("memory as a context, causally: a token sees what was recalled up to itself, and memory that read up to it") {
  using enum TitansReading::Context;
  const Input in;
  for (const auto how : {output, token}) {
    const TitansReading reading{how, TitansReading::Gating::memory, TitansReading::Segments::causal};
    const TitansJoined joined = in.joined(TitansForm::context, reading);
    NaiveMemory lasting{in.rates};
    Matrix recalled, out;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t begin = i / span * span;
      if (i == begin)  // memory as the segment finds it
        for (std::size_t j = begin; j < std::min<std::size_t>(begin + span, n); ++j)
          recalled.push_back(lasting(in.q[j]));
      std::vector<Seen> seen;
      for (std::size_t p = 0; p < persistent; ++p) seen.push_back({in.pk[p], in.pv[p]});
      for (std::size_t j = begin; j <= i; ++j) seen.push_back({in.k[j], recalled[j]});
      for (std::size_t j = begin; j <= i; ++j) seen.push_back({in.k[j], in.v[j]});
      const Row y = attention(in.q[i], seen, static_cast<double>(in.scale));
      lasting.learn(how == output ? as_key(y) : in.k[i], y);
      out.push_back(gated(y, lasting(how == output ? as_key(y) : in.q[i])));
    }
    CHECK(gap(joined.recalled, recalled) < 1e-6);
    CHECK(gap(joined.output, out) < 1e-6);
  }
}

TEST_CASE("no later token changes an earlier one, whatever is joined how") {
  const Input in;
  for (const TitansForm form : {TitansForm::context, TitansForm::gate, TitansForm::layer})
    for (const Index changed : {1, 4, 5, 7})  // inside a segment and at its ends
      for (const bool deep : {false, true}) {
        CAPTURE(changed);
        const TitansReading reading{TitansReading::Context::output, TitansReading::Gating::memory,
                                    TitansReading::Segments::causal};
        const MemoryRates rates{0.4, 0.05, 0.05, {true, 4, 1, 4, 4}};
        const auto run = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          return join_memory(form, q, k, v, in.scale, rates, {deep ? 4 : 0, 3, 2}, in.always, span, reading).output;
        };
        Tensor q = in.tq.copy(), k = in.tk.copy(), v = in.tv.copy();
        for (Index c = 0; c < d; ++c) q.ref(changed, c) += 2, k.ref(changed, c) -= 1.5f;
        v.ref(changed, 1) += 4;
        const Tensor a = run(in.tq, in.tk, in.tv), b = run(q, k, v);
        for (Index i = 0; i < changed; ++i)
          for (Index c = 0; c < d_v; ++c) CHECK(a.at(i, c) == b.at(i, c));
        CHECK(gap(a, b) > 1e-4);
      }
}

TEST_CASE("what attention reads is a mixture of the text's values, by way of memory too, and of persistent ones") {
  Input in;
  for (const TitansForm form : {TitansForm::context, TitansForm::gate, TitansForm::layer})
    for (const auto segments : {TitansReading::Segments::whole, TitansReading::Segments::causal})
      for (const bool adaptive : {false, true}) {
        in.rates.adaptive = {adaptive, 3, 1, 4, 4};
        const TitansReading reading{TitansReading::Context::token, TitansReading::Gating::memory, segments};
        const PersistentTokens none = persistent_tokens(0, in.tk, in.tv, 1);
        for (const bool some : {false, true}) {
          const PersistentTokens& always = some ? in.always : none;
          const auto run = [&](const PersistentTokens& of, const TitansKeeps& keeps) {
            return join_memory(form, in.tq, in.tk, in.tv, in.scale, in.rates, {}, of, span, reading, keeps);
          };
          const TitansJoined joined = run(always, {true, true});
          REQUIRE(joined.states.size() == static_cast<std::size_t>(n));
          Matrix mixed = headscope::testing::times(matrix_of(joined.mixed), in.v);
          CHECK((gap(joined.attended, mixed) < 1e-5) == !some);
          // Kept or not, the numbers are the same.
          CHECK(gap(joined.attended, run(always, {}).attended) == 0);
          CHECK_FALSE(run(always, {}).mixed.defined());
        }
      }
}

}  // namespace headscope::titans_forms_test
