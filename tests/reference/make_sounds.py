"""One short tone in every kind of file that is read by libsndfile, and not by our own reader of plain WAV files.

    python tests/reference/make_sounds.py      # needs numpy and soundfile (libsndfile 1.1 or later, for MP3)

Writes tests/reference/sounds: 0.1 s of 1,000 Hz at 24,000 samples a second, on the left channel 0.5 high and on the right
0.25, so that their mean is 0.375 · sin(2π · 1000 t). And 4 s of a tone that rises, in codings whose frames need the
ones before them: low.mp3 at 16,000 samples a second and the fewest bits, late.ogg and late.opus.
"""

import pathlib

import numpy as np
import soundfile

HERE = pathlib.Path(__file__).parent / "sounds"
RATE = 24000
KINDS = {"tone.flac": ("FLAC", "PCM_16"), "tone.ogg": ("OGG", "VORBIS"), "tone.opus": ("OGG", "OPUS"),
         "tone.mp3": ("MP3", "MPEG_LAYER_III"), "tone.aiff": ("AIFF", "PCM_16"), "tone.au": ("AU", "PCM_16"),
         "tone.caf": ("CAF", "PCM_16"), "mu-law.wav": ("WAV", "ULAW"), "adpcm.wav": ("WAV", "IMA_ADPCM")}

HERE.mkdir(exist_ok=True)
wave = np.sin(2 * np.pi * 1000 * np.arange(RATE // 10) / RATE)
for name, (kind, coding) in KINDS.items():
    soundfile.write(HERE / name, np.stack([0.5 * wave, 0.25 * wave], axis=1), RATE, format=kind, subtype=coding)

time = np.arange(4 * 16000) / 16000
rising = (0.3 + 0.1 * time / 4) * np.sin(2 * np.pi * (300 + 100 * time) * time)
for name, kind, coding in [("low.mp3", "MP3", "MPEG_LAYER_III"), ("late.ogg", "OGG", "VORBIS"), ("late.opus", "OGG", "OPUS")]:
    soundfile.write(HERE / name, rising, 16000, format=kind, subtype=coding)
