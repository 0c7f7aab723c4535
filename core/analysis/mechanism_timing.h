#pragma once
// How long one head takes on this machine as the text grows: softmax attention and another mechanism on the same random
// queries, keys and values, n doubling, one thread. A Sweep: one measurement a step.

#include <memory>

#include "core/analysis/sweep.h"
#include "core/attention/mechanism.h"

namespace headscope {

struct MechanismTimes {
  struct Line {
    std::vector<double> n, seconds;        ///< measured
    std::vector<double> theory_n, theory;  ///< multiply-adds, scaled to the last measurement
  };
  Line softmax, mechanism;
  double most_seconds = 0;
  std::string id;    ///< of the mechanism
  std::string mask;  ///< both ran under it
  Index d = 0, d_v = 0;
};

class MechanismTiming final : public Sweep {
 public:
  using Result = MechanismTimes;
  /// Each line ends with the first measurement that takes longer than `most_seconds`, or where memory would.
  /// `known` (may be null): times whose softmax line is taken over where it is of the same shape, mask and reach.
  MechanismTiming(MechanismChoice choice, Index d, Index d_v, double most_seconds,
                  const MechanismTimes* known = nullptr);
  void step(const Ctx& ctx) override;
  int done() const override { return done_; }
  int total() const override { return 2 * steps_; }
  bool finished() const override { return line_ == 2; }
  double share() const override { return finished() ? 1 : static_cast<double>(done_) / (2 * steps_); }
  std::shared_ptr<const MechanismTimes> result() const { return std::make_shared<MechanismTimes>(times_); }

 private:
  static constexpr int steps_ = 13;  // 16 … 65,536
  MechanismChoice choice_;
  MechanismTimes times_;
  int line_ = 0, step_ = 0, done_ = 0;
};

}  // namespace headscope
