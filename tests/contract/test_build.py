"""`sam build` needs neither Docker nor Lambda's Python version, and its result is fit for Lambda."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.build import Built, runtime_version
from tests.support.sam import sam_build
from tests.support.template import FUNCTION, ROOT, deployed

pytest_plugins = ["tests.support.packages"]

TOOLS = ("sh", "make", "find", "mkdir", "rm", "cp")
AARCH64 = 183  # the ELF header's e_machine
UNCHECKED_HASH = 1  # the flags of bytecode that is loaded without a look at its source
PACKAGES = [path.parent for path in ROOT.glob("layers/*/*/pack.py")]
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


def environment(folder: Path) -> dict[str, str]:
    """Return a PATH with what the build needs and this very Python only."""
    folder.mkdir()
    here = Path(sys.executable).parent
    (folder / "uv").symlink_to(here / "uv")
    (folder / "python3").symlink_to(sys.executable)
    for name in TOOLS:
        tool = shutil.which(name)
        assert tool, f"the build needs {name}"
        (folder / name).symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("SSL_", "UV_", "XDG_", "HOME"))}
    return kept | {"PATH": str(folder), "UV_PYTHON_INSTALL_DIR": str(folder / "none"), "SAM_CLI_TELEMETRY": "0"}


def test_each_function_is_its_folder(built_for_lambda: Path) -> None:
    for name in deployed().of(FUNCTION):
        assert [path.name for path in (built_for_lambda / name).iterdir()] == ["handler.py"]


@pytest.mark.parametrize("package", [ROOT / "layers/engine/signalbox", *PACKAGES], ids=lambda path: path.name)
def test_a_rooms_layer_holds_its_package_with_its_sql(built_for_lambda: Path, package: Path) -> None:
    files = {path.relative_to(package.parent) for kind in ("*.py", "*.sql") for path in package.rglob(kind)}
    wanted = {path for path in files if path.parts[1] != "testing"}
    layer = built_for_lambda / f"{'Engine' if package.name == 'signalbox' else 'Packs'}Layer/python"
    packed = {
        path.relative_to(layer) for path in layer.joinpath(package.name).rglob("*") if path.suffix in (".py", ".sql")
    }

    assert packed == wanted


def test_the_layer_of_packs_holds_their_packages_and_nothing_else(built_for_lambda: Path) -> None:
    assert {path.name for path in (built_for_lambda / "PacksLayer/python").iterdir()} == {one.name for one in PACKAGES}


def test_what_a_pack_imports_lies_among_the_dependencies(built_for_lambda: Path) -> None:
    assert (built_for_lambda / "DependenciesLayer/python/stripe").is_dir()


def test_each_library_is_for_lambdas_processor_and_python(built_for_lambda: Path) -> None:
    libraries = [path for path in built_for_lambda.rglob("*.so*") if path.is_file()]
    modules = [path.name for path in libraries if ".cpython-" in path.name]

    assert modules
    assert [path for path in libraries if elf_machine(path) != AARCH64] == []
    assert [name for name in modules if ".cpython-313-aarch64-linux-gnu.so" not in name] == []


def test_a_layer_holds_nothing_that_lambda_never_reads(built_for_lambda: Path) -> None:
    files = built_for_lambda.rglob("*")
    left = [path for path in files if path.name in ("tests", "RECORD", "bin") or path.suffix == ".pyi"]

    assert left == []


def test_a_package_still_knows_its_version(built_for_lambda: Path) -> None:
    metadata = {path.parent.name.partition("-")[0] for path in built_for_lambda.rglob("*.dist-info/METADATA")}

    assert {"psycopg", "pydantic", "aws_lambda_powertools"} <= metadata


def test_this_machine_is_given_the_same_files_as_lambda(built_for_lambda: Path, built_here: Built) -> None:
    made = [path.name for path in built_for_lambda.iterdir() if path.is_dir() and not (path / "template.yaml").exists()]

    assert {"EngineLayer", "DependenciesLayer", "PacksLayer", "WorkerFunction"} <= set(made)
    for name in made:
        assert files_of(built_for_lambda / name) == files_of(built_here.folder / name)


def test_each_module_has_bytecode_where_this_machine_has_the_runtimes_python(
    built_for_lambda: Path, built_here: Built
) -> None:
    modules, compiled = (len(list(built_for_lambda.glob(f"*Layer/**/*.{kind}"))) for kind in ("py", "pyc"))

    assert compiled == (modules if built_here.interpreter.version == runtime_version() else 0)


def test_no_layer_brings_what_the_runtime_brings(built_for_lambda: Path) -> None:
    brought = {path.name.partition("-")[0] for path in built_for_lambda.rglob("*.dist-info")}

    assert "psycopg_binary" in brought
    assert brought & {"boto3", "botocore", "s3transfer", "awslambdaric"} == set()


def test_sam_needs_no_python_of_lambdas_version(tmp_path: Path) -> None:
    environ = environment(tmp_path / "bin")
    done = sam_build(tmp_path / "built", environ, "DependenciesLayer")

    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "built/DependenciesLayer").rglob("*.so"))
    assert list((tmp_path / "built").rglob("*.pyc")) == []


def test_the_makefile_builds_for_the_templates_runtime() -> None:
    assert {function["Runtime"] for function in deployed().of(FUNCTION).values()} == {f"python{runtime_version()}"}


def test_bytecode_of_the_runtimes_version_is_loaded_for_any_file_dates(tmp_path: Path) -> None:
    output, layer = build_layer(tmp_path, runtime=OWN)
    compiled = list(layer.rglob("*.pyc"))

    assert output == ""
    assert len(compiled) == len(list(layer.rglob("*.py")))
    for path in compiled:
        header = path.read_bytes()[:8]
        assert header[:4] == importlib.util.MAGIC_NUMBER
        assert int.from_bytes(header[4:8], "little") == UNCHECKED_HASH


def test_bytecode_names_the_folder_that_lambda_unpacks_to(tmp_path: Path) -> None:
    _, layer = build_layer(tmp_path, runtime=OWN)
    compiled = next(layer.rglob("signalbox/__pycache__/errors.*.pyc")).read_bytes()

    assert b"/opt/python/signalbox/errors.py" in compiled
    assert str(tmp_path).encode() not in compiled


def test_without_the_runtimes_python_the_build_says_so_and_leaves_bytecode_out(tmp_path: Path) -> None:
    output, layer = build_layer(tmp_path, runtime="3.99")

    assert "no Python 3.99" in output
    assert list(layer.rglob("*.py"))
    assert list(layer.rglob("*.pyc")) == []


def elf_machine(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(20)[18:20], "little")


def files_of(folder: Path) -> set[str]:
    """Return the files' paths but for bytecode, without processor, Python version and the versions of wheels'
    libraries; and without those that rapidfuzz has for some processors beside its common ones."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    paths = {str(path.relative_to(folder)) for path in files if not re.search("_avx2|_feature_detector", path.name)}
    return {re.sub(r"x86_64|aarch64|arm64|cp(ython-)?3\d+|(-[0-9a-f]{8})?\.so[.\d]*$", "", path) for path in paths}


def build_layer(folder: Path, runtime: str) -> tuple[str, Path]:
    """Build the engine's layer alone, as SAM would; return what it printed, and where the layer is."""
    layer = folder / "layer"
    done = subprocess.run(
        ["make", "-f", ROOT / "layers/Makefile", "build-EngineLayer", f"RUNTIME={runtime}", f"ARTIFACTS_DIR={layer}"],
        cwd=ROOT / "layers/engine",
        env=environment(folder / "bin"),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, layer
