// Attention on a tape: nothing is kept but what went in and came out.

#include <cassert>
#include <limits>

#include "core/cuda/attention_gradients.h"
#include "core/cuda/attention_terms.h"
#include "core/tensor/tape.h"

namespace headscope::cuda {

bool Attention::records(const Tape& tape, const AttentionInput& in, std::span<const Head> heads) const {
  const Room room{device_->properties().sharedMemPerBlockOptin, device_->properties().multiProcessorCount};
  return !tape.active(in.sinks) && takes_together(in, heads) &&
         attention_gradient_takes(static_cast<int>(in.q.dim(2)), static_cast<int>(in.v.dim(2)), room) &&
         std::max(in.q.dim(0), in.k.dim(0)) < std::numeric_limits<int>::max() / 2;
}

void Attention::record(Tape& tape, const AttentionInput& in, std::span<const Head> heads, const Tensor& z) {
  if (!tape.active(in.q) && !tape.active(in.k) && !tape.active(in.v)) return;
  device_->choose();
  const std::shared_ptr<const Terms> rule = terms(in, heads);
  if (!rule->seen_by) rule->seen_by = std::make_shared<Terms::SeenBy>(*rule, *device_);
  tape.record(z, [this, &tape, z, rule, seen_by = rule->seen_by, q = card_.heads_on_card(in.q),
                  k = card_.heads_on_card(in.k), v = card_.heads_on_card(in.v), own_q = in.q, own_k = in.k,
                  own_v = in.v, price = in.entropy_price](const Tensor& d_z) {
    const Operand d = card_.heads_on_card(d_z);
    AttentionGradientTask task{};
    task.of = this->task(q, k, v, z, *rule);
    assert(!task.of.rows && !task.of.biases);
    task.d_z = d.data;
    task.d_z_row = d.keeps.stride(0);
    task.d_z_head = d.keeps.stride(1);
    task.seen_by = reinterpret_cast<const int2*>(seen_by->queries.get());
    task.first_key = reinterpret_cast<const int*>(seen_by->first_key.get());
    task.price = price;
    const std::shared_ptr<float> rows =
        device_->take(sizeof(float) * attention_gradient_rows * static_cast<std::size_t>(z.dim(0) * z.dim(1)));
    task.rows = rows.get();
    // All places first: the first view of a storage makes its buffer.
    struct Gradient {
      const Tensor& of;
      AttentionGradientTask::Into& into;
      Tape::Slot slot{};
    } gradients[] = {{own_q, task.d_q}, {own_k, task.d_k}, {own_v, task.d_v}};
    for (Gradient& each : gradients)
      if (tape.active(each.of)) each.slot = tape.into(each.of);
    for (Gradient& each : gradients) {
      const Tensor& to = each.slot.values;
      if (!to.defined()) continue;
      assert(to.stride(2) == 1);
      each.into = {CardTensors::place(to), to.stride(0), to.stride(1), each.slot.add};
    }
    attention_gradient(task, device_->stream());
    check(cudaGetLastError(), "the way back through attention");
    for (const Gradient& each : gradients)
      if (each.slot.values.defined()) CardTensors::storage(each.slot.values)->written_on_card();
  });
}

}  // namespace headscope::cuda
