#pragma once
// Attention with linear biases (Press et al., Train Short, Test Long, 2022): a score loses m · |i − j|, with a slope m
// of its own for every head. Nothing is added to embeddings, and no distance is unknown, however long the text.

#include <vector>

#include "core/attention/rule_edits.h"

namespace headscope {

/// Slopes of `heads` heads: 2^(−8h/H), h = 1 … H, when H is a power of two; else those of the next lower power of two,
/// then every second one of the next higher (as the authors' program does).
std::vector<double> alibi_slopes(int heads);

/// `base` with −slope · |i − j| added to what it lets through.
RulePtr alibi_rule(RulePtr base, double slope);
/// The same as Falcon makes it: slope ÷ unit, every position and their product are rounded to bfloat16, so that a key
/// at position j adds unit · b(j). What is added here is unit · (b(j) − b(i)), which is the same row after the softmax.
RulePtr rounded_alibi_rule(RulePtr base, double slope, double unit);
/// unit · b(position).
double rounded_alibi(double slope, double unit, Index position);

}  // namespace headscope
