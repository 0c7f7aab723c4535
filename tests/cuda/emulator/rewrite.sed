# kernel<<<blocks, threads, bytes, stream>>>(arguments);
s/([A-Za-z_]+(<[^<>;(]*(<[^<>]*>)?[^<>;(]*>)?)[[:space:]]*<<<([^;]*)>>>\(([^;]*)\);/emulator::launch(emulator::Grid(\4), [\&] { \1(\5); });/g
# extern __shared__ float room[];
s/extern __shared__ (__align__\([0-9]+\) )?([a-z]+) ([a-z]+)\[\];/\2* const \3 = reinterpret_cast<\2*>(emulator::shared_memory());/g
