"""Keys, tokens and what is personal never reach the store; a placeholder does, the same for the same text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filmroom.main import main
from store.bodies import json_bytes
from store.database import open_store
from store.errors import SettingsError
from store.ingest import ingest
from store.records import Feedback, Rejected, Span, Trace
from store.redaction import Redactor, redacted_json, redactor_for
from store.settings import PolicySection, read_settings

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx7Jq0abcdefghijklmnopqrstuvwxyz\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
SECRETS = {
    "openai": "sk-proj-Ab12Cd34Ef56Gh78Ij90",
    "anthropic": "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4",
    "langfuse": "sk-lf-1234abcd-5678-90ef-abcd-1234567890ab",
    "stripe": "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
    "github": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "hugging face": "hf_abcdefghijABCDEFGHIJ12345",
    "token": JWT,
    "key file": PEM,
}
TEXTS = [f"please use {secret} from now on" for secret in SECRETS.values()]
HARMLESS = [
    "the task-management-system-2 is down, ask sk-learn",
    "order 4111111111111111 of 2026-01-05T10:00:00Z, id 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "a token costs 0.01, a password: none; basic questions",
    "write to a@example.org or call +49 30 1234567",
]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_key_becomes_a_placeholder_where_it_stands(secret: str) -> None:
    text, count = Redactor().text(f"please use {secret} from now on")
    assert count == 1
    assert re.fullmatch(r"please use \[redacted [a-z ]+ [0-9a-f]{8}\] from now on", text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdef1234567890xyz", "Authorization: Bearer "),
        ('curl -H "x-api-key: 0123456789abcdef"', 'curl -H "x-api-key: '),
        ('{\\"password\\": \\"hunter2hunter2\\"}', '{\\"password\\": \\"'),
        ("postgresql://ann:s3cret!@db.example.org/x", "postgresql://ann:"),
    ],
)
def test_what_a_name_says_is_secret_goes_and_the_name_stays(text: str, left: str) -> None:
    cleaned, count = Redactor().text(text)
    assert (count, cleaned.startswith(left + "[redacted ")) == (1, True)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_key_stays(text: str) -> None:
    assert Redactor().text(text) == (text, 0)


def test_fields_that_are_named_as_secrets_lose_their_text_and_keep_their_shape() -> None:
    value = {"headers": [{"X-Api-Key": "a", "Accept": "b"}], "password": "c", "client_secret": None, "max_tokens": 5}
    cleaned, count = Redactor().clean(value)
    assert count == 2
    assert cleaned["headers"][0]["Accept"] == "b"
    assert (cleaned["client_secret"], cleaned["max_tokens"]) == (None, 5)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("email", "ann.o'neil+x@mail.example.org"),
        ("card", "4111 1111 1111 1111"),
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("phone", "+49 30 901820-12"),
        ("phone", "(030) 9018 2012"),
        ("phone", "555-123-4567"),
    ],
)
def test_what_is_personal_goes_where_the_settings_say_so(kind: str, text: str) -> None:
    assert Redactor().text(text) == (text, 0)
    cleaned, count = Redactor((kind,)).text(f"it is {text}, thanks")
    assert (count, cleaned.endswith("], thanks")) == (1, True)


@pytest.mark.parametrize(("kind", "text"), [("card", "4111 1111 1111 1112"), ("iban", "DE88 3704 0044 0532 0130 00"),
                                            ("phone", "2026-01-05 10:00"), ("phone", "1.5 of 200")])  # fmt: skip
def test_numbers_whose_check_digits_are_wrong_stay(kind: str, text: str) -> None:
    assert Redactor((kind,)).text(text) == (text, 0)


def test_a_card_that_is_a_number_in_json_goes_too() -> None:
    assert Redactor(("card",)).clean({"n": 4111111111111111, "m": 17})[1] == 1


def test_one_text_has_one_placeholder_and_another_project_another() -> None:
    one, again, other = (Redactor(("email",), key=key).text("a@example.org")[0] for key in ("k", "k", "l"))
    assert one == again != other


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(TEXTS + HARMLESS + list(SECRETS.values())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "password", "api_key"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
EVERYTHING = Redactor(("keys", "email", "phone", "card", "iban"), {"ticket": r"T-\d+"}, key="k")


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else None


@settings(max_examples=300, deadline=None)
@given(json_values)
def test_redacting_keeps_the_shape_leaves_no_key_and_changes_nothing_the_second_time(value: Any) -> None:
    for redactor in (Redactor(), EVERYTHING):
        cleaned, _ = redactor.clean(value)
        assert shape(cleaned) == shape(value)
        assert redactor.clean(cleaned) == (cleaned, 0)
        assert not any(json_bytes(secret)[1:-1] in json_bytes(cleaned) for secret in SECRETS.values())


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["input", "output"]), json_values))
def test_the_quick_look_never_misses_what_the_thorough_one_finds(texts: dict[str, Any]) -> None:
    assert redacted_json(Redactor(), texts)[1] == Redactor().clean(texts)[1]


def test_no_byte_of_a_key_is_in_the_store_and_its_journal(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}", create=True)
    secret, at = SECRETS["openai"], {"source": "s", "trace_external_id": "1", "external_id": "1"}
    tally = ingest(store, [
        Trace(source="s", external_id="1", input=[secret], attributes={"headers": {"authorization": secret}}),
        Span(**at, output={"a": secret}, documents=(secret,)), Feedback(**at, comment=secret, corrected_output=secret),
        Rejected(path="x", line=1, reason="not JSON", raw=f'{{"a": "{secret}"'),
    ])  # fmt: skip
    assert (tally.redacted, tally.stored, tally.quarantined) == (7, 3, 1)
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())
    store.close()


def test_users_are_redacted_like_texts_where_they_are_personal(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}", create=True)
    redactor = redactor_for(store, PolicySection(redact=("email",)))
    ingest(store, [Trace(source="s", external_id="1", user="a@example.org", input="a@example.org")], redactor=redactor)
    with store.read() as connection:
        [user] = connection.exec_driver_sql('SELECT "user" FROM traces').scalars()
    assert user == redactor.text("a@example.org")[0] != Redactor(("email",)).text("a@example.org")[0]
    store.close()


def test_a_command_says_how_many_were_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               capfd: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text(
        json.dumps({"type": "trace", "id": 1, "input": SECRETS["aws"]}), encoding="utf-8"
    )
    assert main(["ingest", "log.jsonl"]) == 0
    assert "1 keys, tokens or personal texts were redacted" in capfd.readouterr().err
    assert main(["ingest", "log.jsonl", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["redacted"] == 1


@pytest.mark.parametrize("expression", ["(", "x*"])
def test_a_pattern_that_cannot_work_is_refused_with_its_name(tmp_path: Path, expression: str) -> None:
    (tmp_path / "filmroom.toml").write_text(f"[policy.redact_patterns]\nticket = '{expression}'\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="ticket"):
        read_settings(tmp_path / "filmroom.toml")
