#include "core/analysis/mechanism_timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>

#include "core/attention/mechanism_math.h"

namespace headscope {

namespace {

using Clock = std::chrono::steady_clock;
constexpr Index first_n = 16;
constexpr double farthest_n = 65536;  // theory is drawn up to here
// Forms that hold an n × n matrix stop where it would take 64 MB.
constexpr Index most_n_of_matrices = 4096;
// A short run is repeated until it has taken this long; the fastest counts, since whatever else runs only adds.
constexpr double repeat_seconds = 0.004;

// So many rows are drawn; a longer text repeats them, since drawing takes longer than much of what is measured.
constexpr Index drawn_rows = 4096;

Tensor some_rows(Index n, Index d, std::uint64_t seed) {
  const Tensor drawn = mechanism::gaussian(std::min(n, drawn_rows), d, seed);
  if (n <= drawn_rows) return drawn;
  Tensor rows = Tensor::uninitialized({n, d});
  const std::span<const float> from = drawn.values();
  const std::span<float> to = rows.mutable_values();
  for (std::size_t at = 0; at < to.size(); at += from.size())
    std::ranges::copy(from.first(std::min(from.size(), to.size() - at)), to.begin() + static_cast<std::ptrdiff_t>(at));
  return rows;
}

double seconds_of(const Mechanism& mechanism, const MechanismInput& in, const MechanismValues& values) {
  double fastest = std::numeric_limits<double>::infinity(), all = 0;
  do {
    const auto begin = Clock::now();
    output_of(mechanism, in, values);
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    fastest = std::min(fastest, taken);
    all += taken;
  } while (all < repeat_seconds);
  return fastest;
}

}  // namespace

MechanismTiming::MechanismTiming(MechanismChoice choice, Index d, Index d_v, double most_seconds,
                                 const MechanismTimes* known)
    : choice_(std::move(choice)) {
  times_.id = choice_.mechanism->id;
  times_.mask = choice_.mechanism->encoder ? "full" : "causal";
  times_.most_seconds = most_seconds;
  times_.d = d, times_.d_v = d_v;
  if (!known || known->softmax.n.empty() || known->d != d || known->d_v != d_v || known->mask != times_.mask ||
      known->most_seconds != most_seconds || known->mechanism.n.empty())
    return;
  times_.softmax = known->softmax;
  line_ = 1, done_ = steps_;
}

void MechanismTiming::step(const Ctx& ctx) {
  const Mechanism& mechanism = line_ == 0 ? *find_mechanism("softmax") : *choice_.mechanism;
  const MechanismValues values = line_ == 0 ? mechanism.usual() : choice_.values;
  MechanismTimes::Line& line = line_ == 0 ? times_.softmax : times_.mechanism;
  const Index n = first_n << step_;
  MechanismInput in{some_rows(n, times_.d, 1),
                    some_rows(n, times_.d, 2),
                    some_rows(n, times_.d_v, 3),
                    static_cast<float>(1 / std::sqrt(static_cast<double>(times_.d))),
                    choice_.mechanism->encoder ? full_rule() : causal_rule(),
                    ctx.stop};
  const double seconds = seconds_of(mechanism, in, values);
  line.n.push_back(static_cast<double>(n));
  line.seconds.push_back(seconds);
  const double own = mechanism.cost({n, times_.d, times_.d_v}, values).multiply_adds;
  line.theory_n.clear(), line.theory.clear();
  for (double at = first_n; at <= farthest_n; at *= 2) {
    line.theory_n.push_back(at);
    line.theory.push_back(seconds *
                          mechanism.cost({static_cast<Index>(at), times_.d, times_.d_v}, values).multiply_adds / own);
  }
  ++step_, ++done_;
  const bool matrices = !mechanism.output;
  const bool last = seconds > times_.most_seconds || step_ == steps_ || (matrices && 2 * n > most_n_of_matrices);
  if (!last) return;
  step_ = 0;
  done_ = steps_ * ++line_;
}

}  // namespace headscope
