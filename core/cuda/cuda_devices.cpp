#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/cuda/cuda_backend.h"

namespace headscope {

namespace {
constexpr int least_major = 8, least_minor = 0;  // whose tensor cores know TF32

std::string version_text(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}
}  // namespace

std::vector<CudaDevice> cuda_devices(bool with_free) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  int before = 0;
  cudaGetDevice(&before);
  std::vector<CudaDevice> out;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    CudaDevice& device = out.emplace_back();
    device.index = index;
    device.name = properties.name;
    device.memory = properties.totalGlobalMem;
    device.major = properties.major;
    device.minor = properties.minor;
    if (std::pair(properties.major, properties.minor) < std::pair(least_major, least_minor)) {
      device.unusable = fmt::format("compute capability {}.{}, and {}.{} is the least", properties.major,
                                    properties.minor, least_major, least_minor);
      continue;
    }
    if (!with_free) continue;
    std::size_t free = 0, total = 0;
    if (const cudaError_t status =
            cudaSetDevice(index) != cudaSuccess ? cudaGetLastError() : cudaMemGetInfo(&free, &total);
        status != cudaSuccess) {
      device.unusable = cudaGetErrorString(status);
      cudaGetLastError();
    }
    device.free = free;
  }
  if (with_free) cudaSetDevice(before);  // which opens that one as well
  return out;
}

std::string why_no_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return {};
  cudaGetLastError();
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (status == cudaSuccess || status == cudaErrorNoDevice) return "no NVIDIA card was found";
  if (driver == 0) return "no NVIDIA driver is installed";
  if (driver / 1000 < runtime / 1000)
    return fmt::format("the driver knows CUDA {}, and this program needs {}: update the driver", version_text(driver),
                       version_text(runtime));
  return cudaGetErrorString(status);
}

std::string cuda_versions() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return fmt::format("CUDA {}, driver {}", version_text(runtime), driver ? version_text(driver) : "none");
}

}  // namespace headscope
