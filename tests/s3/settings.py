"""Writes the users that s3-tests wants: for the server, and for the suite."""

import sys

USERS = {
    "s3 main": ("maintester", ["read", "list", "write", "admin"]),
    "s3 alt": ("alttester", []),
    "s3 tenant": ("tenanttester", []),
    "iam": ("iamtester", []),
    "iam root": ("iamroottester", []),
    "iam alt root": ("iamaltroottester", []),
}

SUITE = """[DEFAULT]
host = 127.0.0.1
port = {port}
is_secure = False
ssl_verify = False
[fixtures]
bucket prefix = holdall-{{random}}-
iam name prefix = s3-tests-
iam path prefix = /s3-tests/
"""


def secret(name):
    return f"{name}-secret-of-the-suite"


def main(port, server, suite):
    with open(server, "w") as out:
        out.write("public_acls = true\n")
        for name, rights in USERS.values():
            grants = '[{ bucket = "*", rights = %s }]' % str(rights).replace("'", '"')
            out.write(f'[[users]]\naccess_key = "{name}"\nsecret_key = "{secret(name)}"\n')
            out.write(f"grants = {grants if rights else '[]'}\n")
    with open(suite, "w") as out:
        out.write(SUITE.format(port=port))
        for section, (name, _) in USERS.items():
            out.write(f"[{section}]\ndisplay_name = holdall\nuser_id = holdall\n")
            out.write(f"email = {name}@example.com\naccess_key = {name}\n")
            out.write(f"secret_key = {secret(name)}\n")
            if section == "s3 main":
                out.write("api_name = default\n")
            if section == "s3 tenant":
                out.write("tenant = testx\n")


main(sys.argv[1], sys.argv[2], sys.argv[3])
