// Products by cuBLAS, float32 throughout (no TF32: maps are compared to 1e-5).

#include "core/cuda/cuda_backend.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <mutex>
#include <vector>

#include "core/base/error.h"

namespace headscope {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error("CUDA", std::string(what) + " to succeed", cudaGetErrorString(status));
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error("cuBLAS", std::string(what) + " to succeed", cublasGetStatusString(status));
}

/// Floats on the card, freed with it; grows, never shrinks.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  float* reserve(Index size) {
    if (size > size_) {
      cudaFree(data_);
      data_ = nullptr;
      size_ = 0;
      check(cudaMalloc(reinterpret_cast<void**>(&data_), static_cast<std::size_t>(size) * sizeof(float)),
            fmt::format("allocating {} floats on the card", size).c_str());
      size_ = size;
    }
    return data_;
  }
  const float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  Index size_ = 0;
};

/// One card's handle and the buffers that products pass through, one product at a time.
struct Device {
  Device() { check(cublasCreate(&handle), "cublasCreate"); }
  ~Device() { cublasDestroy(handle); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  cublasHandle_t handle = nullptr;
  std::mutex lock;
  DeviceBuffer in, out;
};

class CudaMatrix final : public PackedMatrix {
 public:
  CudaMatrix(std::span<const Tensor> parts, std::shared_ptr<Device> device)
      : device_(std::move(device)), in_(parts[0].dim(0)) {
    for (const Tensor& part : parts) out_ += part.dim(1);
    Tensor whole = Tensor::uninitialized({in_, out_});
    Index column = 0;
    for (const Tensor& each : parts) {
      const Tensor part = each.floats();
      for (Index i = 0; i < in_; ++i)
        for (Index j = 0; j < part.dim(1); ++j) whole.ref(i, column + j) = part.at(i, j);
      column += part.dim(1);
    }
    check(cudaMemcpy(weights_.reserve(in_ * out_), whole.data(), whole.bytes(), cudaMemcpyHostToDevice),
          "copying weights to the card");
  }

  Index in() const override { return in_; }
  Index out() const override { return out_; }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool&) const override {
    const Tensor rows = x.packed();
    const Index n = rows.dim(0);
    Tensor result = Tensor::uninitialized({n, out_});
    {
      const std::lock_guard lock(device_->lock);
      float* const a = device_->in.reserve(n * in_);
      float* const c = device_->out.reserve(n * out_);
      check(cudaMemcpy(a, rows.data(), rows.bytes(), cudaMemcpyHostToDevice), "copying activations to the card");
      // cuBLAS is column-major: (x W) row-major is (Wᵀ xᵀ) column-major.
      const float one = 1, zero = 0;
      check(cublasSgemm(device_->handle, CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(out_), static_cast<int>(n),
                        static_cast<int>(in_), &one, weights_.data(), static_cast<int>(out_), a, static_cast<int>(in_),
                        &zero, c, static_cast<int>(out_)),
            "cublasSgemm");
      check(cudaMemcpy(result.mutable_data(), c, result.bytes(), cudaMemcpyDeviceToHost),
            "copying a product from the card");
    }
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < out_; ++j) out.ref(i, j) = result.at(i, j) + (bias ? bias[j] : 0.0f);
  }

 private:
  std::shared_ptr<Device> device_;
  DeviceBuffer weights_;  // (in, out) row-major
  Index in_, out_ = 0;
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int threads) : Backend(threads), device_(std::make_shared<Device>()) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "reading the card's properties");
    card_ = properties.name;
  }
  std::string name() const override { return "CUDA f32, " + card_; }

 protected:
  std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> weights) override {
    return std::make_shared<CudaMatrix>(weights, device_);
  }

 private:
  std::shared_ptr<Device> device_;
  std::string card_;
};

}  // namespace

std::string why_no_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return count > 0 ? "" : "no NVIDIA card was found";
}

std::unique_ptr<Backend> make_cuda_backend(int threads) {
  if (const std::string why = why_no_cuda(); !why.empty())
    throw Error("device cuda", "an NVIDIA card and its driver", why);
  return std::make_unique<CudaBackend>(threads);
}

}  // namespace headscope
