#pragma once
// The tap that keeps what a CaptureSpec asks for. Tensors are shared, so recording costs nothing but the memory they
// hold. Put it last in a TapChain, so that it records what the pass went on with. One pass at a time; not thread-safe.

#include <map>

#include "core/trace/capture.h"
#include "core/trace/tap.h"

namespace headscope {

class Recorder final : public Tap {
 public:
  explicit Recorder(CaptureSpec spec);

  /// The sites of the spec, in its layers. Not `pattern`: a spec that names it gets dense maps, which hold it already.
  bool wants(Site site) const override;
  /// A strided view is a part of a wider tensor (q, k and v of one fused product), and keeping it would keep the whole.
  /// It is kept as it is when q, k and v are all recorded, since they fill that tensor together; else it is packed into
  /// storage of its own and the rest can go.
  Tensor at(Site site, const Tensor& value) override;

  /// What was recorded; the recorder is empty afterwards.
  std::map<Site, Tensor> take();

 private:
  CaptureSpec spec_;
  bool keep_views_ = false;
  std::map<Site, Tensor> sites_;
};

}  // namespace headscope
