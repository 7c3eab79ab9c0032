#!/usr/bin/env bash
# Installs the system packages that some tests use (a sound server, recorded speech, a browser), where it may:
# with apt, as root or with a sudo that asks nothing. Elsewhere it says the one command and leaves it at that: those
# tests are then skipped.  --command prints just the command.
set -u
packages=(
    pulseaudio pulseaudio-utils libportaudio2 libasound2-plugins # a virtual sound card
    espeak-ng codec2-examples                                    # a stranger's voice, ten human ones
    asterisk-core-sounds-en asterisk-core-sounds-en-wav          # prompts with their texts
    chromium tmux                                                # the page, the terminal app
)
command="sudo apt-get update && sudo apt-get install -y --no-install-recommends ${packages[*]}"
[ "${1:-}" = --command ] && { echo "$command"; exit 0; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "== no apt here: tests that need a sound server or a browser are skipped (packages: ${packages[*]})"
    exit 0
fi
missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} = 0 ] && exit 0

if [ "$(id -u)" = 0 ]; then as_root=()
elif sudo -n true 2>/dev/null; then as_root=(sudo -n)
else
    echo "== some tests will be skipped; to run them:  $command"
    exit 0
fi
echo "== installing system packages for the tests: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]+"${as_root[@]}"}" apt-get install -y --no-install-recommends "$@" </dev/null; }
"${as_root[@]+"${as_root[@]}"}" apt-get update -q </dev/null || true
install "${missing[@]}" && exit 0
# One name that this system does not have (Ubuntu's chromium is not a package) must not cost the others.
for package in "${missing[@]}"; do
    install "$package" || echo "== could not install $package: the tests that need it are skipped"
done
exit 0
