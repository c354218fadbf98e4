"""Compile the contracts that Python needs and keep them as package data; `--check` only says what differs.

Whoever installs the package needs no compiler. Kept are ABI, creation and runtime code, and the compiler's settings.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "src/proofcast/onchain/artefacts"

CONTRACTS = {
    "Topics": "src/Topics.sol",
    "TopicsLens": "src/TopicsLens.sol",
    "SignedPublisher": "src/SignedPublisher.sol",
    "Exchanges": "src/exchanges/Exchanges.sol",
    "Gauge": "src/exchanges/Gauge.sol",
    "PubSub": "src/exchanges/PubSub.sol",
    "FlightBoard": "src/examples/FlightBoard.sol",
    "TravelInsurance": "src/examples/TravelInsurance.sol",
    "Counter": "src/testing/Zoo.sol",
    "Noop": "src/testing/Zoo.sol",
    "Burner": "src/testing/Zoo.sol",
    "ReturnBomb": "src/testing/Zoo.sol",
    "Listener": "src/testing/Pack.sol",
    "QuietListener": "src/testing/Pack.sol",
}
"""What is deployed, then what the demo and the tests subscribe with."""


def compile_contracts(out: Path) -> None:
    forge = shutil.which("forge", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")
    if forge is None:
        sys.exit("error: `forge` is missing\nhint: `make test` installs it")
    sources = sorted(set(CONTRACTS.values()))
    command = [forge, "build", *sources, "--out", out, "--cache-path", out / "cache"]
    shipped = os.environ | {"FOUNDRY_PROFILE": "shipped"}
    done = subprocess.run(command, cwd=ROOT / "contracts", env=shipped, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: forge could not compile\n{done.stdout}{done.stderr}\nhint: correct what the compiler names")


def render(out: Path, name: str, source: str) -> str:
    """One artefact, as stable text: keys sorted, a line per entry."""
    compiled = json.loads((out / Path(source).name / f"{name}.json").read_text())
    settings = compiled["metadata"]["settings"]
    artefact = {
        "name": name,
        "abi": compiled["abi"],
        "creation_code": compiled["bytecode"]["object"],
        "runtime_code": compiled["deployedBytecode"]["object"],
        "compiler": compiled["metadata"]["compiler"]["version"],
        "settings": {key: settings[key] for key in ("evmVersion", "optimizer", "viaIR")},
    }
    return json.dumps(artefact, indent=1, sort_keys=True) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        compile_contracts(out)
        rendered = {KEPT / f"{name}.json": render(out, name, source) for name, source in CONTRACTS.items()}
    changed = [path for path, text in rendered.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        names = ", ".join(f"`{path.name}`" for path in changed)
        sys.exit(f"error: {names} do not match the contracts\nhint: run `python tools/artefacts.py`" if changed else 0)
    for path in changed:
        path.write_text(rendered[path])
        print(f"wrote {path.relative_to(ROOT)}")


main()
