"""What is shipped: the right files, nothing generic on the import path, and a command that runs."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([*command, str(ROOT), str(ROOT / "clients" / "python")], check=True, timeout=280)
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "package", "data"),
    [
        ("cardkeeper", "cardkeeper", {"drift/patterns.toml", "v1/rules.binpb", "py.typed", "v1/invalidation_pb2.pyi"}),
        ("cardkeeper_client", "cardkeeper_client", {"py.typed", "v1/invalidation_pb2.pyi", "v1/verdict_pb2.py"}),
    ],
)
def test_a_wheel_holds_one_package_and_all_of_it(
    wheels: dict[str, Path], name: str, package: str, data: set[str]
) -> None:
    names = zipfile.ZipFile(wheels[name]).namelist()
    assert {path.partition("/")[0] for path in names if ".dist-info/" not in path} == {package}
    assert {f"{package}/{path}" for path in data} <= set(names)
    source = ROOT / ("service" if name == "cardkeeper" else "clients/python/src") / package
    modules = {f"{package}/{path.relative_to(source)}" for path in source.rglob("*.py")}
    assert modules <= set(names)


@pytest.mark.timeout(300)
def test_the_installed_command_runs_without_the_repository(wheels: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    subprocess.run([*command, *map(str, wheels.values())], check=True, timeout=120)
    environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin"}
    where = subprocess.run(
        [sys.executable, "-c", "import cardkeeper, cardkeeper_client; print(cardkeeper.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(target))
    judged = subprocess.run(
        [sys.executable, "-m", "cardkeeper", "judge", str(ROOT / "tests" / "data" / "outcomes.jsonl")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (judged.returncode, "recall 1.000" in judged.stdout) == (0, True), judged.stderr


def test_the_client_needs_grpcio_and_protobuf_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())["project"]
    assert {re.split(r"[<>=~! ]", item)[0] for item in project["dependencies"]} == {"grpcio", "protobuf"}
    code = (
        "import sys, cardkeeper_client; "
        "print([name for name in sys.modules if name.startswith(('google.rpc', 'google.api', 'buf', 'cardkeeper.'))])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_versions_are_said_once() -> None:
    import cardkeeper
    import cardkeeper_client

    for module, file in (
        (cardkeeper, ROOT / "pyproject.toml"),
        (cardkeeper_client, ROOT / "clients/python/pyproject.toml"),
    ):
        assert module.__version__ == tomllib.loads(file.read_text())["project"]["version"]


def test_every_command_of_the_readme_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z]+)", readme, re.MULTILINE)) <= targets
    helped = subprocess.run([sys.executable, "-m", "cardkeeper", "--help"], capture_output=True, text=True, check=True)
    for command in set(re.findall(r"\.venv/bin/cardkeeper ([a-z]+)", readme)):
        assert re.search(rf"^\s+{command}\s", helped.stdout, re.MULTILINE), command
    for path in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / path).exists(), path
