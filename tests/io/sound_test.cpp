// Sounds from files of every kind of WAV, and at other rates.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/sound.h"
#include "tests/support/mutants.h"
#include "tests/support/paths.h"

namespace headscope::sound_test {

using namespace testing;

namespace {
using std::numbers::pi;

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}
std::string chunk(const std::string& id, const std::string& data) {
  return id + little(data.size(), 4) + data + (data.size() % 2 ? std::string(1, '\0') : "");
}
std::string format(int tag, int channels, int rate, int bits) {
  const int block = channels * ((bits + 7) / 8);
  return little(tag, 2) + little(channels, 2) + little(rate, 4) + little(rate * block, 4) + little(block, 2) +
         little(bits, 2);
}
std::string wav(const std::string& fmt, const std::string& data, const std::string& before = "") {
  const std::string body = "WAVE" + before + chunk("fmt ", fmt) + chunk("data", data);
  return "RIFF" + little(body.size(), 4) + body;
}

Sound read(const std::string& bytes) {
  return decode_sound(bytes, "a.wav");
}
std::string refused_with(const std::string& bytes) {
  try {
    (void)read(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}
}  // namespace

TEST_CASE("whole numbers and floats of all widths are read, full scale being 1") {
  const auto bits32 = [](float x) { return little(std::bit_cast<std::uint32_t>(x), 4); };
  const auto bits64 = [](double x) { return little(std::bit_cast<std::uint64_t>(x), 8); };
  const std::vector<float> expected{0.0f, 0.5f, -1.0f};
  CHECK(read(wav(format(1, 1, 8000, 8), "\x80\xC0" + std::string(1, '\0'))).samples == expected);
  CHECK(read(wav(format(1, 1, 8000, 16), little(0, 2) + little(0x4000, 2) + little(0x8000, 2))).samples == expected);
  CHECK(read(wav(format(1, 1, 8000, 24), little(0, 3) + little(0x400000, 3) + little(0x800000, 3))).samples ==
        expected);
  CHECK(read(wav(format(1, 1, 8000, 32), little(0, 4) + little(0x40000000, 4) + little(0x80000000, 4))).samples ==
        expected);
  CHECK(read(wav(format(3, 1, 8000, 32), bits32(0) + bits32(0.5f) + bits32(-1))).samples == expected);
  CHECK(read(wav(format(3, 1, 8000, 64), bits64(0) + bits64(0.5) + bits64(-1))).samples == expected);
  CHECK(read(wav(format(1, 1, 44100, 16), little(0, 2))).rate == 44100);
}

TEST_CASE("channels are averaged, other chunks passed over, the extensible format read") {
  const std::string two = little(0x4000, 2) + little(0, 2) + little(0x2000, 2) + little(0x6000, 2);
  const std::vector<float> expected{0.25f, 0.5f};
  CHECK(read(wav(format(1, 2, 8000, 16), two)).samples == expected);
  CHECK(read(wav(format(1, 2, 8000, 16), two, chunk("LIST", "odd"))).samples == expected);
  const std::string guid = little(1, 2) + std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
  const std::string extensible = format(0xFFFE, 2, 8000, 16) + little(22, 2) + little(16, 2) + little(3, 4) + guid;
  CHECK(read(wav(extensible, two)).samples == expected);
  // Written to a pipe: no length is known.
  std::string piped = wav(format(1, 2, 8000, 16), two);
  piped.replace(piped.size() - two.size() - 4, 4, little(0xFFFFFFFF, 4));
  CHECK(read(piped).samples == expected);
}

TEST_CASE("what is no such WAV is refused by chunk and numbers") {
  const std::string good = wav(format(1, 1, 8000, 16), std::string(20, '\0'));
  CHECK(says(refused_with(""), "an empty file"));
  CHECK(says(refused_with("ID3 and what does not follow in an MP3"), "ffmpeg"));
  CHECK(says(refused_with(std::string("\0\0\0\x18"
                                      "ftypM4A and what follows",
                                      26)),
             "WAV, FLAC, Ogg"));
  CHECK(says(refused_with(good.substr(0, good.size() - 6)), "20 bytes"));
  CHECK(says(refused_with(good.substr(0, good.size() - 6)), "14, then the file ends"));
  CHECK(says(refused_with(wav(format(0xFF, 1, 8000, 8), "ab")), "WAV of format 255: AAC"));
  CHECK(says(refused_with(wav(format(1, 0, 8000, 16), "ab")), "1 to 256 channels"));
  CHECK(says(refused_with(wav(format(1, 1, 10, 16), "ab")), "samples a second"));
  CHECK(says(refused_with(wav(format(1, 1, 8000, 40), std::string(5, 'a'))), "40 bits"));
  CHECK(says(refused_with(wav(format(3, 1, 8000, 16), "ab")), "floats of 32 or 64 bits"));
  CHECK(says(refused_with(wav("short", "ab")), "16 bytes or more"));
  CHECK(says(refused_with(wav(format(0xFFFE, 1, 8000, 16), "ab")), "40 bytes"));
  const auto big = [](std::uint32_t value) {
    return std::string{char(value >> 24), char(value >> 16), char(value >> 8), char(value)};
  };
  const std::string no_samples = ".snd" + big(24) + big(0) + big(3) + big(8000) + big(1);  // AU, 16 bits
  CHECK(says(refused_with(no_samples), "at least one sample"));
  CHECK(read(no_samples.substr(0, 8) + big(2) + no_samples.substr(12) + "\x40" + std::string(1, '\0')).samples ==
        std::vector<float>{0.5f});
  CHECK(says(refused_with("RIFF" + little(4, 4) + "WAVE"), "neither it nor"));
  CHECK(says(refused_with("RIFF" + little(4, 4) + "WAVE" + chunk("data", "ab")), "before the chunk"));
  CHECK(says(refused_with(wav(format(1, 1, 8000, 16), "")), "at least one sample"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(says(refused_with(wav(format(3, 1, 8000, 32), little(0, 4) + little(std::bit_cast<std::uint32_t>(nan), 4))),
             "in sample 1"));
}

TEST_CASE("thousands of files that are nearly right are read, or refused with one error") {
  const std::string whole = wav(format(1, 2, 8000, 16), std::string(400, 'x'), chunk("LIST", "abc"));
  const auto decode = [](const std::string& bytes) { (void)decode_sound(bytes, "mutant.wav"); };
  CHECK(refused("sound", whole, 2000, decode, mutated_numbers) > 50);
}

namespace {
/// The largest gap to sin(2π f t), away from both ends.
double gap_to_sine(const std::vector<float>& found, double pitch, int rate, double size = 1) {
  double gap = 0;
  for (std::size_t i = found.size() / 4; i < 3 * found.size() / 4; ++i)
    gap = std::max(
        gap, std::abs(static_cast<double>(found[i]) - size * std::sin(2 * pi * pitch * static_cast<double>(i) / rate)));
  return gap;
}
Sound sine(double pitch, int rate, int count) {
  Sound out{rate, {}};
  for (int i = 0; i < count; ++i) out.samples.push_back(static_cast<float>(std::sin(2 * pi * pitch * i / rate)));
  return out;
}
}  // namespace

TEST_CASE("at another rate a tone is the same tone, and what that rate cannot hold is gone") {
  for (const int rate : {44100, 48000, 22050, 8000, 11025}) {
    CAPTURE(rate);
    const std::vector<float> found = resampled(sine(1000, rate, rate / 2), 16000, 1 << 20);
    CHECK(found.size() == 8000);
    CHECK(gap_to_sine(found, 1000, 16000) < 1e-4);
  }
  CHECK(gap_to_sine(resampled(sine(7000, 44100, 22050), 16000, 1 << 20), 7000, 16000) < 1e-4);
  CHECK(gap_to_sine(resampled(sine(9000, 44100, 22050), 16000, 1 << 20), 9000, 16000, 0) < 1e-4);
  CHECK(resampled(sine(1000, 44100, 44100), 16000, 100).size() == 100);
  const Sound same = sine(300, 16000, 500);
  CHECK(resampled(same, 16000, 1000) == same.samples);
  CHECK(resampled(same, 16000, 20).size() == 20);
}

namespace {
/// What is left of a sound when the tone of 1,000 Hz that fits best is taken out of its middle half, and how high that
/// is.
struct Tone {
  double height = 0, rest = 0;
};
Tone tone_in(const Sound& sound) {
  const std::size_t step = static_cast<std::size_t>(sound.rate) / 1000, periods = sound.samples.size() / step / 2,
                    begin = sound.samples.size() / 4, end = begin + periods * step;
  double sine = 0, cosine = 0;
  const auto turn = [&](std::size_t i) { return 2 * pi * 1000 * static_cast<double>(i) / sound.rate; };
  for (std::size_t i = begin; i < end; ++i) {
    sine += static_cast<double>(sound.samples[i]) * std::sin(turn(i)) * 2 / static_cast<double>(end - begin);
    cosine += static_cast<double>(sound.samples[i]) * std::cos(turn(i)) * 2 / static_cast<double>(end - begin);
  }
  Tone out{std::hypot(sine, cosine), 0};
  for (std::size_t i = begin; i < end; ++i)
    out.rest = std::max(out.rest, std::abs(static_cast<double>(sound.samples[i]) - sine * std::sin(turn(i)) -
                                           cosine * std::cos(turn(i))));
  return out;
}
Sound of_file(const std::string& name, double most_seconds = 1e9) {
  return read_sound(reference("sounds/" + name), most_seconds);
}
}  // namespace

TEST_CASE("FLAC, Ogg, MP3, AIFF, AU, CAF and other codings of WAV hold the tone that was put into them") {
  const struct {
    std::string name;
    std::size_t samples;
    double rest;  // what a coding may lose
  } files[] = {{"tone.flac", 2400, 5e-5}, {"tone.aiff", 2400, 5e-5},  {"tone.au", 2400, 5e-5},
               {"tone.caf", 2400, 5e-5},  {"mu-law.wav", 2400, 0.02}, {"tone.ogg", 2400, 0.04},
               {"tone.opus", 2400, 0.04}, {"tone.mp3", 2400, 0.04},   {"adpcm.wav", 4082, 0.01}};
  for (const auto& file : files) {
    CAPTURE(file.name);
    const Sound whole = of_file(file.name), sound = of_file(file.name, 0.1);  // whole blocks of ADPCM end in silence
    CHECK(sound.rate == 24000);
    CHECK(whole.samples.size() == file.samples);
    CHECK(whole.beyond == 0);
    const Tone tone = tone_in(sound);
    CHECK(tone.height == doctest::Approx(0.375).epsilon(0.01));  // the mean of 0.5 and 0.25
    CHECK(tone.rest < file.rest);
  }
}

TEST_CASE("of a long sound no more is read than was asked for, and the rest is counted") {
  const std::string plain = wav(format(1, 1, 8000, 16), std::string(2 * 8000, '\1'));
  const Sound first = decode_sound(plain, "a.wav", {0, 0.25});
  CHECK(first.samples.size() == 2000);
  CHECK(first.beyond == 6000);
  CHECK(first.seconds() == 1);
  for (const std::string name : {"tone.flac", "tone.ogg", "tone.mp3"}) {
    CAPTURE(name);
    const Sound whole = of_file(name), part = of_file(name, 0.05);
    CHECK(part.samples == std::vector<float>(whole.samples.begin(), whole.samples.begin() + 1200));
    CHECK(part.beyond == 1200);
    CHECK(part.seconds() == whole.seconds());
    const Sound later = read_sound(reference("sounds/" + name + "#t=0.06"), 0.02);
    CHECK(later.samples.size() == 480);
    CHECK(later.before == 1440);
    CHECK(later.beyond == 480);
    CHECK(later.from() == 0.06);
    CHECK(later.seconds() == doctest::Approx(0.04));
    double gap = 0;
    for (std::size_t i = 0; i < later.samples.size(); ++i)
      gap = std::max(gap, std::abs(static_cast<double>(later.samples[i] - whole.samples[1440 + i])));
    CHECK(gap < 1e-5);
  }
}

TEST_CASE("from a later second on the samples are those that lie there, of frames that need earlier ones, too") {
  for (const std::string name : {"low.mp3", "late.ogg", "late.opus"}) {
    const Sound whole = of_file(name);
    for (const double from : {0.5, 1.7, 3.3, 3.9}) {
      CAPTURE(name);
      CAPTURE(from);
      const Sound part = read_sound(reference("sounds/" + name + "#t=" + std::to_string(from)), 0.3);
      double gap = 0;
      for (std::size_t i = 0; i < part.samples.size(); ++i)
        gap = std::max(gap, std::abs(static_cast<double>(part.samples[i] - whole.samples[part.before + i])));
      CHECK(part.samples.size() + part.before + part.beyond == whole.samples.size());
      CHECK(gap < 1e-4);
    }
  }
}

TEST_CASE("a FLAC that does not say how long it is, is read to its end") {
  std::string flac = read_file(reference("sounds/tone.flac"), 1 << 20);
  flac[21] = static_cast<char>(flac[21] & 0xF0);
  std::fill(flac.begin() + 22, flac.begin() + 26, '\0');
  const Sound whole = of_file("tone.flac"), found = read(flac), part = decode_sound(flac, "a.flac", {0.05, 0.02});
  CHECK(found.samples == whole.samples);
  CHECK(found.seconds() == 0.1);
  CHECK(part.samples == std::vector<float>(whole.samples.begin() + 1200, whole.samples.begin() + 1680));
  CHECK(part.beyond == 720);
  CHECK_THROWS_WITH_AS((void)decode_sound(flac, "a.flac", {0.2, 1}), doctest::Contains("within its 0.1 s"), Error);
}

TEST_CASE("a path may name the second from which on a sound is read") {
  CHECK(sound_place("a b/talk.mp3#t=95.5").file == "a b/talk.mp3");
  CHECK(sound_place("a b/talk.mp3#t=95.5").from == 95.5);
  CHECK(sound_place("talk#1.wav").file == "talk#1.wav");
  CHECK(path_of({"talk.mp3", 95.5}) == "talk.mp3#t=95.5");
  CHECK(path_of({"talk.mp3", 0}) == "talk.mp3");
  CHECK(may_be_sound("talk.mp3#t=1"));
  CHECK_FALSE(may_be_sound("talk#t=1.png"));
  for (const char* wrong : {"talk.mp3#t=", "talk.mp3#t=-1", "talk.mp3#t=1:30", "talk.mp3#t=nan"})
    CHECK_THROWS_WITH_AS((void)sound_place(wrong), doctest::Contains("a number of seconds"), Error);
  const std::string plain = wav(format(1, 1, 8000, 16), std::string(2 * 8000, '\1'));
  CHECK_THROWS_WITH_AS((void)decode_sound(plain, "a.wav", {1, 1}), doctest::Contains("within its 1 s"), Error);
  // A file that is really called so is meant.
  const auto folder = scratch_dir("sound-names");
  write_file_atomically(folder / "odd#t=1", plain);
  CHECK(read_sound(folder / "odd#t=1").samples.size() == 8000);
  const Sound tones = read_sound("builtin:tones#t=1.3", 0.5);
  const Sound all = read_sound(built_in_sound);
  CHECK(tones.samples == std::vector<float>(all.samples.begin() + 20'800, all.samples.begin() + 28'800));
}

TEST_CASE("a FLAC that ends too early is refused by its numbers, broken ones of every kind with one error or none") {
  const std::string flac = read_file(reference("sounds/tone.flac"), 1 << 20);
  CHECK(says(refused_with(flac.substr(0, flac.size() / 2)), "expected 2400 samples, found 0, then the file ends"));
  for (const std::string name : {"tone.flac", "tone.ogg", "tone.opus", "tone.mp3", "tone.aiff", "tone.au", "tone.caf",
                                 "mu-law.wav", "adpcm.wav"}) {
    CAPTURE(name);
    const std::string whole = read_file(reference("sounds/" + name), 1 << 20);
    const auto decode = [](const std::string& bytes) { (void)decode_sound(bytes, "mutant"); };
    (void)refused("sound", whole, 300, decode, mutated_numbers);
  }
}

TEST_CASE("the built-in sound is three tones, a chord and a glide, with pauses") {
  const Sound sound = read_sound(built_in_sound);
  CHECK(sound.rate == 16000);
  CHECK(sound.seconds() == doctest::Approx(5 * 0.65));
  for (int part = 0; part < 5; ++part) {
    CHECK(sound.samples[static_cast<std::size_t>(part * 10400 + 8000 + 1200)] == 0);
    float loudest = 0;
    for (int i = 0; i < 8000; ++i)
      loudest = std::max(loudest, std::abs(sound.samples[static_cast<std::size_t>(part * 10400 + i)]));
    CHECK(loudest > 0.4f);
  }
  CHECK(may_be_sound(built_in_sound));
  CHECK(may_be_sound("a/b.WAV"));
  CHECK(may_be_sound("a/b.Mp3"));
  CHECK_FALSE(may_be_sound("a/b.png"));
}

}  // namespace headscope::sound_test
