"""A Java of our own trusts whom the machine trusts."""

import ssl
import subprocess
from pathlib import Path

import pytest

from sharelens.spark import trust
from sharelens.spark.java import find_java

BUNDLE = ssl.get_default_verify_paths().cafile


@pytest.mark.slow
@pytest.mark.skipif(BUNDLE is None, reason="no certificate bundle here: apt-get install ca-certificates")
def test_java_reads_the_store_made_from_the_systems_bundle(tmp_path: Path) -> None:
    assert BUNDLE is not None
    store = tmp_path / "trust.p12"
    assert trust.write_store(Path(BUNDLE), store)
    keytool = find_java().home / "bin" / "keytool"
    command = [str(keytool), "-list", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", trust.PASSWORD]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert listed.count("trustedCertEntry") == Path(BUNDLE).read_bytes().count(b"-----BEGIN CERTIFICATE-----")


def test_a_bundle_without_certificates_makes_no_store(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    assert not trust.write_store(bundle, tmp_path / "trust.p12")
    assert not (tmp_path / "trust.p12").exists()
