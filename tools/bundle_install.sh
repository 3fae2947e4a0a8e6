#!/bin/sh
# Installs sharelens from this folder into an environment of its own, without a network: ./install.sh FOLDER
# PYTHON names another interpreter than python3; it must be of the version that README says.
set -eu

target=${1:?'give the folder to install into: ./install.sh FOLDER'}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)

if [ -e "$target" ]; then
  echo "install.sh: $target exists; give a folder that does not" >&2
  exit 1
fi
platform=$(cat "$here/PLATFORM")
actual=$("$python" -c 'import platform, sys; print("%d.%d" % sys.version_info[:2], platform.system(), platform.machine())')
if [ "$platform" != "$actual" ]; then
  echo "install.sh: this bundle is for Python $platform, $python is $actual; name another one: PYTHON=python3.N ./install.sh $target" >&2
  exit 1
fi
(cd "$here" && sha256sum --check --quiet --strict SHA256SUMS) \
  || { echo "install.sh: files of the bundle are damaged; unpack it again, or copy it again" >&2; exit 1; }

trap 'rm -rf "$target"' EXIT
"$python" -m venv --without-pip "$target"
"$target/bin/python" "$(echo "$here"/wheels/pip-*.whl)/pip" --isolated --disable-pip-version-check install --quiet \
  --no-index --no-cache-dir --find-links "$here/wheels" --require-hashes --requirement "$here/requirements.txt"
mkdir -p -m 0700 "$target/share/sharelens"
cp -R "$here/jars" "$target/share/sharelens/jars"
trap - EXIT
echo "ready: $target/bin/sharelens --help"
