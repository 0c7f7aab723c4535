#pragma once
// What the command line says about a trace: next tokens, loss, the table of heads with their classes, as text for
// people and as JSON for scripts. Pure functions of a trace.

#include <functional>
#include <string>
#include <vector>

#include "app/cli/report.h"
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
/// The headline; for scripts the model and the tokens.
void describe(Report& report, const Trace& trace);
/// The k most probable next tokens as the table "next"; without rows when the trace has no logits. `tokenizer` may be
/// null.
void add_next_tokens(Report& report, const Trace& trace, const Tokenizer* tokenizer, int k);
/// "loss 1.234 nats per token, perplexity 3.43", or "" without losses.
std::string loss_text(const Trace& trace);
/// The table "heads": people see the given columns and, last, every class with score and chance, never a bare label.
/// `with_chance`: scripts get what chance gives beside each value.
void add_heads(Report& report, const std::vector<HeadReport>& heads, const Trace& trace,
               const std::vector<HeadColumn>& columns, bool with_chance);
/// The columns of a table of heads, each row of which begins with the head's name, its layer and its number.
std::vector<Column> by_head(std::vector<Column> rest);

Cell tokens_json(const std::vector<Token>& tokens);
Cell model_json(const ModelInfo& model);

}  // namespace headscope::cli
