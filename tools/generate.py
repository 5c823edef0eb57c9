"""Generate the stubs of every Python distribution from `protos/`.

The validation rules stay in the server: clients get stubs that need nothing but grpcio and protobuf, because two
packages that bring different copies of `buf/validate/validate.proto` cannot share a process. So the whole image becomes
the server's `rules.binpb`, and the image without rules is what all code is generated from.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

ROOT = Path(__file__).resolve().parent.parent
SERVICE_STUBS = ROOT / "service" / "cardkeeper" / "v1"
CLIENT_STUBS = ROOT / "clients" / "python" / "src" / "cardkeeper_client" / "v1"
BIN = Path(sys.executable).parent


def build_image() -> FileDescriptorSet:
    """Compile `protos/` with buf, source locations included, so that stubs carry the comments."""
    command = [str(BIN / "buf"), "build", "--as-file-descriptor-set", "-o", "-#format=binpb"]
    return FileDescriptorSet.FromString(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def without_source(image: FileDescriptorSet) -> FileDescriptorSet:
    """Drop the source locations: the server needs rules, not comments."""
    slim = FileDescriptorSet.FromString(image.SerializeToString())
    for file in slim.file:
        file.ClearField("source_code_info")
    return slim


def without_rules(image: FileDescriptorSet) -> FileDescriptorSet:
    """Drop every validation rule, and the import that defines them."""
    bare = FileDescriptorSet()
    for file in image.file:
        if file.name.startswith("buf/"):
            continue
        bare.file.add().CopyFrom(file)
    for file in bare.file:
        kept = [name for name in file.dependency if not name.startswith("buf/")]
        del file.dependency[:]
        file.dependency.extend(kept)
        for message in file.message_type:
            drop_message_rules(message)
    return bare


def drop_message_rules(message) -> None:  # type: ignore[no-untyped-def]
    """Rules are extensions of the standard options, unknown fields to a process without buf's descriptors."""
    message.options.DiscardUnknownFields()
    for element in (*message.field, *message.oneof_decl):
        element.options.DiscardUnknownFields()
    for nested in message.nested_type:
        drop_message_rules(nested)


def generate(image: FileDescriptorSet, destination: Path) -> None:
    """Write `cardkeeper/v1` stubs and their types under `destination`."""
    ours = [file for file in image.file if file.name.startswith("cardkeeper/")]
    protoc(image, destination, ["python", "mypy"], [file.name for file in ours])
    protoc(image, destination, ["grpc_python", "mypy_grpc"], [file.name for file in ours if file.service])


def protoc(image: FileDescriptorSet, destination: Path, plugins: list[str], names: list[str]) -> None:
    """Run some of protoc's plugins over some files of the image."""
    with tempfile.NamedTemporaryFile(suffix=".binpb") as descriptors:
        descriptors.write(image.SerializeToString())
        descriptors.flush()
        subprocess.run(
            [
                sys.executable, "-m", "grpc_tools.protoc",
                f"--descriptor_set_in={descriptors.name}",
                f"--plugin=protoc-gen-mypy={BIN / 'protoc-gen-mypy'}",
                f"--plugin=protoc-gen-mypy_grpc={BIN / 'protoc-gen-mypy_grpc'}",
                *(f"--{plugin}_out={destination}" for plugin in plugins),
                *names,
            ],
            check=True,
        )  # fmt: skip


def moved(source: Path, target: Path, package: str) -> dict[Path, bytes]:
    """Generated `cardkeeper/v1` as another import package: only the imports change, never the proto package."""
    files = {target / "__init__.py": b'"""Generated from protos/; never edited."""\n'}
    for file in sorted(source.iterdir()):
        text = file.read_text()
        text = re.sub(r"\bfrom cardkeeper\.v1\b", f"from {package}.v1", text)
        text = re.sub(r"\bimport cardkeeper\.v1\b", f"import {package}.v1", text)
        files[target / file.name] = text.encode()
    return files


def outputs() -> dict[Path, bytes]:
    """Everything that is generated, by path."""
    image = build_image()
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder)
        generate(without_rules(image), generated)
        stubs = generated / "cardkeeper" / "v1"
        files = moved(stubs, SERVICE_STUBS, "cardkeeper") | moved(stubs, CLIENT_STUBS, "cardkeeper_client")
    files[SERVICE_STUBS / "rules.binpb"] = without_source(image).SerializeToString()
    return files


def stale(files: dict[Path, bytes]) -> list[Path]:
    """Paths whose content is not what the protos say, or that no proto stands behind any more."""
    wrong = [path for path, content in files.items() if not path.exists() or path.read_bytes() != content]
    present = (path for folder in (SERVICE_STUBS, CLIENT_STUBS) for path in folder.glob("*") if path.is_file())
    return wrong + [path for path in present if path not in files]


def main() -> None:
    """Generate everything; with --check, only say whether that would change anything."""
    files = outputs()
    if sys.argv[1:] == ["--check"]:
        if wrong := stale(files):
            names = ", ".join(str(path.relative_to(ROOT)) for path in wrong)
            sys.exit(f"generated code is stale: {names}; run make generate")
        return
    for folder in (SERVICE_STUBS, CLIENT_STUBS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for path, content in files.items():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
