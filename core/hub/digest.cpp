#include "core/hub/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace headscope {

struct Digest::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

namespace {
void must(bool done, const char* what) {
  if (!done) throw Error("OpenSSL", what, "a failure", "is its FIPS mode without this algorithm?");
}
}  // namespace

Digest::Digest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

Digest Digest::sha256() {
  auto state = std::make_unique<State>();
  if (!state->context) throw std::bad_alloc();
  must(EVP_DigestInit_ex(state->context, EVP_sha256(), nullptr) == 1, "SHA-256");
  return Digest(std::move(state));
}

Digest Digest::git_blob(std::uint64_t size) {
  auto state = std::make_unique<State>();
  if (!state->context) throw std::bad_alloc();
  must(EVP_DigestInit_ex(state->context, EVP_sha1(), nullptr) == 1, "SHA-1");
  Digest digest(std::move(state));
  const std::string head = fmt::format("blob {}", size);
  digest.add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // with its zero
  return digest;
}

void Digest::add(std::span<const std::byte> bytes) {
  must(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "a digest");
}

std::string Digest::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  must(EVP_DigestFinal_ex(state_->context, bytes.data(), &size) == 1, "a digest");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

DigestKind digest_kind(const std::string& tag) {
  const bool hexadecimal = std::ranges::all_of(
      tag, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); });
  if (!hexadecimal) return DigestKind::none;
  return tag.size() == 64 ? DigestKind::sha256 : tag.size() == 40 ? DigestKind::git_blob : DigestKind::none;
}

std::string digest_of_file(const std::filesystem::path& file, DigestKind kind, const std::stop_token& stop) {
  const auto input = InputFile::open(file);
  Digest digest = kind == DigestKind::sha256 ? Digest::sha256() : Digest::git_blob(input->size());
  std::vector<std::byte> room(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < input->size(); at += room.size()) {
    if (stop.stop_requested()) throw Cancelled();
    const std::span part =
        std::span(room).first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), input->size() - at)));
    input->read(at, part);
    digest.add(part);
  }
  return digest.hex();
}

}  // namespace headscope
