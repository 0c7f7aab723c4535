#pragma once
// A small matrix that is changed by hand: a cell dragged up or down, or double-clicked and typed into. Cells look as
// matrices do elsewhere: signed values on the diverging colours. Thread rule: the UI thread.

#include <optional>
#include <string>

#include "app/widgets/ui.h"
#include "core/tensor/tensor.h"

namespace headscope {

class MatrixEdit {
 public:
  static constexpr Index most_rows = 12, most_columns = 8;  ///< what can be shown as cells
  static constexpr double largest = 1e6;                    ///< of a value
  static bool suits(const Tensor& matrix) { return matrix.dim(0) <= most_rows && matrix.dim(1) <= most_columns; }

  /// As wide as there is room. `name` stands before the matrix and names its cells for tests: "Q 0 1". `values` (row,
  /// column) is replaced by a changed copy when true is returned.
  bool draw(const Ui& ui, const char* name, Color role, Tensor& values);

 private:
  struct Held {
    std::string cell;
    double value = 0, y = 0;  // when the button went down
  };
  std::optional<Held> held_;
  std::string typing_, text_;  // the cell that is typed into, and what stands there
  bool begin_ = false;
};

}  // namespace headscope
