#pragma once
// Weights whose file has other names, or another order of rows, than the family's Hugging Face folder: a format's
// dialect says for each name of the family which tensor of the file it is and how it is turned.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/io/tensor_file.h"
#include "core/model/family.h"

namespace headscope {

/// What was done to a tensor on its way into the file, and is undone here.
enum class Turn {
  none,
  transposed,    ///< (out, in) where the family keeps (in, out)
  rotary_pairs,  ///< rows of each head in pairs (0, d/2), (1, d/2 + 1), … instead of both halves one after another
  rotary_pairs_of_keys,  ///< likewise, of key heads
  by_group,  ///< rows of all queries, all keys, all values, instead of each key head's queries, key and value together
  plus_one,  ///< 1 was added
  row,       ///< (n) where the family keeps (1, n)
  first_third,
  second_third,
  last_third,       ///< of the rows of one tensor that holds three of the family's
  keys_and_values,  ///< two tensors: of every head its keys transposed, (in, out), and its values
};

class RenamedWeights final : public WeightSource {
 public:
  struct Stored {
    std::string name;  ///< in the file
    Turn turn = Turn::none;
    int heads = 1;            ///< of rotary_pairs and by_group
    int kv_heads = 1;         ///< of by_group
    int expert = -1;          ///< ≥ 0: of a tensor of all experts, one after another
    std::string values = {};  ///< the second tensor of keys_and_values
    std::string factor = {};  ///< a tensor of one number, or one for each expert, that multiplies it; empty for none
  };
  RenamedWeights(std::shared_ptr<const TensorFile> file, std::map<std::string, Stored> by_name)
      : file_(std::move(file)), by_name_(std::move(by_name)) {}

  std::string where() const override { return file_->path().string(); }
  std::vector<std::string> names() const override;
  bool contains(const std::string& name) const override { return by_name_.count(name) > 0; }
  Tensor take(const std::string& name, const Shape& shape) const override;
  std::string dtype(const std::string& name) const override;

 private:
  Tensor turned(const Stored& stored, const Shape& shape) const;

  std::shared_ptr<const TensorFile> file_;
  std::map<std::string, Stored> by_name_;
  mutable std::map<std::string, Tensor> experts_;  // what was read of tensors of all experts; weights are views of it
};

/// The rows of each of `heads` heads, stored in pairs, as two halves.
Tensor halves_from_pairs(const Tensor& rows, int heads);
/// The rows of all queries, all keys and all values, as those of each key head together.
Tensor groups_from_kinds(const Tensor& rows, int heads, int kv_heads);

}  // namespace headscope
