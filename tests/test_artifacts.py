import hashlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import skops.io
from sklearn.preprocessing import FunctionTransformer

from models.artifacts import Manifest, artifact_path, environment, load, read_manifest, save, unchanged_by_saving
from models.exceptions import ExceptionModel
from models.text_model import TextModel
from store.errors import ModelRefused

TEXTS = [f"{verb} my {thing}" for verb in ("track", "find", "return", "refund") for thing in ("book", "shoe", "lamp")]
LABELS = ["order"] * 6 + ["refund"] * 6
MANIFEST = Manifest(training="0" * 64, arm="word_char_svc", code_version="0.1.0", environment=environment())


@pytest.fixture(scope="module")
def model() -> TextModel:
    return TextModel().fit(TEXTS, LABELS)


def _stored(folder: Path, content: object) -> str:
    data = skops.io.dumps(content)
    digest = hashlib.sha256(data).hexdigest()
    artifact_path(folder, digest).write_bytes(data)
    return digest


def test_a_loaded_model_answers_as_the_saved_one(model: TextModel, tmp_path: Path) -> None:
    for saved in (model, ExceptionModel(model).fit(["a gift", "the gift"], ["gift", "gift"])):
        loaded = load(tmp_path, save(saved, tmp_path, MANIFEST))
        assert (type(loaded), unchanged_by_saving(saved, loaded, [*TEXTS, "a gift"])) == (type(saved), True)


def test_a_model_with_out_of_scope_rows_loads_with_nothing_trusted(tmp_path: Path) -> None:
    model = TextModel(out_of_scope="none").fit(TEXTS + ["hey you"] * 10, LABELS + ["none"] * 10)
    digest = save(model, tmp_path, MANIFEST)
    assert skops.io.get_untrusted_types(file=artifact_path(tmp_path, digest)) == []


def test_the_same_model_is_the_same_file(model: TextModel, tmp_path: Path) -> None:
    again = TextModel().fit(TEXTS, LABELS)
    digest = save(model, tmp_path, MANIFEST)
    assert {save(model, tmp_path, MANIFEST), save(again, tmp_path, MANIFEST)} == {digest}
    assert save(load(tmp_path, digest), tmp_path, MANIFEST) == digest


def test_words_that_are_names_in_the_file_format_change_nothing(tmp_path: Path) -> None:
    words = ["__id__ my book", "file is_json content", "__class__ _stop_words_id"]
    model = TextModel().fit([*TEXTS, *words], [*LABELS, "order", "refund", "refund"])
    assert unchanged_by_saving(model, load(tmp_path, save(model, tmp_path, MANIFEST)), [*TEXTS, *words])


def test_the_manifest_names_data_code_and_environment(model: TextModel, tmp_path: Path) -> None:
    digest = save(model, tmp_path, MANIFEST)
    assert read_manifest(tmp_path, digest) == MANIFEST.model_copy(update={"artifact": digest})


def test_saving_leaves_no_other_file(model: TextModel, tmp_path: Path) -> None:
    digest = save(model, tmp_path, MANIFEST)
    assert sorted(os.listdir(tmp_path)) == [f"{digest}.json", f"{digest}.skops"]


def test_a_truncated_file_is_refused(model: TextModel, tmp_path: Path) -> None:
    digest = save(model, tmp_path, MANIFEST)
    path = artifact_path(tmp_path, digest)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelRefused, match="truncated or swapped"):
        load(tmp_path, digest)


def test_a_swapped_file_is_refused(model: TextModel, tmp_path: Path) -> None:
    digest = save(model, tmp_path, MANIFEST)
    other = save(TextModel(seed=1).fit(TEXTS, LABELS), tmp_path, MANIFEST)
    artifact_path(tmp_path, other).replace(artifact_path(tmp_path, digest))
    with pytest.raises(ModelRefused, match="truncated or swapped"):
        load(tmp_path, digest)


def test_a_file_that_asks_for_another_type_is_refused(tmp_path: Path) -> None:
    digest = _stored(tmp_path, {"format": 1, "kind": "text", "parts": FunctionTransformer(os.path.join)})
    with pytest.raises(ModelRefused, match=r"not trusted \(posixpath.join\)"):
        load(tmp_path, digest)


def test_another_format_is_refused(tmp_path: Path) -> None:
    digest = _stored(tmp_path, {"format": 2, "kind": "text", "parts": {}})
    with pytest.raises(ModelRefused, match="format 2, this filmroom reads 1"):
        load(tmp_path, digest)


@pytest.mark.parametrize("content", [{"format": 1}, {"format": 1, "kind": "text", "parts": {}}, [1, 2]])
def test_other_content_is_refused(content: object, tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=r"model of ours"):
        load(tmp_path, _stored(tmp_path, content))


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("schema.json", json.dumps({"__class__": "dict"}))
    for data in (pickle.dumps(Trap()), archive.getvalue(), b""):
        digest = hashlib.sha256(data).hexdigest()
        artifact_path(tmp_path, digest).write_bytes(data)
        with pytest.raises(ModelRefused):
            load(tmp_path, digest)
    assert not (tmp_path / "sprung").exists()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="cannot be read"):
        load(tmp_path, "0" * 64)
    with pytest.raises(ModelRefused, match="no readable manifest"):
        read_manifest(tmp_path, "0" * 64)
