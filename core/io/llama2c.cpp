#include "core/io/llama2c.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <span>

#include "core/base/error.h"

namespace headscope {

namespace {

constexpr std::uint64_t header_bytes = 7 * sizeof(std::int32_t);
constexpr std::int32_t newer_magic = 0x616b3432;

std::array<std::int32_t, 7> numbers_of(const InputFile& file) {
  if (file.size() < header_bytes)
    throw Error(file.path().string(), fmt::format("a llama2.c header of {} bytes", header_bytes),
                fmt::format("{} bytes", file.size()));
  std::array<std::int32_t, 7> numbers{};
  file.read(0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

/// Every tensor in the order of the file, by name and shape; "" is what nobody reads.
template <class Take>
void each_tensor(const Llama2cHeader& h, const Take& take) {
  const std::int64_t dim = h.dim, hidden = h.hidden_dim, keys = std::int64_t{h.dim} / h.heads * h.kv_heads;
  const auto layers = [&](const char* name, std::vector<std::int64_t> shape) {
    for (int layer = 0; layer < h.layers; ++layer) take(fmt::format("{}.{}", name, layer), shape);
  };
  take("token_embedding_table", {h.vocab, dim});
  layers("rms_att_weight", {dim});
  layers("wq", {dim, dim});
  layers("wk", {keys, dim});
  layers("wv", {keys, dim});
  layers("wo", {dim, dim});
  layers("rms_ffn_weight", {dim});
  layers("w1", {hidden, dim});
  layers("w2", {dim, hidden});
  layers("w3", {hidden, dim});
  take("rms_final_weight", {dim});
  take("", {2, h.context, dim / h.heads / 2});  // cosines and sines of the rotary positions
  if (!h.shares_classifier) take("wcls", {h.vocab, dim});
}

std::uint64_t bytes_told(const Llama2cHeader& header) {
  std::uint64_t total = header_bytes;
  each_tensor(header, [&](const std::string&, const std::vector<std::int64_t>& shape) {
    total += stored_bytes(shape, DType::f32).value();  // read() has bounded every factor
  });
  return total;
}

}  // namespace

Llama2cHeader Llama2cHeader::read(const InputFile& file) {
  const std::string where = file.path().string();
  const auto n = numbers_of(file);
  if (n[0] == newer_magic)
    throw Error(where, "a llama2.c file of version 0", fmt::format("version {}", n[1]),
                "export it with --version 0, or as a Hugging Face folder");
  // A negative number of words says that the classifier is apart; the lowest int has no positive twin.
  const std::int64_t words = n[5] < 0 ? -std::int64_t{n[5]} : n[5];
  struct Field {
    const char* name;
    std::int64_t value, most;
  };
  for (const Field& field :
       {Field{"dim", n[0], 1 << 17}, Field{"hidden_dim", n[1], 1 << 20}, Field{"n_layers", n[2], 1024},
        Field{"n_heads", n[3], 1024}, Field{"n_kv_heads", n[4], 1024}, Field{"vocab_size", words, 1 << 24},
        Field{"seq_len", n[6], 1 << 24}})
    if (field.value < 1 || field.value > field.most)
      throw Error(fmt::format("{}: {}", where, field.name), fmt::format("a number in 1…{}", field.most),
                  fmt::format("{}", field.value), "is it a llama2.c model of version 0?");
  if (n[0] % n[3] != 0 || n[0] / n[3] % 2 != 0 || n[3] % n[4] != 0)
    throw Error(where, "heads that divide dim evenly, and key heads that divide them",
                fmt::format("dim {}, {} heads, {} key heads", n[0], n[3], n[4]));
  return {n[0], n[1], n[2], n[3], n[4], static_cast<int>(words), n[6], n[5] > 0};
}

bool looks_like_llama2c(const InputFile& file) {
  try {
    return bytes_told(Llama2cHeader::read(file)) == file.size();
  } catch (const Error&) {
    return file.size() >= header_bytes && numbers_of(file)[0] == newer_magic;
  }
}

TensorFile open_llama2c(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  const Llama2cHeader header = Llama2cHeader::read(*file);
  if (const std::uint64_t told = bytes_told(header); told != file->size())
    throw Error(path.string(), fmt::format("{} bytes, as its header says", told), fmt::format("{}", file->size()),
                "is it a llama2.c model of version 0, and was it copied whole?");
  TensorFile::Tensors tensors;
  std::uint64_t at = header_bytes;
  each_tensor(header, [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    TensorEntry entry{name, DType::f32, shape, at, stored_bytes(shape, DType::f32).value(), file};
    at += entry.size;
    if (!name.empty()) tensors.emplace(name, std::move(entry));
  });
  return {path, "llama2.c", std::move(tensors)};
}

}  // namespace headscope
