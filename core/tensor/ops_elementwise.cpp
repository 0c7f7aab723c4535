// Sums, products, activations and rotations.

#include <cassert>

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
  if (tape_ && (tape_->active(a) || tape_->active(b)))
    tape_->record(out, [this, &tape = *tape_, a, b](const Tensor& d_out) {
      for (const Tensor* x : {&a, &b})
        if (tape.active(*x) && !tape.pass_on(*x)) accumulate(d_out, tape.into(*x));
    });
  return out;
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

template <class Body>
void Backend::write_gradient(const Tape::Slot& into, Index cost, Body body) {
  const bool direct = into.values.contiguous();
  Tensor to = direct ? into.values : empty(into.values.shape());
  over_rows(pool_, to.size(), 1, cost,
            [&](Index begin, Index end) { body(begin, end, direct && into.add, to.mutable_data() + begin); });
  if (!direct) accumulate(to, into);
}

Tensor Backend::rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, RowQueue* later) {
  const Index rows = x.dim(0), heads = x.dim(1), width = x.dim(2), half = width / 2;
  assert(x.rank() == 3 && x.stride(2) == 1 && cosine.shape() == Shape({rows, half}) && cosine.contiguous() &&
         sine.contiguous());
  Tensor out = empty(x.shape());
  each_row(later, rows, 2 * heads * width, [=](Index begin, Index end) mutable {
    for (Index r = begin; r < end; ++r)
      for (Index h = 0; h < heads; ++h)
        row_ops::rotate(x.data() + r * x.stride(0) + h * x.stride(1), cosine.data() + r * half, sine.data() + r * half,
                        half, out.mutable_data() + (r * heads + h) * width);
  });
  if (tape_ && tape_->active(x))
    tape_->record(out, [=, this, &tape = *tape_](const Tensor& d_out) {
      const Tape::Slot slot = tape.into(x);
      Tensor dx = slot.values;
      over_rows(pool_, rows, heads * width, 2, [&](Index begin, Index end) {
        for (Index r = begin; r < end; ++r)
          for (Index h = 0; h < heads; ++h)
            row_gradients::rotate(d_out.data() + (r * heads + h) * width, cosine.data() + r * half,
                                  sine.data() + r * half, half, slot.add,
                                  dx.mutable_data() + r * dx.stride(0) + h * dx.stride(1));
      });
    });
  return out;
}

}  // namespace headscope
