"""The schema of policies that editors check by, made once."""

from functools import cache

from jsonschema import Draft202012Validator

from nightkeep.policy import json_schema


@cache
def policy_schema() -> Draft202012Validator:
    return Draft202012Validator(json_schema())
