#pragma once
// The matrices that a state space amounts to (core/attention/state_mixing.h), head by head: a head is a run of
// neighbouring lanes, and its pattern the mean of their α. Where each head is one lane (Mamba-2) that is α itself.

#include <stop_token>
#include <vector>

#include "core/attention/state_mixing.h"

namespace headscope {

/// (head, n − first, n): of the rows from `first` on of one text. No tape.
Tensor mean_patterns(Backend& backend, const StateMixing& in, Index heads, Index first,
                     const std::stop_token& stop = {});

/// y (n − first, lanes, P) of the heads whose `now` is not their `before` (head, n − first, n), written into `y`:
/// Σ_s α'_ts x_s + d x_t with α' = α · now ÷ before, or now where before is 0. No tape.
void remix(Backend& backend, const StateMixing& in, const Tensor& before, const Tensor& now, Index first, Tensor& y,
           const std::stop_token& stop = {});

/// mix_states()'s y again, so that a gradient flows to `pattern` (head, n, n), in whose place `y` came about unchanged:
/// ∂α' of the sum above at now = before. With a tape. One text.
Tensor with_pattern(Backend& backend, const StateMixing& in, const Tensor& pattern, const Tensor& y);

/// The same with `now` in place of the lanes' own `pattern` (mean_patterns()), and with gradients to everything: a cell
/// that is still what it was follows the lanes, another does not. All α stand in memory. With a tape. Throws Error when
/// that would be more than a GB. One text.
Tensor mixed_by(Backend& backend, const StateMixing& in, const Tensor& pattern, const Tensor& now,
                const std::stop_token& stop = {});

}  // namespace headscope
