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
SERVICE = ROOT / "service"
CLIENT = ROOT / "clients" / "python" / "src"
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


def move_package(source: Path, target: Path, package: str) -> None:
    """Move generated `cardkeeper/v1` to another import package: only the imports change, never the proto package."""
    for file in sorted(source.iterdir()):
        text = file.read_text()
        text = re.sub(r"\bfrom cardkeeper\.v1\b", f"from {package}.v1", text)
        text = re.sub(r"\bimport cardkeeper\.v1\b", f"import {package}.v1", text)
        (target / file.name).write_text(text)


def fresh(folder: Path) -> Path:
    """Empty `folder`, so that stubs of removed files go too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('"""Generated from protos/; never edited."""\n')
    return folder


def main() -> None:
    """Generate everything."""
    image = build_image()
    bare = without_rules(image)
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder)
        generate(bare, generated)
        stubs = generated / "cardkeeper" / "v1"
        move_package(stubs, fresh(SERVICE / "cardkeeper" / "v1"), "cardkeeper")
        move_package(stubs, fresh(CLIENT / "cardkeeper_client" / "v1"), "cardkeeper_client")
    (SERVICE / "cardkeeper" / "v1" / "rules.binpb").write_bytes(without_source(image).SerializeToString())


if __name__ == "__main__":
    main()
