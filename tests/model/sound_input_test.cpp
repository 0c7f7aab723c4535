// How much of a sound's file a model of speech has to read.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/model/sound_input.h"

namespace headscope::sound_input_test {

TEST_CASE("so much of a long sound as is read for it is all that is heard") {
  const SoundConfig config;
  const double seconds = seconds_to_hear(config);
  Sound whole{44'100, {}, 0};
  for (int i = 0; i < 40 * 44'100; ++i) {
    const double t = i / 44'100.0;
    whole.samples.push_back(static_cast<float>(0.4 * std::sin(900 * t * t) + 0.2 * std::sin(5000 * t)));
  }
  Sound part{whole.rate, {whole.samples.begin(), whole.samples.begin() + static_cast<int>(seconds * 44'100)}, 0};
  part.beyond = whole.samples.size() - part.samples.size();
  const SoundFrames all = heard(whole, config), some = heard(part, config);
  CHECK(all.seconds == 40);
  CHECK(some.seconds == 40);
  CHECK(std::ranges::equal(all.log_mel.values(), some.log_mel.values()));
}

}  // namespace headscope::sound_input_test
