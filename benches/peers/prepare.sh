# Sourced by the peers' scripts: reads their arguments, finds the peer, makes a tokenizer. It gives
# URL, TRACE, RATE, COUNT, INPUT, OUTPUT, FOLDER, BIN (a folder of programs, with / behind it, or
# nothing) and TOKENIZER, and ends the script with 77 when the peer is not installed.
set -euo pipefail
URL=$1 TRACE=$2 RATE=$3 COUNT=$4 INPUT=$5 OUTPUT=$6 FOLDER=$7
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PEER_PYTHON:-python3}
BIN=
[ -z "${PEER_PYTHON:-}" ] || BIN=$(dirname "$PEER_PYTHON")/

# need PROGRAM HOW-TO-INSTALL
need() {
    if ! command -v "$BIN$1" >/dev/null; then
        echo "skipped: $1 is not installed ($2)"
        exit 77
    fi
}

# Sets TOKENIZER to a name that programs of the transformers family can load without a network.
make_tokenizer() {
    mkdir -p "$FOLDER"
    TOKENIZER=${PEER_TOKENIZER:-}
    [ -z "$TOKENIZER" ] || return 0
    "$python" "$here/tokenizer.py" "$FOLDER" "$here/../../engine/FLAGS.md"
    export HF_HOME="$FOLDER/hf" HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
    TOKENIZER=$FOLDER/tok
}
