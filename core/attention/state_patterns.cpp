#include "core/attention/state_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "core/base/error.h"

namespace headscope {

namespace {

/// Whether a mean is as good as 0: what is left of a token that was forgotten, which lanes cut where they please, and
/// by whose square nothing can be divided.
bool forgotten(float mean) {
  return std::abs(mean) < 1e-18f;
}

/// What α is multiplied by, or replaced by, in one cell.
float changed(float alpha, float before, float now) {
  if (before != 0 && now == before) return alpha;
  return forgotten(before) ? now : alpha * (now / before);
}

/// Numbers to which the running op adds its gradients: those of slots where nothing stands yet are cleared first.
Tensor cleared(const Tape::Slot& slot) {
  Tensor values = slot.values;
  if (!slot.add)
    for (Index i = 0; i < values.dim(0); ++i) {
      if (values.rank() == 1) values.ref(i) = 0;
      for (Index j = 0; values.rank() > 1 && j < values.dim(1); ++j) {
        if (values.rank() == 2) values.ref(i, j) = 0;
        for (Index k = 0; values.rank() > 2 && k < values.dim(2); ++k) values.ref(i, j, k) = 0;
      }
    }
  return values;
}

/// Σ_p a(t, lane, p) b(s, lane, p)
float dot(const Tensor& a, Index t, const Tensor& b, Index s, Index lane) {
  float sum = 0;
  for (Index p = 0; p < a.dim(2); ++p) sum += a.at(t, lane, p) * b.at(s, lane, p);
  return sum;
}

/// Unit vectors as what n tokens give each of so many lanes: what a layer makes of them are its α.
Tensor unit_vectors(Index n, Index lanes) {
  Tensor x = Tensor::zeros({n, lanes, n});
  for (Index s = 0; s < n; ++s)
    for (Index lane = 0; lane < lanes; ++lane) x.ref(s, lane, s) = 1;
  return x;
}

/// The first `end` tokens of a text.
StateMixing up_to(StateMixing in, Index end) {
  for (Tensor* each : {&in.x, &in.delta, &in.b, &in.c}) *each = each->slice(0, 0, end);
  return in;
}
GatedDelta up_to(GatedDelta in, Index end) {
  for (Tensor* each : {&in.q, &in.k, &in.v, &in.delta, &in.beta}) *each = each->slice(0, 0, end);
  return in;
}
ShortConvolution up_to(ShortConvolution in, Index end) {
  for (Tensor* each : {&in.b, &in.c, &in.x}) *each = each->slice(0, 0, end);
  return in;
}

}  // namespace

LinearMixing::LinearMixing(const StateMixing& in)
    : x(in.x),
      d(in.d),
      alpha([in](Index lane, KeyRange rows, const std::stop_token& stop) {
        return implied_attention(up_to(in, rows.end), lane, rows.begin, stop);
      }),
      mean([in](Index begin, Index end, KeyRange rows, const std::stop_token& stop, Tensor& out) {
        mean_implied(up_to(in, rows.end), begin, end, rows.begin, stop, out);
      }),
      all([in](Backend& backend, const std::stop_token& stop) {
        StateMixing units = in;
        units.x = unit_vectors(in.x.dim(0), in.x.dim(1));
        units.d = {};
        return mix_states(backend, units, nullptr, stop);
      }) {
  assert(in.lengths.size() <= 1);
  if (in.a.dim(1) == 1)
    head_means = [in](ThreadPool* pool, Index heads, Index head, KeyRange rows, const std::stop_token& stop,
                      const Tensor& out) {
      means_of_alike(pool, up_to(in, rows.end), heads, head, rows.begin, stop, out);
    };
}

LinearMixing::LinearMixing(const GatedDelta& in)
    : x(in.v),
      alpha([in](Index head, KeyRange rows, const std::stop_token& stop) {
        return implied_attention(up_to(in, rows.end), head, rows.begin, stop);
      }),
      all([in](Backend& backend, const std::stop_token& stop) {
        GatedDelta units = in;
        units.v = unit_vectors(in.v.dim(0), in.v.dim(1));
        return mix_delta(backend, units, nullptr, stop);
      }) {
  assert(in.lengths.size() <= 1);
}

LinearMixing::LinearMixing(const ShortConvolution& in, const Tensor& passing)
    : x(in.x.reshape({in.x.dim(0), in.x.dim(1), 1})),
      offset(passing.defined() ? passing.reshape(x.shape()) : Tensor()),
      alpha([in](Index channel, KeyRange rows, const std::stop_token&) {
        return implied_attention(up_to(in, rows.end), channel, rows.begin);
      }),
      mean([in](Index begin, Index end, KeyRange rows, const std::stop_token&, Tensor& out) {
        const Tensor found = mean_implied(up_to(in, rows.end), begin, end, rows.begin);
        std::ranges::copy(found.values(), out.mutable_values().begin());
      }),
      all([in](Backend& backend, const std::stop_token&) { return implied_of_all(backend, in); }) {
  assert(in.lengths.size() <= 1);
}

namespace {
/// The mean of a head's lanes, one by one or at once.
void write_mean(const LinearMixing& in, Index heads, Index head, KeyRange rows, const std::stop_token& stop,
                Tensor& out) {
  const Index each = in.x.dim(1) / heads;
  if (in.mean) return in.mean(head * each, (head + 1) * each, rows, stop, out);
  std::ranges::fill(out.mutable_values(), 0.0f);
  for (Index lane = head * each; lane < (head + 1) * each; ++lane) {
    if (stop.stop_requested()) return;
    const Tensor alpha = in.alpha(lane, rows, stop).packed();
    float* to = out.mutable_data();
    for (const float a : alpha.values()) *to++ += a / static_cast<float>(each);
  }
}
}  // namespace

Tensor mean_patterns(Backend& backend, const LinearMixing& in, Index heads, KeyRange rows,
                     const std::stop_token& stop) {
  Tensor out = backend.empty({heads, rows.size(), rows.end});
  if (in.head_means)
    in.head_means(&backend.pool(), heads, 0, rows, stop, out);
  else
    backend.pool().parallel(static_cast<int>(heads), [&](int head, int) {
      Tensor own = out.select(0, head);
      if (!stop.stop_requested()) write_mean(in, heads, head, rows, stop, own);
    });
  if (stop.stop_requested()) throw Cancelled();
  return out;
}

Tensor mean_pattern(const LinearMixing& in, Index heads, Index head, KeyRange rows, const std::stop_token& stop) {
  Tensor out = Tensor::uninitialized({1, rows.size(), rows.end}), own = out.select(0, 0);
  if (in.head_means)
    in.head_means(nullptr, heads, head, rows, stop, out);
  else
    write_mean(in, heads, head, rows, stop, own);
  if (stop.stop_requested()) throw Cancelled();
  return own;
}

void remix(Backend& backend, const LinearMixing& in, const Tensor& before, const Tensor& now, Index first, Tensor& y,
           const std::stop_token& stop) {
  const Index n = in.x.dim(0), lanes = in.x.dim(1), width = in.x.dim(2), heads = now.dim(0), each = lanes / heads,
              rows = n - first;
  backend.pool().parallel(static_cast<int>(heads), [&](int task, int) {
    const auto head = Index{task};
    const Tensor old = before.select(0, head), set = now.select(0, head);
    // Other rows keep the scan's own numbers, so that a row has the same bits whatever is edited beside it.
    std::vector<Index> changed_rows;
    for (Index t = 0; t < rows; ++t)
      for (Index s = 0; s < n; ++s)
        if (old.at(t, s) != set.at(t, s)) {
          changed_rows.push_back(t);
          break;
        }
    if (changed_rows.empty()) return;
    for (Index lane = head * each; lane < (head + 1) * each; ++lane) {
      if (stop.stop_requested()) return;
      const Tensor alpha = in.alpha(lane, {first, n}, stop);
      const float passes = in.d.defined() ? in.d.at(lane) : 0.0f;
      for (const Index t : changed_rows) {
        for (Index p = 0; p < width; ++p)
          y.ref(t, lane, p) =
              passes * in.x.at(first + t, lane, p) + (in.offset.defined() ? in.offset.at(first + t, lane, p) : 0.0f);
        for (Index s = 0; s < n; ++s) {
          const float a = changed(alpha.at(t, s), old.at(t, s), set.at(t, s));
          if (a != 0)
            for (Index p = 0; p < width; ++p) y.ref(t, lane, p) += a * in.x.at(s, lane, p);
        }
      }
    }
  });
  if (stop.stop_requested()) throw Cancelled();
}

Tensor with_pattern(Backend& backend, const LinearMixing& in, const Tensor& pattern, const Tensor& y) {
  Tape* const tape = backend.tape();
  assert(tape);
  const Tensor out = y.copy();
  tape->record(out, [&backend, tape, in, pattern, y](const Tensor& d_out) {
    backend.accumulate(d_out, tape->into(y));
    if (!tape->active(pattern)) return;
    const Index n = in.x.dim(0), heads = pattern.dim(0), each = in.x.dim(1) / heads;
    Tensor into = cleared(tape->into(pattern));
    backend.pool().parallel(static_cast<int>(heads), [&](int task, int) {
      const auto head = Index{task};
      for (Index lane = head * each; lane < (head + 1) * each; ++lane) {
        const Tensor alpha = in.alpha(lane, {0, n}, {});
        for (Index t = 0; t < n; ++t)
          for (Index s = 0; s < n; ++s) {
            const float was = pattern.at(head, t, s);
            into.ref(head, t, s) += dot(d_out, t, in.x, s, lane) * (forgotten(was) ? 1 : alpha.at(t, s) / was);
          }
      }
    });
  });
  return out;
}

Tensor mixed_by(Backend& backend, const LinearMixing& in, const Tensor& pattern, const Tensor& now,
                const std::stop_token& stop) {
  Tape* const tape = backend.tape();
  const Index n = in.x.dim(0), lanes = in.x.dim(1), width = in.x.dim(2), heads = now.dim(0), each = lanes / heads;
  assert(tape);
  if (n * n * lanes > Index{1} << 28)
    throw Error("gradients of a pass whose patterns are edited", fmt::format("at most {} cells of all lanes", 1 << 28),
                fmt::format("{} lanes of {} × {}", lanes, n, n), "cut the text, or switch these edits off");
  const Tensor alpha = in.all(backend, stop);  // (t, lane, s)
  Tensor before = Tensor::zeros({heads, n, n});
  for (Index t = 0; t < n; ++t)
    for (Index lane = 0; lane < lanes; ++lane)
      for (Index s = 0; s < n; ++s) before.ref(lane / each, t, s) += alpha.at(t, lane, s) / static_cast<float>(each);
  // Where nothing was edited the mean is what it became, so that a lane keeps its own; roundings of two ways differ.
  Tensor after = now.copy();
  for (Index head = 0; head < heads; ++head)
    for (Index t = 0; t < n; ++t)
      for (Index s = 0; s < n; ++s)
        if (now.at(head, t, s) == pattern.at(head, t, s)) after.ref(head, t, s) = before.at(head, t, s);
  const Tensor out = backend.empty(in.x.shape());
  Tensor y = out;
  for (Index t = 0; t < n; ++t)
    for (Index lane = 0; lane < lanes; ++lane) {
      const Index head = lane / each;
      for (Index p = 0; p < width; ++p)
        y.ref(t, lane, p) = (in.d.defined() ? in.d.at(lane) * in.x.at(t, lane, p) : 0.0f) +
                            (in.offset.defined() ? in.offset.at(t, lane, p) : 0.0f);
      for (Index s = 0; s < n; ++s) {
        const float a = changed(alpha.at(t, lane, s), before.at(head, t, s), after.at(head, t, s));
        for (Index p = 0; p < width; ++p) y.ref(t, lane, p) += a * in.x.at(s, lane, p);
      }
    }
  tape->record(out, [&backend, tape, in, now, after, alpha, before, n, lanes, width, each](const Tensor& d_out) {
    const auto asked = [&](const Tensor& x) { return tape->active(x) ? cleared(tape->into(x)) : Tensor(); };
    Tensor dx = asked(in.x), dd = asked(in.d), d_alpha = asked(alpha), d_now = asked(now);
    if (tape->active(in.offset)) backend.accumulate(d_out, tape->into(in.offset));
    const Tensor seen = d_out.reshape(in.x.shape());
    for (Index lane = 0; lane < lanes; ++lane)
      for (Index t = 0; t < n; ++t) {
        const Index head = lane / each;
        if (dd.defined()) dd.ref(lane) += dot(seen, t, in.x, t, lane);
        for (Index p = 0; dx.defined() && in.d.defined() && p < width; ++p)
          dx.ref(t, lane, p) += in.d.at(lane) * seen.at(t, lane, p);
        for (Index s = 0; s < n; ++s) {
          const float a = alpha.at(t, lane, s), old = before.at(head, t, s), set = after.at(head, t, s);
          for (Index p = 0; dx.defined() && p < width; ++p)
            dx.ref(s, lane, p) += changed(a, old, set) * seen.at(t, lane, p);
          const float d = dot(seen, t, in.x, s, lane);
          if (d_now.defined()) d_now.ref(head, t, s) += d * (forgotten(old) ? 1 : a / old);
          if (!d_alpha.defined()) continue;
          if (set == old) d_alpha.ref(t, lane, s) += d;  // the lane's own
          if (set == old || forgotten(old)) continue;
          d_alpha.ref(t, lane, s) += d * set / old;
          for (Index of = head * each; of < (head + 1) * each; ++of)  // by way of the mean that divides
            d_alpha.ref(t, of, s) -= d * a * set / (old * old) / static_cast<float>(each);
        }
      }
  });
  return out;
}

}  // namespace headscope
