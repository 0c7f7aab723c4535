#pragma once
// The matrices that a layer amounts to whose output is linear in what it takes in, head by head: a state space
// (core/attention/state_mixing.h), a gated delta rule (gated_delta.h), a short convolution (short_convolution.h). Such
// a layer is made of lanes, each y_t = Σ_{s≤t} α_ts x_s and what passes by; a head is a run of neighbouring lanes, and
// its pattern the mean of their α. Where each head is one lane that is α itself.

#include <functional>
#include <stop_token>
#include <vector>

#include "core/attention/gated_delta.h"
#include "core/attention/short_convolution.h"
#include "core/attention/state_mixing.h"
#include "core/trace/attention_rule.h"

namespace headscope {

/// One text of such a layer.
struct LinearMixing {
  Tensor x;       ///< (n, lanes, P)
  Tensor d;       ///< (lanes): d x passes by; undefined = 0
  Tensor offset;  ///< (n, lanes, P): what passes by that is not made of x; undefined = 0
  /// These rows of a lane's α, which end with the last of them: (rows.size(), rows.end). No tape.
  std::function<Tensor(Index lane, KeyRange rows, const std::stop_token& stop)> alpha;
  /// Writes the mean of those of the lanes [begin, end), where that is quicker than one by one; may be empty.
  std::function<void(Index begin, Index end, KeyRange rows, const std::stop_token& stop, Tensor& out)> mean;
  /// Writes the means of so many of `heads`, from `head` on, where that is quicker than one by one: (…, rows.size(),
  /// rows.end). Shared among the pool's threads, which may be null. May be empty.
  std::function<void(ThreadPool* pool, Index heads, Index head, KeyRange rows, const std::stop_token& stop,
                     const Tensor& out)>
      head_means;
  /// α of all lanes, (n, lane, n), recorded.
  std::function<Tensor(Backend& backend, const std::stop_token& stop)> all;

  LinearMixing(const StateMixing& in);  // NOLINT: what it is made of says all
  LinearMixing(const GatedDelta& in);   // NOLINT
  /// `offset`: convolution_offset(), where patterns are changed.
  LinearMixing(const ShortConvolution& in, const Tensor& offset);
};

/// The patterns of all heads of one text: these rows, which end with the last of them, (head, rows.size(), rows.end).
/// A row has the same bits whatever the others. No tape.
Tensor mean_patterns(Backend& backend, const LinearMixing& in, Index heads, KeyRange rows,
                     const std::stop_token& stop = {});
/// That of one head, (rows.size(), rows.end), on this thread alone.
Tensor mean_pattern(const LinearMixing& in, Index heads, Index head, KeyRange rows, const std::stop_token& stop = {});

/// y (n − first, lanes, P) of the rows of heads whose `now` is not their `before` (head, n − first, n), written into
/// `y`: Σ_s α'_ts x_s + d x_t with α' = α · now ÷ before, or now where before is 0. No tape.
void remix(Backend& backend, const LinearMixing& in, const Tensor& before, const Tensor& now, Index first, Tensor& y,
           const std::stop_token& stop = {});

/// The layer's y again, so that a gradient flows to `pattern` (head, n, n), in whose place `y` came about unchanged:
/// ∂α' of the sum above at now = before. With a tape. One text.
Tensor with_pattern(Backend& backend, const LinearMixing& in, const Tensor& pattern, const Tensor& y);

/// The same with `now` in place of the lanes' own `pattern` (mean_patterns()), and with gradients to everything: a cell
/// that is still what it was follows the lanes, another does not. All α stand in memory. With a tape. Throws Error when
/// that would be more than a GB. One text.
Tensor mixed_by(Backend& backend, const LinearMixing& in, const Tensor& pattern, const Tensor& now,
                const std::stop_token& stop = {});

}  // namespace headscope
