#!/usr/bin/env bash
# Makes the pictures of README.md again: headscope-cli draws eight, the window all others (without a display,
# in Xvfb). About five minutes: one of them is a model in training.
#   assets/readme/make.sh              all
#   assets/readme/make.sh NAME …       only those, as in   assets/readme/make.sh explore detector
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
export LC_ALL=C.UTF-8 # in English on every desk
./run --build

wanted=("$@") made=()
is_wanted() { # NAME
  [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]
}
picture() { # NAME COMMAND…: runs it with the file's name put in place of PNG, and sees that there is a new one
  local name=$1 file="assets/readme/$1.png" && shift
  is_wanted "$name" || return 0
  echo "$name" && rm -f "$file"
  "${@/#PNG/$file}"
  [ -s "$file" ] || { echo "make.sh: no picture of $name was made; is there a window, and a display or xvfb-run?" >&2 && exit 1; }
  made+=("$name")
}
cli() { # NAME ARGS…
  local name=$1 && shift
  picture "$name" ./run --cli render --no-recipe --dpi 144 -o PNG "$@"
}
head_of() { # NAME MODEL ARGS…: one head, small enough for five in a line
  local name=$1 model=$2 && shift 2
  picture "$name" ./run --cli render --no-recipe -m "$model" --width 360 -o PNG "$@"
}
window() { # NAME ARGS…
  local name=$1 && shift
  picture "$name" ./run --screenshot PNG --size "$size" "$@"
}

cli heads -m induction -f assets/examples/induction.txt
cli three-heads -m induction -f assets/examples/induction.txt --head 0.0,0.2,1.0
cli encoder-heads -m tiny-bert -t "In the village of Zoziford there lived Rosa. Every morning, she sold signs, and Ben counted milk."

# One of each kind of model.
head_of decoder-head tiny-gpt2 -t "There lived Anna and Ben. Every morning, she sold" --head 0.2
head_of encoder-head tiny-bert -t "There lived Rosa. She sold signs, and Ben" --head 2.1
head_of cross-head tiny-translate --source "the kind mice saw this white king" -t "kar lipar dular so orbo belo" --part cross --head 1.2
head_of vision-head tiny-vit --image assets/examples/tiny-vit.png --head 0.1 --patches --smooth
head_of state-head tiny-mamba -t "There lived Anna and Ben. Every day, Ben met Anna" --head 6.6

# One of each workspace, and of edits: there is much to see.
size=1600x1000
window explore --first-steps
window generate models/tiny-gpt2 --workspace generate --generate-tokens 16
window compare models/tiny-gpt2 --workspace compare --with-model tiny-llama
window analyse models/tiny-gpt2 --workspace analyse --page lens
if is_wanted corpus; then ./run --cli corpus -m tiny-gpt2 --stories 400 -o build/corpus.json; fi
window corpus models/tiny-gpt2 --workspace corpus --corpus build/corpus.json
window mechanisms models/tiny-gpt2 --workspace mechanisms --page linear
window positions --workspace positions models/tiny-llama \
  --text "Long ago, Rosa lived in the village of Zoziford, not far from her neighbour Ben."
window train models/tiny-gpt2 --workspace train --recipe induction-2l --train-steps 1200
window edit --session assets/examples/what-if.json

# Those that stand two in a line.
size=1280x800
window lesson --lesson 03-query-key-value:3
window present --lesson 08-rope:2 --present
window words --session assets/examples/words.json
window masked --session assets/examples/masked.json
window translate --session assets/examples/translate.json
window picture --session assets/examples/picture.json
window state models/tiny-mamba --workspace analyse --page state
window beams models/tiny-translate --workspace generate --page beams \
  --source "the kind mice saw this white king behind these old wolves" --text "kar lipar"
window ablate models/tiny-gpt2 --workspace analyse --page ablate
window patch models/tiny-gpt2 --workspace analyse --page patch
window temperature models/tiny-gpt2 --workspace analyse --page temperature
window circuit models/tiny-gpt2 --workspace analyse --page circuit
window attribution models/tiny-gpt2 --workspace analyse --page attribution
window detector models/tiny-gpt2 --workspace analyse --page detector --rule 'token[k-1] == token[q] and k < q'

for name in "${wanted[@]}"; do
  [[ " ${made[*]} " == *" $name "* ]] || { echo "make.sh: there is no picture \"$name\"" >&2 && exit 2; }
done
