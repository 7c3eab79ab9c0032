#!/usr/bin/env bash
# Prints a Python 3.11-3.13 that can make virtual environments; otherwise one line that says what to install.
# PYTHON=/path/to/python chooses one.
set -u

usable() {
    # Run it: a version manager's shim may exist for a Python that is not there.
    "$1" -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] <= (3, 13)))' >/dev/null 2>&1
}

found=""
for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python}; do
    if usable "$candidate"; then
        found=$candidate
        "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 && { echo "$candidate"; exit 0; }
    fi
done
if [ -n "$found" ]; then
    version=$("$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "make: $found cannot make virtual environments; install its venv module (Debian, Ubuntu:" \
        "sudo apt-get install python$version-venv) and try again." >&2
elif [ -n "${PYTHON:-}" ]; then
    echo "make: PYTHON=$PYTHON is not a Python 3.11, 3.12 or 3.13; name another one." >&2
else
    echo "make: needs Python 3.11, 3.12 or 3.13 on the PATH (or PYTHON=/path/to/python); install one from" \
        "your system's packages (Debian, Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python@3.12)." >&2
fi
exit 1
