"""The rules: hand-set log-weights over the evidence, and each feature in words.

They are a prior, not a fit. Definitions decide where there is one (a broken schema, a label no class fits); the weights
only order what speaks for a place: strong enough that one clear sign outweighs no sign, and two outweigh one.
"""

from collections.abc import Mapping

NONE = "none"
"""The outcome beside the targets: no single place mends it."""

BASE: Mapping[str, float] = {"context": -1.0, "memory": -1.5, "tooling": -1.0, "weights": -8.0, NONE: 0.0}
"""Log-weight of each outcome without evidence: weights start out of reach, and only a failing prediction brings them in."""

WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "tooling": {
        "judge_tooling": 1.0,
        "schema_violation": 2.5,
        "error_transient": 2.5,
        "error_validation": 0.5,
        "error_auth": 2.0,
        "error_other": 0.2,
        "error_not_found": 0.2,
        "normalisable": 2.5,
        "self_repair": 0.7,
        "contract_break": 4.5,
        "batch_outage": 3.0,
        "batch_silence": 5.0,
        "program_blamed": 3.0,
        "rejectable": 3.0,
        "probe_flag": 1.0,
        "misread": -5.0,
        "policy_too": -4.0,
    },
    "context": {
        "judge_context": 1.0,
        "instruction_blamed": 3.0,
        "overlooked": 2.0,
        "normative": 2.5,
        "rule_gap": 0.5,
        "rule_ignored": 1.0,
        "retrieval_miss": 2.0,
        "agreed": 2.5,
        "version_assoc": 0.5,
        "user_concentration": -0.75,
        "same_user": -0.75,
        "model_step": -1.0,
        "misread": -2.0,
    },
    "memory": {
        "judge_memory": 1.0,
        "user_concentration": 1.5,
        "same_user": 2.0,
        "users_differ": 2.0,
        "probe_user": 2.0,
        "cross_user_conflict": 1.5,
        "said_before": 2.5,
        "stale_read": 2.5,
        "first_person": 2.0,
        "unremembered": 3.0,
        "batch_silence": -3.0,
        "normative": -0.5,
        "agreed": -1.5,
        "model_step": -1.0,
        "misread": -3.0,
    },
    "weights": {
        "judge_weights": 1.0,
        "model_step": 9.5,
        "misread": 10.5,
        "model_blamed": 9.5,
        "no_class": -3.0,
        "user_concentration": -1.0,
        "same_user": -1.5,
        "probe_x": 1.0,
        "cross_user_conflict": -2.0,
        "batch_outage": -2.0,
        "normative": -0.5,
        "first_person": -0.5,
    },
    NONE: {
        "policy_too": 6.0,
        "several_causes": 12.0,
        "contradiction": 4.0,
        "cross_user_conflict": 0.3,
        "label_noise": 3.0,
        "request_blamed": 3.0,
    },
}
"""Log-weight a feature adds per unit to each outcome; a feature that was not measured adds nothing.

What a service that brings nothing for anybody did not bring was not forgotten: silence takes `unremembered` back.
An error by itself weighs little: a tool that rightly refuses a wrong call is no tool to mend (of 94 annotated failures
with an exception 15 were the tool's).
"""

PHRASES: Mapping[str, str] = {
    "schema_violation": "calls break the tool's declared schema",
    "error_transient": "the step is temporarily unavailable",
    "error_validation": "the tool does not accept the call",
    "error_auth": "the tool does not allow the call",
    "error_not_found": "the tool does not find what was asked for",
    "error_other": "the step ends in an error",
    "normalisable": "a listed normaliser mends the argument",
    "self_repair": "the same tool then succeeds with other arguments",
    "contract_break": "the tool's output breaks its contract",
    "batch_outage": "the step fails in one stretch for unrelated inputs",
    "normative": "the correction states a policy",
    "rule_gap": "no active rule says what the correction says",
    "rule_ignored": "an active rule was not followed",
    "retrieval_miss": "the right answer was not retrieved",
    "version_assoc": "failures follow the last context change",
    "user_concentration": "failures concentrate on one user",
    "same_user": "failures come from few users",
    **{f"judge_{place}": "the judge says so" for place in ("context", "memory", "tooling", "weights", NONE)},
    "policy_too": "a policy is stated beside an error",
    "several_causes": "people want several things of such answers, and nothing says which",
    "users_differ": "different users want different answers",
    "agreed": "different users want the same change",
    "misread": "the same answer of the model was corrected for such inputs",
    "unsure": "the model was unsure",
    "novelty": "such inputs were not seen before",
    "probe_x": "the input alone tells the failures apart",
    "probe_user": "the user alone tells the failures apart",
    "probe_scope": "channel or time alone tells the failures apart",
    "probe_flag": "contract flags alone tell the failures apart",
    "cross_user_conflict": "other users are content with the same answer",
    "said_before": "the user had said it before",
    "stale_read": "a memory that was read is out of date",
    "first_person": "the correction is about the user's own",
    "model_step": "the failing step is the model's own prediction",
    "batch_silence": "a component brings nothing for anybody",
    "program_blamed": "people blame the program",
    "instruction_blamed": "people blame the prompt or the policy",
    "request_blamed": "people blame the request or the label",
    "model_blamed": "people blame the model's reasoning",
    "unremembered": "the memory did not bring the right answer",
    "overlooked": "the right answer stood in what the model was shown",
    "label_noise": "the label is as likely wrong as the model",
    "rejectable": "no class fits, and the model was unsure",
    "no_class": "no class of the model fits",
    "contradiction": "the corrections contradict each other",
}
