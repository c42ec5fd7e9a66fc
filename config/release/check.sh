#!/usr/bin/env bash
# Looks at what goreleaser made: for each platform both programs, which say their version, their archives, and what they are
# made of; and a manifest for krew that has the sums of the archives.
set -euo pipefail
cd "$1"
version=$(grep -oE '"version":"[^"]+"' metadata.json | cut -d '"' -f 4)

fail() { echo "$*" >&2; exit 1; }
for os in linux darwin windows; do
  for arch in amd64 arm64; do
    for program in pawl kubectl-pawl; do
      built=$(ls "${program}_${os}_${arch}"_*/"$program"*)
      grep -qaF "v$version" "$built" || fail "$built does not know that it is v$version"
      archive=$(ls "${program}_${version}_${os}_${arch}".*[pz])
      grep -qF "  $archive" checksums.txt || fail "$archive has no sum"
      made="${program}_${version}_${os}_${arch}.spdx.json"
      grep -qF "$(sha256sum <"$built" | cut -d ' ' -f 1)" "$made" || fail "$made is not about $built"
      grep -qF "  $made" checksums.txt || fail "$made has no sum"
    done
    grep -qF "/$archive" krew/pawl.yaml || fail "krew does not know $archive"
    grep -qF "$(sha256sum <"$archive" | cut -d ' ' -f 1)" krew/pawl.yaml || fail "krew has another sum of $archive"
  done
done
sha256sum --quiet -c checksums.txt
echo "v$version: both programs for 6 platforms, with their archives, sums and SBOMs, and the manifest of krew"
