"""Executes notebooks from top to bottom, and checks that their outputs are checked in.

    .ci/notebooks.py FOLDER           executes each notebook; fails on an error, or on a cell without its kind of output
    .ci/notebooks.py --write FOLDER   writes the outputs into the notebooks
"""
import pathlib
import re
import sys
import tempfile
import time

import nbclient
import nbformat


def kinds(cell):
    """The kinds of a cell's outputs; lines of progress are none."""
    return sorted({kind for output in cell.outputs if output.output_type in ("execute_result", "display_data") for kind in output.data})


def main():
    write = "--write" in sys.argv
    status = 0
    for path in sorted(pathlib.Path(sys.argv[-1]).glob("*.ipynb")):
        began = time.monotonic()
        known = nbformat.read(path, as_version=4)
        book = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            nbclient.NotebookClient(book, timeout=240, resources={"metadata": {"path": folder}}).execute()
        print(f"{path.name}: {len(book.cells)} cells in {time.monotonic() - began:.1f} s")
        for cell in book.cells:
            cell.metadata.pop("execution", None)
            for output in cell.get("outputs", []):
                if "text" in output:
                    # A warning names the file that the kernel made of the cell.
                    output.text = re.sub(r"\S*ipykernel_\d+/\d+\.py:\d+: ", "", output.text)
        if write:
            nbformat.write(book, path)
            continue
        for at, (before, after) in enumerate(zip(known.cells, book.cells)):
            if after.cell_type == "code" and kinds(before) != kinds(after):
                print(f"{path}: cell {at} has the outputs {kinds(before)}, and now {kinds(after)}: write them again", file=sys.stderr)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
