#pragma once
// What attention on the card tells of its rows, and how it comes home: the statistics of a pass share blocks of memory
// that are cleared at once and sent at once. Private to core/cuda.

#include <memory>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/cuda/attention_kernels.h"
#include "core/cuda/card_tensors.h"
#include "core/trace/attention_map.h"

namespace headscope::cuda {

class AttentionStatistics {
 public:
  explicit AttentionStatistics(CardTensors card) : card_(std::move(card)) {}

  /// One text's in one layer. Of one query its weights tell the sums by column and distance, and the pooled picture.
  struct Of {
    Index heads = 0, n_query = 0, n_key = 0, bin = 1;
    bool links = false;
    Tensor numbers;                              ///< all of them, over there
    Tensor weights;                              ///< (head, 1, n_key), only of one query
    StatsRoom room;                              ///< over there
    std::vector<std::shared_ptr<HeadStats>> to;  ///< by head
  };
  /// Room for them, cleared.
  Of& add(Index heads, Index n_query, Index n_key, bool links);
  /// They are queued: the block that they are in may be sent.
  void queued();
  /// Fills what was added since the last call, whose numbers have come or are on their way.
  void finish(ThreadPool& pool);
  void forget();

 private:
  /// Cleared numbers, which begin where a line of the card's cache does.
  Tensor take(Index numbers);
  void send();

  const CardTensors card_;
  Tensor block_;
  Index used_ = 0;
  std::vector<std::unique_ptr<Of>> pending_;
};

}  // namespace headscope::cuda
