"""Canonical JSON and digests."""

import hashlib
import json

import rfc8785


def canonical_json(value: object) -> bytes:
    """Return the canonical form of a JSON value (RFC 8785).

    RFC 8785 has no form for integers beyond 2^53, numbers that are none, and half surrogate pairs. A document that holds
    one is written instead with keys sorted by code point, separators "," and ":", everything beyond ASCII escaped, and
    integers digit by digit: another form, but one form, so that any change still shows.
    """
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # refuses what is no JSON by an exception
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(value: object) -> str:
    """Hex SHA-256 of the canonical form of a JSON value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
