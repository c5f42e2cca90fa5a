from models.dataset import dataset_digest, prepare, suspect_labels, text_of
from store.records import DatasetRow


def _row(text: str, label: str, source: str = "unknown", *, authority: bool = False) -> DatasetRow:
    return DatasetRow(input=text, label=label, source=source, authority=authority)


def test_the_digest_follows_from_what_is_learnt_in_any_order() -> None:
    a, b = _row("hi", "greet"), _row("bye", "part")
    same = [
        dataset_digest([a, b]),
        dataset_digest([b, a]),
        dataset_digest([a.model_copy(update={"trace_id": "trc_1"}), b]),
    ]
    assert len(set(same)) == 1


def test_the_digest_changes_with_a_label_a_weight_or_a_repetition() -> None:
    a = _row("hi", "greet")
    others = [[a, a], [_row("hi", "part")], [a.model_copy(update={"weight": 2.0})]]
    assert len({dataset_digest([a]), *map(dataset_digest, others)}) == 4


def test_a_structured_input_is_its_canonical_json() -> None:
    assert text_of(DatasetRow(input={"b": 1, "a": "x"}, label="l")) == '{"a":"x","b":1}'


def test_a_source_is_capped_per_label_and_an_authority_is_not() -> None:
    rows = [
        _row(f"{source} {n}", "l", source, authority=source == "staff") for source in ("ann", "staff") for n in range(4)
    ]
    training = prepare(rows, cap_per_source=2)
    assert [entry.used for entry in training.entries] == [True, True, False, False, True, True, True, True]


def test_a_source_is_capped_by_its_share_of_all_rows() -> None:
    rows = [_row(f"a{n}", f"l{n}", "ann") for n in range(6)] + [_row(f"b{n}", f"l{n}", f"u{n}") for n in range(4)]
    training = prepare(rows, cap_per_source=None, max_source_share=0.2)
    assert [row.source for row in training.rows] == ["ann", "ann", "u0", "u1", "u2", "u3"]


def test_identical_inputs_get_their_majority_label() -> None:
    training = prepare([_row("hi", "greet"), _row("hi", "part"), _row("hi", "greet")], cap_per_source=None)
    assert [(entry.used, entry.why, entry.detail) for entry in training.entries] == [
        (True, "used", ""),
        (False, "outvoted on the same input", "most say greet"),
        (True, "used", ""),
    ]


def test_an_authority_outvotes_and_a_tie_goes_to_the_latest() -> None:
    signed = prepare([_row("a", "x"), _row("a", "x"), _row("a", "y", "staff", authority=True)], cap_per_source=None)
    tied = prepare([_row("a", "x"), _row("a", "y")], cap_per_source=None)
    assert ([row.label for row in signed.rows], [row.label for row in tied.rows]) == (["y"], ["y"])


def test_a_suspect_row_is_held_with_its_reason() -> None:
    training = prepare([_row("a", "x"), _row("b", "y")], cap_per_source=None, suspects=[1])
    assert ([row.label for row in training.rows], training.entries[1].why) == (["x"], "label held as suspect")


def test_a_planted_wrong_label_is_the_first_suspect() -> None:
    verbs = {"order": ("track", "find"), "refund": ("return", "repay")}
    rows = [_row(f"{verb} my item {n}", label) for label in verbs for verb in verbs[label] for n in range(10)]
    rows += [_row(f"{word} {n}", "greet") for word in ("hello there", "good morning") for n in range(10)]
    rows[7] = rows[7].model_copy(update={"label": "refund"})
    assert suspect_labels(rows, share=0.05, seed=0)[:1] == (7,)


def test_the_order_of_the_rows_changes_no_suspect() -> None:
    draw = [
        _row(f"{word} {n}", label) for n in range(20) for word, label in (("track", "x"), ("pay", "y"), ("hi", "z"))
    ]
    rows = [row.model_copy(update={"label": "y"}) if n % 9 == 0 else row for n, row in enumerate(draw)]
    first = {rows[i].input for i in suspect_labels(rows, share=0.1, seed=0)}
    assert (len(first), {rows[::-1][i].input for i in suspect_labels(rows[::-1], share=0.1, seed=0)}) == (6, first)


def test_base_rows_and_small_sets_are_never_suspect() -> None:
    base = [_row(f"{'track' if n % 2 else 'return'} {n}", "x" if n % 3 else "y", "base") for n in range(40)]
    assert (suspect_labels(base, seed=0), suspect_labels(base[:20], seed=0)) == ((), ())
