// Sums, products, activations and rotations.

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/tensor/backend.h"
#include "core/tensor/each_row.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/row_gradients.h"
#include "core/tensor/row_ops.h"

namespace headscope {

Tensor Backend::add(const Tensor& a, const Tensor& b, RowQueue* later) {
  assert(a.shape() == b.shape());
  const Tensor left = gapless(a, later), right = gapless(b, later);
  Tensor out = empty(a.shape());
  each_element(later, a, 1, [left, right, out](Index begin, Index end) mutable {
    row_ops::add(left.data() + begin, right.data() + begin, end - begin, out.mutable_data() + begin);
  });
  record_sum(out, a, b);
  return out;
}

void Backend::record_sum(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (!tape_ || !(tape_->active(a) || tape_->active(b))) return;
  tape_->record(out, [this, &tape = *tape_, a, b](const Tensor& d_out) {
    for (const Tensor* x : {&a, &b})
      if (tape.active(*x) && !tape.pass_on(*x)) accumulate(d_out, tape.into(*x));
  });
}

Tensor Backend::multiply(const Tensor& a, const Tensor& b, RowQueue* later) {
  assert(a.shape() == b.shape());
  const Tensor left = gapless(a, later), right = gapless(b, later);
  Tensor out = empty(a.shape());
  each_element(later, a, 1, [left, right, out](Index begin, Index end) mutable {
    row_ops::multiply(left.data() + begin, right.data() + begin, end - begin, out.mutable_data() + begin);
  });
  if (tape_ && (tape_->active(a) || tape_->active(b)))
    tape_->record(out, [this, &tape = *tape_, a, b, left, right](const Tensor& d_out) {
      const auto factor = [&](const Tensor& x, const Tensor& other) {
        if (!tape.active(x)) return;
        write_gradient(tape.into(x), 1, [&](Index begin, Index end, bool add, float* dx) {
          row_gradients::multiply(d_out.data() + begin, other.data() + begin, end - begin, add, dx);
        });
      };
      factor(a, right);
      factor(b, left);
    });
  return out;
}

Tensor Backend::activate(Unary f, const Tensor& x, RowQueue* later) {
  const Tensor in = gapless(x, later);
  Tensor out = empty(x.shape());
  using Row = void (*)(const float*, Index, float*);
  using Gradient = void (*)(const float*, const float*, Index, bool, float*);
  const auto [row, gradient] = [&]() -> std::pair<Row, Gradient> {
    switch (f) {
      case Unary::relu:
        return {row_ops::relu, row_gradients::relu};
      case Unary::gelu:
        return {row_ops::gelu, row_gradients::gelu};
      case Unary::gelu_tanh:
        return {row_ops::gelu_tanh, row_gradients::gelu_tanh};
      case Unary::silu:
        break;
    }
    return {row_ops::silu, row_gradients::silu};
  }();
  each_element(later, x, 4, [in, out, row = row](Index begin, Index end) mutable {
    row(in.data() + begin, end - begin, out.mutable_data() + begin);
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [this, &tape = *tape_, x, in, gradient = gradient](const Tensor& d_out) {
      write_gradient(tape.into(x), 4, [&](Index begin, Index end, bool add, float* dx) {
        gradient(in.data() + begin, d_out.data() + begin, end - begin, add, dx);
      });
    });
  return out;
}

Tensor Backend::xielu(const Xielu& f, const Tensor& x, RowQueue* later) {
  const Tensor in = gapless(x, later);
  Tensor out = empty(x.shape());
  each_element(later, x, 8, [in, out, f](Index begin, Index end) mutable {
    for (Index i = begin; i < end; ++i) {
      const float v = in.data()[i];
      out.mutable_data()[i] =
          f.beta * v + (v > 0 ? f.positive * v * v : f.negative * (std::expm1(std::min(v, f.epsilon)) - v));
    }
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [this, &tape = *tape_, x, in, f](const Tensor& d_out) {
      write_gradient(tape.into(x), 8, [&](Index begin, Index end, bool add, float* dx) {
        for (Index i = begin; i < end; ++i, ++dx) {
          const float v = in.data()[i];
          const float slope = f.beta + (v > 0           ? 2 * f.positive * v
                                        : v > f.epsilon ? -f.negative
                                                        : f.negative * std::expm1(v));
          *dx = slope * d_out.data()[i] + (add ? *dx : 0.0f);
        }
      });
    });
  return out;
}

Tensor Backend::add_to_heads(const Tensor& x, const Tensor& shared, RowQueue* later) {
  const Index rows = x.dim(0), heads = x.dim(1), width = x.dim(2), r = shared.dim(1);
  assert(x.rank() == 3 && x.stride(2) == 1 && shared.rank() == 2 && shared.stride(1) == 1 && shared.dim(0) == rows &&
         r <= width);
  Tensor out = empty(x.shape());
  each_row(later, rows, heads * width, [=](Index begin, Index end) mutable {
    for (Index row = begin; row < end; ++row)
      for (Index head = 0; head < heads; ++head) {
        const float* const from = x.data() + row * x.stride(0) + head * x.stride(1);
        float* const to = out.mutable_data() + (row * heads + head) * width;
        row_ops::add(from, shared.data() + row * shared.stride(0), r, to);
        std::copy(from + r, from + width, to + r);
      }
  });
  if (tape_ && (tape_->active(x) || tape_->active(shared)))
    tape_->record(out, [=, this, &tape = *tape_](const Tensor& d_out) {
      if (tape.active(x) && !tape.pass_on(x)) accumulate(d_out, tape.into(x));
      if (!tape.active(shared)) return;
      const Tape::Slot slot = tape.into(shared);
      Tensor to = slot.values;
      over_rows(pool_, rows, heads * r, 1, [&](Index begin, Index end) {
        for (Index row = begin; row < end; ++row)
          for (Index head = 0; head < heads; ++head)
            row_gradients::accumulate(d_out.data() + (row * heads + head) * width, r, slot.add || head > 0,
                                      to.mutable_data() + row * to.stride(0));
      });
    });
  return out;
}

template <class Body>
void Backend::write_gradient(const Tape::Slot& into, Index cost, Body body) {
  const bool direct = into.values.contiguous();
  Tensor to = direct ? into.values : empty(into.values.shape());
  over_rows(pool_, to.size(), 1, cost,
            [&](Index begin, Index end) { body(begin, end, direct && into.add, to.mutable_data() + begin); });
  if (!direct) accumulate(to, into);
}

Tensor Backend::scale(const Tensor& x, float factor, RowQueue* later) {
  const Tensor in = gapless(x, later);
  Tensor out = empty(x.shape());
  each_element(later, x, 1, [in, out, factor](Index begin, Index end) mutable {
    for (Index i = begin; i < end; ++i) out.mutable_data()[i] = factor * in.data()[i];
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [this, &tape = *tape_, x, factor](const Tensor& d_out) {
      write_gradient(tape.into(x), 1, [&](Index begin, Index end, bool add, float* dx) {
        for (Index i = begin; i < end; ++i, ++dx) *dx = factor * d_out.data()[i] + (add ? *dx : 0.0f);
      });
    });
  return out;
}

Tensor Backend::soft_cap(const Tensor& x, float limit, RowQueue* later) {
  const Tensor in = gapless(x, later);
  Tensor out = empty(x.shape());
  each_element(later, x, 8, [in, out, limit](Index begin, Index end) mutable {
    for (Index i = begin; i < end; ++i) out.mutable_data()[i] = limit * std::tanh(in.data()[i] / limit);
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [this, &tape = *tape_, x, out, limit](const Tensor& d_out) {
      write_gradient(tape.into(x), 2, [&](Index begin, Index end, bool add, float* dx) {
        for (Index i = begin; i < end; ++i, ++dx) {
          const float bent = out.data()[i] / limit;
          *dx = (1 - bent * bent) * d_out.data()[i] + (add ? *dx : 0.0f);
        }
      });
    });
  return out;
}

Tensor Backend::clip(const Tensor& x, float limit, RowQueue* later) {
  const Tensor in = gapless(x, later);
  Tensor out = empty(x.shape());
  each_element(later, x, 1, [in, out, limit](Index begin, Index end) mutable {
    for (Index i = begin; i < end; ++i) out.mutable_data()[i] = std::clamp(in.data()[i], -limit, limit);
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [this, &tape = *tape_, x, in, limit](const Tensor& d_out) {
      write_gradient(tape.into(x), 1, [&](Index begin, Index end, bool add, float* dx) {
        for (Index i = begin; i < end; ++i, ++dx)
          *dx = (std::abs(in.data()[i]) <= limit ? d_out.data()[i] : 0.0f) + (add ? *dx : 0.0f);
      });
    });
  return out;
}

namespace {
/// Row `x` of one head turned forwards (`sign` 1), or back (−1), into `to`; what follows the pairs as it is.
void turn(const float* x, const float* cosine, const float* sine, Index pairs, Index width, bool adjacent, float sign,
          bool add, float* to) {
  const Index step = adjacent ? 2 : 1, other = adjacent ? 1 : pairs;
  const auto put = [&](Index i, float value) { to[i] = value + (add ? to[i] : 0.0f); };
  for (Index i = 0; i < pairs; ++i) {
    const float a = x[step * i], b = x[step * i + other], c = cosine[i], s = sign * sine[i];
    put(step * i, a * c - b * s);
    put(step * i + other, b * c + a * s);
  }
  for (Index i = 2 * pairs; i < width; ++i) put(i, x[i]);
}
}  // namespace

Tensor Backend::rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, RowQueue* later, bool adjacent) {
  const Index rows = x.dim(0), heads = x.dim(1), width = x.dim(2), half = cosine.dim(1);
  assert(x.rank() == 3 && x.stride(2) == 1 && cosine.shape() == Shape({rows, half}) && 2 * half <= width &&
         cosine.contiguous() && sine.contiguous());
  const bool whole = 2 * half == width && !adjacent;
  Tensor out = empty(x.shape());
  each_row(later, rows, 2 * heads * width, [=](Index begin, Index end) mutable {
    for (Index r = begin; r < end; ++r)
      for (Index h = 0; h < heads; ++h) {
        const float* const from = x.data() + r * x.stride(0) + h * x.stride(1);
        float* const to = out.mutable_data() + (r * heads + h) * width;
        if (whole)
          row_ops::rotate(from, cosine.data() + r * half, sine.data() + r * half, half, to);
        else
          turn(from, cosine.data() + r * half, sine.data() + r * half, half, width, adjacent, 1, false, to);
      }
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [=, this, &tape = *tape_](const Tensor& d_out) {
      const Tape::Slot slot = tape.into(x);
      Tensor dx = slot.values;
      over_rows(pool_, rows, heads * width, 2, [&](Index begin, Index end) {
        for (Index r = begin; r < end; ++r)
          for (Index h = 0; h < heads; ++h) {
            const float* const from = d_out.data() + (r * heads + h) * width;
            float* const to = dx.mutable_data() + r * dx.stride(0) + h * dx.stride(1);
            if (whole)
              row_gradients::rotate(from, cosine.data() + r * half, sine.data() + r * half, half, slot.add, to);
            else
              turn(from, cosine.data() + r * half, sine.data() + r * half, half, width, adjacent, -1, slot.add, to);
          }
      });
    });
  return out;
}

}  // namespace headscope
