#pragma once
// One NVIDIA card as everything in this folder sees it: a stream on which all work stands in order, a second one that
// carries numbers home meanwhile, memory that is used again, cuBLASLt. Private to core/cuda.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/cuda/cuda_backend.h"
#include "core/tensor/buffer_pool.h"
#include "core/tensor/remote.h"
#include "core/tensor/tensor.h"

namespace headscope::cuda {

/// Throws CardError naming what was tried and what the driver says.
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);

class Device {
 public:
  /// The card of that number; the same object as long as anybody uses it.
  static std::shared_ptr<Device> open(int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void choose() const;  ///< this card for this thread; every entry from outside begins with it
  void synchronize();   ///< waits until all that is queued is done
  /// To the card; `from` may go when this returns, unless it is memory that the card reads by itself (mirror()).
  void send(void* to, const void* from, std::size_t bytes);

  cudaStream_t stream() const { return stream_; }
  cudaStream_t homeward() const { return homeward_; }
  const cudaDeviceProp& properties() const { return properties_; }

  /// Memory of the card, not cleared. Handed back, it may be written to by what is queued later: all stands in one
  /// stream, and what the second one still reads waits in ~Storage. Throws CardError with what is free and what was
  /// wanted.
  std::shared_ptr<float> take(std::size_t bytes);
  /// A place here that the card copies to without the processor's help.
  Tensor mirror(Shape shape);
  std::shared_ptr<float> pinned(std::size_t bytes);
  /// Memory of the card with these bytes.
  std::shared_ptr<float> upload(const void* from, std::size_t bytes);

  /// c (rows, out) = a (rows, in) · w (in, out) + bias; a begins at a multiple of `aligned` bytes and has rows
  /// `a_stride` apart, c is contiguous. `kind` of a and w; c is float32. bias may be null.
  static constexpr std::uint32_t aligned = 16;
  void multiply(cudaDataType_t kind, cublasComputeType_t compute, const void* a, Index a_stride, Index rows, Index in,
                const void* w, Index out, const float* bias, float* c);

 private:
  explicit Device(int index);
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    Plan() = default;
    Plan(Plan&& other) noexcept
        : product(std::exchange(other.product, nullptr)),
          a(std::exchange(other.a, nullptr)),
          b(std::exchange(other.b, nullptr)),
          c(std::exchange(other.c, nullptr)),
          algorithm(other.algorithm) {}
    ~Plan();
  };
  using PlanKey = std::tuple<int, int, Index, Index, Index, Index, bool>;
  const Plan& plan(const PlanKey& key, cudaDataType_t kind, cublasComputeType_t compute, Index a_stride, Index rows,
                   Index in, Index out, bool bias);

  int index_;
  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr, homeward_ = nullptr;
  cublasLtHandle_t lt_ = nullptr;
  void* workspace_ = nullptr;
  std::shared_ptr<BufferPool> memory_, pinned_;
  std::mutex plans_lock_;
  std::map<PlanKey, Plan> plans_;
};

/// A tensor's numbers on a card.
class Storage final : public Remote {
 public:
  /// Room for what a kernel will write.
  Storage(std::shared_ptr<Device> device, Index size);
  /// What `here` (contiguous, f32) has, copied over.
  Storage(std::shared_ptr<Device> device, Tensor here);
  ~Storage() override;
  const std::shared_ptr<Device>& device() const { return device_; }
  /// Where they are over there; sends first what was written here.
  float* on_card();
  /// The card writes there again.
  void written_on_card() {
    assert(!sent_);  // nobody sends what will be written again
    left_behind();
  }
  void send() override;

 private:
  Storage(std::shared_ptr<Device> device, Tensor mirror, bool arrived);
  void fetch() override;
  void copy_home(cudaStream_t stream);
  std::shared_ptr<Device> device_;
  Tensor mirror_;
  std::shared_ptr<float> memory_;
  cudaEvent_t sent_ = nullptr;
};

}  // namespace headscope::cuda
