"""An application behind Onward: it stores the uploads of the route /upload, and logs the events of all uploads."""
import base64, hmac, os, secrets, shutil, time

import flask

app = flask.Flask(__name__)
uploads = os.environ["UPLOADS"]
with open(os.environ["EVENT_SECRET_FILE"]) as file:
    # While a secret is replaced, the file has two, and the last one is the new one.
    key = base64.b64decode(file.read().split()[-1].removeprefix("whsec_"))


@app.post("/upload")
def upload():
    # Only resumable uploads have an identifier.
    name = flask.request.headers.get("Onward-Upload") or secrets.token_hex(16)
    path = os.path.join(uploads, name)
    with open(path + ".part", "wb") as file:
        shutil.copyfileobj(flask.request.stream, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".part", path)
    return {"id": name, "length": os.path.getsize(path), "owner": flask.request.headers.get("Onward-Principal")}, 201


@app.post("/events")
def events():
    # Standard Webhooks: docs/events.md describes the signature.
    fields = ("webhook-id", "webhook-timestamp", "webhook-signature")
    name, sent, signatures = (flask.request.headers.get(field, "") for field in fields)
    code = hmac.digest(key, f"{name}.{sent}.".encode() + flask.request.get_data(), "sha256")
    expected = b"v1," + base64.b64encode(code)
    if not any(hmac.compare_digest(signature.encode(), expected) for signature in signatures.split()):
        return "", 401
    if abs(time.time() - int(sent)) > 300:
        return "", 401
    event = flask.request.get_json()
    print(event["type"], event["data"]["principal"], event["data"]["target"], event["subject"], flush=True)
    return "", 204
