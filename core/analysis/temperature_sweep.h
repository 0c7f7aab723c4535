#pragma once
// Every head at every temperature, alone and all together: how its entropy and the model's loss follow τ.

#include <memory>
#include <vector>

#include "core/analysis/cell_sweep.h"
#include "core/edits/temperature_edit.h"

namespace headscope {

struct TemperatureSweepRequest {
  RunRequest run;             ///< its edits stay in force; a temperature among them is overruled for the head in turn
  std::vector<double> taus;   ///< each > 0
  Stack stack = Stack::only;  ///< whose heads
  bool operator==(const TemperatureSweepRequest&) const = default;
};

struct TemperatureSweep {
  struct Point {
    double entropy = 0;  ///< nats, mean over queries, of the head whose τ it is (all together: mean over heads)
    double loss = 0;     ///< mean −ln p of the text's tokens, nats
    double kl = 0;       ///< KL(before ‖ after) of the next token, nats
  };
  TemperatureSweepRequest request;
  std::shared_ptr<const Trace> before_trace;
  double loss_before = 0;
  std::vector<Point> all;                 ///< by τ; those computed so far
  std::vector<std::vector<Point>> heads;  ///< layer-major, by τ; likewise; empty where a layer does not attend
  int total = 0;
  /// Mean over the heads that are computed whole; the loss is of one head at a time.
  std::vector<Point> mean() const;
};

class TemperatureSweeper final : public CellSweep {
 public:
  using Result = TemperatureSweep;
  /// Throws Error when a τ is outside SetTemperature's bounds, or there is none.
  TemperatureSweeper(LoadedModel loaded, TemperatureSweepRequest request);
  std::shared_ptr<const TemperatureSweep> result() const;

 private:
  EditProbe prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) override;
  void measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) override;
  LoadedModel loaded_;
  TemperatureSweep known_;
};

}  // namespace headscope
