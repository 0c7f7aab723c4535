#pragma once
// What the command line says about a trace: next tokens, loss, the table of heads with their classes, as text for
// people and as JSON for scripts. Pure functions of a trace.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/render/head_report.h"
#include "core/metrics/head_class.h"
#include "core/metrics/metric.h"
#include "core/text/tokenizer.h"
#include "core/trace/trace.h"

namespace headscope::cli {

/// A number per head: a metric, or a score that needs to know how the text was made.
struct HeadColumn {
  std::string id;
  std::function<double(const MetricInput&)> value, chance;
};
HeadColumn column(const Metric& metric);
/// By ids; "all" gives every one. Throws Error listing the known ids.
std::vector<HeadColumn> columns_by_id(const std::vector<std::string>& ids);
/// The metrics that fit beside each other in a terminal.
std::vector<HeadColumn> usual_columns();

/// How a token is written; "#17" without a tokenizer that knows it.
std::string label_of(const Tokenizer* tokenizer, std::int32_t id);
/// "gpt2-byte-d96: gpt2, 4 layers × 6 heads, 57 tokens, 12.3 ms; 24 maps dense (0.3 MB), logits 58.6 kB"
std::string headline(const Trace& trace);
/// The k most probable next tokens as a table; empty when the trace has no logits. `label` names a token id.
std::string next_tokens_text(const Trace& trace, const Tokenizer* tokenizer, int k);
/// "loss 1.234 nats per token, perplexity 3.43", or "" without losses.
std::string loss_text(const Trace& trace);
/// A table with the given columns and, last, every class with score and chance: never a bare label.
std::string heads_text(const std::vector<HeadReport>& heads, const Trace& trace,
                       const std::vector<HeadColumn>& columns);
/// The columns as CSV: layer, head, one column each (and ID_chance when asked). Numbers round-trip exactly; NaN is
/// empty.
std::string heads_csv(const std::vector<HeadReport>& heads, const Trace& trace, const std::vector<HeadColumn>& columns,
                      bool with_chance);

nlohmann::ordered_json tokens_json(const Trace& trace);
nlohmann::ordered_json next_tokens_json(const Trace& trace, const Tokenizer* tokenizer, int k);
nlohmann::ordered_json heads_json(const std::vector<HeadReport>& heads, const Trace& trace,
                                  const std::vector<HeadColumn>& columns);
nlohmann::ordered_json model_json(const ModelInfo& model);
/// Indented; bytes that are not UTF-8 (of a folder's name) become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);
/// JSON knows no NaN: null says that the text offers no evidence.
nlohmann::ordered_json number_json(double value);

}  // namespace headscope::cli
