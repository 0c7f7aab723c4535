#pragma once
// Whether a model computes here what its definition says, as a value that can be kept: its pass on a built-in text, and
// on others, beside the plain float64 definition (core/model/plain.h), and which files that was said of. Command line
// and window both make, keep and print it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/verification.h"
#include "core/base/folder.h"
#include "core/io/model_location.h"

namespace headscope {

/// The witness of which a model's certificate tells; a capture made elsewhere may itself be wrong.
inline constexpr const char* float64_definition = "its float64 definition";

struct Certificate {
  struct Check {
    std::string text;     ///< "built-in text", a text's beginning in quotes, "its tokens" (of a reference)
    std::string witness;  ///< "its float64 definition", or the file of a reference
    int tokens = 0;
    int untried_window = 0;  ///< > 0: the model's widest window is of so many tokens, more than were read
    Verification found;
  };
  std::string model, family;
  std::filesystem::path place;  ///< of the weights
  FilesStamp files;             ///< as they were when they were read
  std::string program;          ///< version of Headscope
  std::string engine;           ///< what ran the pass: "headscope CPU f32, AVX-512"
  std::string date;             ///< "2026-11-24T19:43:28Z"
  std::vector<Check> checks;

  /// False also where nothing was checked.
  bool agrees() const;
  /// The first check that does not agree; null where all do.
  const Check* wrong() const;
  /// The largest of all checks; 0 where no witness had any, NaN where one was.
  double patterns() const;
  double logits() const;
};

/// Where a difference lies: "head 0.2, query 7, key 4", "query 5, token 3"; "" = nowhere, there is none.
std::string place_of(const Gap& gap);

struct CertificateRequest {
  std::filesystem::path model;      ///< as load_model() was given it
  std::vector<std::string> texts;   ///< besides the built-in one
  std::filesystem::path reference;  ///< a capture made elsewhere (verification.h); empty = none
  FilesStamp opened = {};           ///< the files that `loaded` was read from; empty = as they are now
};

/// Reads the weights a second time: what the engine made of them is part of what is checked. Takes as much memory as
/// the weights are stored in, and the largest matrix twice as float32, and, on one core, certificate_work()
/// multiplications for each text of that length. Throws Error as the model's reader and read_reference(), on a text
/// that cannot be run, and where the files are no longer those that the model was read from; Cancelled.
Certificate certify(const LoadedModel& loaded, const CertificateRequest& request, const Ctx& ctx);

/// Multiplications of the plain pass over the built-in text, of at most as many tokens as it has bytes.
double certificate_work(const ModelConfig& config);

/// "3.4e-6", "0.25", "0", "NaN"
std::string difference_text(double value);
/// In a few words: "checked, max |Δ| 3.4e-6" (of patterns), "differs: logits by 0.25".
std::string in_words(const Certificate& certificate);
/// A line for files: "model tiny-gpt2, checked beside its float64 definition on 2026-11-24: max |Δ| 3.4e-6 (patterns),
/// 8.1e-6 (logits)", "…, differs from …", or "model tiny-gpt2, not checked beside its float64 definition".
std::string model_note(const std::string& model, const Certificate* certificate);

/// Throws Error at `where` on anything that is no certificate, or of a newer version.
std::string to_json(const Certificate& certificate);
Certificate certificate_from_json(const std::string& json, const std::string& where);

/// Which weights a certificate is of: their whole path, the folder's where there are none.
std::filesystem::path weights_place(const ModelLocation& model);

/// Certificates of earlier, a file each. Any thread; several processes may share the folder.
class CertificateStore {
 public:
  /// `folder` empty: nothing is kept.
  explicit CertificateStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// What was found for the model in these very files by this version; nullopt where that is not known, or the file of
  /// it cannot be read.
  std::optional<Certificate> find(const std::filesystem::path& model) const;
  /// Written whole; in the place of what was known of these weights. The oldest of very many go. Throws Error.
  void keep(const Certificate& certificate) const;

 private:
  std::filesystem::path file_of(const std::filesystem::path& place) const;
  std::filesystem::path folder_;
};

/// Where command line and window keep them; empty where there is no such place.
std::filesystem::path certificates_folder();

}  // namespace headscope
