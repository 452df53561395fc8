"""Compares a run of s3-tests with the kept lists, or writes them.

passes.txt holds what must pass; fails-for-a-reason.txt what does not, each with its reason;
not-offered.txt tests of features that the server does not offer, with the feature. A test of
such a feature is never counted as passed, though an expected error may let it pass.
"""

import ast
import os
import re
import sys
import xml.etree.ElementTree as xml

# A feature that is not offered, and what a test of it calls or names.
NOT_OFFERED = [
    ("lifecycle", r"lifecycle|restore_object|cloud_"),
    ("versioning", r"check_configure_versioning|put_bucket_versioning|versioning_enabled"),
    ("encryption by the server", r"[Ss]erver-?[Ss]ide-?[Ee]ncryption|SSECustomer|sse[_-]|bucket_encryption"),
    ("object lock", r"object_lock|ObjectLock|_retention|legal_hold"),
    ("policies", r"put_bucket_policy|get_bucket_policy_status|create_policy"),
    ("public access block", r"public_access_block"),
    ("grants to named users, owners beside the one", r"get_alt_user_id|AccessControlPolicy=|x-amz-grant|Grant(Read|Write|FullControl)"),
    ("website", r"website"),
    ("logging", r"bucket_logging|put_bucket_logging"),
    ("ownership controls", r"ownership_controls|ObjectOwnership"),
    ("notifications", r"notification_configuration"),
    ("storage classes", r"StorageClass="),
    ("SigV2", r"signature_version='s3'|_aws2\b|v2_client|AWSAccessKeyId|hashlib\.sha1|, sha\)"),
    ("IAM", r"get_iam|iam_client|assume_role"),
    ("tenants", r"get_tenant_client|tenant_client"),
    ("torrents", r"get_object_torrent"),
    ("figures of RGW", r"x-rgw-|usage"),
]

# Tests that name a feature and need of it only what is offered: grants that amount to an ACL of
# those that open to everybody, or to the owner's.
OFFERED = {
    "test_s3::test_object_acl",
    "test_s3::test_put_bucket_acl_grant_group_read",
}


def sources(checkout):
    """Each test with its text and that of the helpers it calls."""
    out = {}
    for name in ("test_s3", "test_headers"):
        with open(f"{checkout}/s3tests/functional/{name}.py") as file:
            text = file.read()
        lines, tree = text.split("\n"), ast.parse(text)
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}

        def own(node):
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            return "\n".join(lines[first - 1 : node.end_lineno])

        def deep(node, seen):
            text = own(node)
            for call in ast.walk(node):
                known = isinstance(call, ast.Name) and call.id in functions
                if known and call.id not in seen and not call.id.startswith("test_"):
                    seen.add(call.id)
                    text += deep(functions[call.id], seen)
            return text

        for test, node in functions.items():
            if test.startswith("test_"):
                out[f"{name}::{test}"] = deep(node, set())
    return out


def feature(name, text):
    """The feature that a test needs and the server does not offer; None for all others."""
    if name in OFFERED:
        return None
    for offered, pattern in NOT_OFFERED:
        if re.search(pattern, text) or re.search(pattern, name):
            return offered
    return None


def outcomes(path):
    out = {}
    for case in xml.parse(path).getroot().iter("testcase"):
        module = case.get("classname").split(".")[-1]
        bad = [x for x in case if x.tag in ("failure", "error", "skipped")]
        message = (bad[0].get("message") or "").split("\n")[0] if bad else ""
        out[f"{module}::{case.get('name')}"] = (not bad, message)
    return out


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and line[0] != "#"]
    return dict((line.split("  ", 1) + [""])[:2] for line in lines)


def write(path, head, entries):
    with open(path, "w") as file:
        file.write(f"# {head}\n")
        for name in sorted(entries):
            reason = entries[name]
            file.write(f"{name}  {reason}\n" if reason else f"{name}\n")


def main(checkout, result, here, mode):
    texts, got = sources(checkout), outcomes(result)
    if not got:
        sys.exit("s3-tests: no test was run")
    not_offered = {}
    for name in got:
        why = feature(name, texts.get(name.split("[")[0], ""))
        if why:
            not_offered[name] = why
    passed = {n for n, (ok, _) in got.items() if ok and n not in not_offered}
    failed = {n for n in got if n not in passed and n not in not_offered}
    reasons = read(f"{here}/fails-for-a-reason.txt")
    if mode == "write":
        write(f"{here}/passes.txt", "must pass", dict.fromkeys(passed, ""))
        kept = {n: reasons.get(n) or got[n][1] for n in failed}
        write(f"{here}/fails-for-a-reason.txt", "fails, and why", kept)
        write(f"{here}/not-offered.txt", "needs what is not offered", not_offered)
    expected = set(read(f"{here}/passes.txt"))
    lost = sorted(n for n in expected if n in got and n not in passed)
    gone = sorted(n for n in expected if n not in got)
    new = sorted(passed - expected)
    unknown = sorted(failed - set(reasons))
    for title, names in (
        ("must pass and does not", lost),
        ("must pass and was not run", gone),
        ("passes and is not in passes.txt", new),
        ("fails and is in no list", unknown),
    ):
        for name in names:
            print(f"{title}: {name}: {got.get(name, (False, ''))[1]}")
    counts = f"{len(passed)} pass, {len(failed)} fail for a reason, {len(not_offered)} not offered"
    print(f"s3-tests: {counts}")
    if mode != "write" and (lost or gone or new or unknown):
        sys.exit(1)


main(*sys.argv[1:5])
