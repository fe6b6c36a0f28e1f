"""An identity provider for the tests: Canaille with three people, run by the Python of its own environment.

python serve.py PORT REDIRECT-URL. People: ann (groups oncall, staff), bob (staff), eve (no group); the password is the
name and "-password". The client is `gpuward` with the secret `s3cret`. It prints "ready" when it can be asked.
"""

import datetime
import os
import sys

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server


def main() -> None:
    """Serves until it is killed."""
    port, redirect = int(sys.argv[1]), sys.argv[2]
    key = RSAKey.generate_key(2048, auto_kid=True).as_dict(private=True)
    app = create_app(
        config={
            "SECRET_KEY": os.urandom(16).hex(),
            "SERVER_NAME": f"127.0.0.1:{port}",
            "PREFERRED_URL_SCHEME": "http",
            "CANAILLE": {"DATABASE": "sql", "SMTP": None},
            # In a file of its working folder: its memory backend takes any code for a right one.
            "CANAILLE_SQL": {"DATABASE_URI": "sqlite:///canaille.sqlite", "PASSWORD_SCHEMES": "plaintext"},
            "CANAILLE_OIDC": {
                "ACTIVE_JWKS": [{name: value for name, value in key.items() if isinstance(value, str)}],
                "TRUSTED_DOMAINS": ["127.0.0.1"],
            },
        }
    )
    with app.app_context():
        backend = Backend.instance
        people = {}
        for name in ("ann", "bob", "eve"):
            people[name] = models.User(
                user_name=name,
                given_name=name,
                family_name="x",
                formatted_name=name,
                emails=[f"{name}@example.org"],
                password=f"{name}-password",
            )
            backend.save(people[name])
        for group, members in {"oncall": ["ann"], "staff": ["ann", "bob"]}.items():
            backend.save(models.Group(display_name=group, members=[people[name] for name in members]))
        client = models.Client(
            client_id="gpuward",
            client_secret="s3cret",
            client_name="gpuward",
            client_uri="http://127.0.0.1",
            client_id_issued_at=datetime.datetime.now(datetime.UTC),
            redirect_uris=[redirect],
            grant_types=["authorization_code"],
            response_types=["code"],
            scope=["openid", "profile", "email", "groups"],
            token_endpoint_auth_method="client_secret_basic",
        )
        backend.save(client)
        client.audience = [client]
        backend.save(client)
    server = make_server("127.0.0.1", port, app, threaded=True)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
