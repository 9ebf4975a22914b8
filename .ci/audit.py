"""Compare the tested versions with known vulnerabilities, and say how many could be compared.

pip-audit calls it a success, without vulnerabilities, when its database knows no package at all, as behind a mirror.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

COMMAND = (
    *(sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"),
    *("--no-deps", "--disable-pip", "--requirement", "constraints.txt"),
)


def main(arguments: Sequence[str]) -> int:
    """Audit.

    Returns:
        1 if there are known vulnerabilities, else 0, also without a connection.
    """
    done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:  # it says itself what went wrong
        packages = []
    compared = [package for package in packages if "vulns" in package]
    if not compared:
        print("No package was compared: the database of vulnerabilities cannot be reached from here.")
        return 0
    found = [(package, hole) for package in compared for hole in package["vulns"]]
    print(f"{len(compared)} of {len(packages)} packages were compared, {len(found)} known vulnerabilities found.")
    for package, hole in found:
        print(
            f"  {package['name']} {package['version']}: {hole['id']}, mended in {hole['fix_versions'] or 'no version'}"
        )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
