#include "core/attention/positions/transformer_xl.h"

#include "core/attention/positions/sinusoidal.h"

namespace headscope {

TransformerXlTerms transformer_xl_scores(const Tensor& q, const Tensor& k, const Tensor& u, const Tensor& v,
                                         const Tensor& w_r, double scale) {
  const Index n = q.dim(0), m = k.dim(0), d = q.dim(1), model = w_r.dim(0);
  // r_δ for δ = −(m − 1) … n − 1.
  const Tensor sinusoids = sinusoidal_positions(1 - m, n + m - 1, static_cast<int>(model));
  Tensor r = Tensor::zeros({n + m - 1, d});
  for (Index row = 0; row < r.dim(0); ++row)
    for (Index a = 0; a < model; ++a)
      for (Index c = 0; c < d; ++c) r.ref(row, c) += sinusoids.at(row, a) * w_r.at(a, c);

  TransformerXlTerms terms;
  for (Tensor* term : {&terms.content, &terms.content_position, &terms.key_bias, &terms.position_bias, &terms.sum})
    *term = Tensor::uninitialized({n, m});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < m; ++j) {
      const Index row = i - j + m - 1;
      double qk = 0, qr = 0, uk = 0, vr = 0;
      for (Index c = 0; c < d; ++c) {
        const double key = static_cast<double>(k.at(j, c)), place = static_cast<double>(r.at(row, c));
        qk += static_cast<double>(q.at(i, c)) * key;
        qr += static_cast<double>(q.at(i, c)) * place;
        uk += static_cast<double>(u.at(c)) * key;
        vr += static_cast<double>(v.at(c)) * place;
      }
      terms.content.ref(i, j) = static_cast<float>(scale * qk);
      terms.content_position.ref(i, j) = static_cast<float>(scale * qr);
      terms.key_bias.ref(i, j) = static_cast<float>(scale * uk);
      terms.position_bias.ref(i, j) = static_cast<float>(scale * vr);
      terms.sum.ref(i, j) = static_cast<float>(scale * (qk + qr + uk + vr));
    }
  return terms;
}

}  // namespace headscope
